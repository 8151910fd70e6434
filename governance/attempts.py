"""One attempt at a governed step: what its services take and what they answer."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from governance.executions import Run


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at a governed step.

    Attributes:
        key: Step key, 32 bytes.
        name: Step name in the contract.
        n: Which of equal calls, from 1.
        round: How often the workflow called this step, from 1.
        kind: Step kind.
        approval: Name of the approval the contract asks for, if any.
        input_digest: Digest of the whole input, 32 bytes.
        binds_digest: Digest of the bound fields, 32 bytes.
        attempt: Identity of this invocation.
        lease: Seconds until others may take over.
    """

    key: bytes
    name: str
    n: int
    round: int
    kind: str
    approval: str | None
    input_digest: bytes
    binds_digest: bytes
    attempt: uuid.UUID
    lease: float

    def row(self, run: Run) -> dict[str, Any]:
        """The step's row as this call would make it."""
        return {
            "key": self.key,
            "realm": run.realm,
            "execution": run.execution,
            "generation": run.generation,
            "name": self.name,
            "n": self.n,
            "round": self.round,
            "binds_digest": self.binds_digest,
            "input_digest": self.input_digest,
            "run_id": run.run_id,
        }


@dataclass(frozen=True, slots=True)
class Permit:
    """The step may run: finish or fail it with this token."""

    token: int
    approval: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Injected:
    """The step is done: this is what everybody gets, as stored by `finish` or `fail`."""

    outcome: bytes
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Busy:
    """Another attempt holds the step until `lease_until` (`seconds` from now) or renews it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Evicted:
    """Another attempt took the step over; nothing of this one was recorded."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim to renew: step key, attempt, and for how many seconds from now."""

    key: bytes
    attempt: uuid.UUID
    seconds: float

"""May this attempt run the step? Everything was read under locks; nothing here does I/O."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from governance.errors import (
    ApprovalMismatch,
    ApprovalMissing,
    ApprovalNotUsable,
    ApprovalRejected,
    ApproverLostRole,
    Frozen,
    ResumeDenied,
    StepRefused,
)
from governance.names import ApprovalState, ExecutionState
from governance.rules.quorum import Tally
from governance.rules.resume import admits


class Admission(Enum):
    """What an attempt gets when it is not refused."""

    INJECT = "inject"
    INJECT_FAILURE = "inject_failure"
    SAME_CLAIM = "same_claim"
    BUSY = "busy"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class ApprovalStanding:
    """An approval asked for the step: what it binds, where it stands, which run went on by it."""

    id: uuid.UUID
    key: bytes
    state: ApprovalState
    execute_by: datetime | None
    admitted_run: str | None = None


@dataclass(frozen=True, slots=True)
class FreezeStanding:
    """A freeze that nobody has lifted.

    Attributes:
        id: Which one.
        flow: The flow it stops; None for the whole realm.
        leaf: Leaf of its entry, 32 bytes.
        seconds: For how long it has stood.
        told: Whether this step's refusal under it is on record.
    """

    id: uuid.UUID
    flow: str | None
    leaf: bytes
    seconds: float
    told: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What one transaction read before a step begins.

    Attributes:
        execution: State of the execution.
        needs_approval: Whether the contract asks for one.
        key: Step key of this call, 32 bytes.
        approvals: Asked for this step and ordinal, newest first; maybe with other bound input.
        resume_roles: The flow's resume policy.
        roles_held: The original actor's roles.
        has_outcome: Whether an outcome is recorded.
        has_failure: Whether this round ended in a recorded failure.
        holder: Attempt that holds the claim.
        live: Whether that claim's lease runs.
        attempt: The attempt that asks.
        now: The database's clock.
        freeze: What stops the flow or its realm, if anything does.
        tally: The votes by the roles that their givers hold now, where the contract asks for it.
    """

    execution: ExecutionState
    needs_approval: bool
    key: bytes
    approvals: Sequence[ApprovalStanding]
    resume_roles: Sequence[str]
    roles_held: frozenset[str]
    has_outcome: bool
    has_failure: bool
    holder: uuid.UUID | None
    live: bool
    attempt: uuid.UUID
    now: datetime
    freeze: FreezeStanding | None = None
    tally: Tally | None = None


def admit(standing: Standing) -> Admission:
    """Decide in the one order that is safe: what is done comes first, the claim last.

    Raises:
        StepRefused: The step must not run; `ResumeDenied` also ends the execution.
    """
    if standing.has_outcome:
        return Admission.INJECT
    if standing.execution is ExecutionState.DENIED:
        raise ResumeDenied("This execution was denied before; nothing of it runs any more.")
    if standing.has_failure:
        return Admission.INJECT_FAILURE
    if standing.freeze is not None:
        what = "realm" if standing.freeze.flow is None else "flow"
        raise Frozen(
            f"This {what} is frozen by an administrator; nothing of it begins.",
            seconds=standing.freeze.seconds,
        )
    if standing.needs_approval:
        check_approval(standing)
    if not admits(standing.resume_roles, standing.roles_held):
        raise ResumeDenied
    if standing.tally is not None:
        check_approvers(standing.tally)
    if standing.live and standing.holder is not None:
        mine = standing.holder == standing.attempt
        return Admission.SAME_CLAIM if mine else Admission.BUSY
    return Admission.CLAIM


def check_approval(standing: Standing) -> None:
    """Check that the step is approved, in time, with exactly this bound input.

    Raises:
        ApprovalMissing: Nobody was asked, or nobody has decided.
        ApprovalMismatch: What was approved binds other input.
        ApprovalRejected: It was rejected.
        ApprovalNotUsable: It expired, was withdrawn or was revoked.
    """
    mine = [a for a in standing.approvals if a.key == standing.key]
    if not mine:
        raise _not_asked(standing)
    newest = mine[0]
    if newest.state is ApprovalState.PENDING:
        raise ApprovalMissing("The approval of this step has not been decided.")
    if newest.state is ApprovalState.REJECTED:
        raise ApprovalRejected
    late = newest.execute_by is not None and standing.now > newest.execute_by
    if newest.state not in (ApprovalState.APPROVED, ApprovalState.USED) or late:
        how = "expired" if late else newest.state.value
        raise ApprovalNotUsable(f"The approval of this step cannot be used: {how}.")


def check_approvers(tally: Tally) -> None:
    """Check that enough of those who approved could approve now.

    Raises:
        ApproverLostRole: They could not.
    """
    if tally.missing:
        raise ApproverLostRole(
            f"Of {len(tally.votes)} who approved, {tally.counted} still may; "
            f"it takes {tally.needed}.",
            hint="Grant the role again, or revoke the approval: the next call then asks anew.",
        )


def _not_asked(standing: Standing) -> StepRefused:
    if standing.approvals:
        return ApprovalMismatch(
            "The fields that the approval binds are not those of this call.",
            hint="Nothing was run; the call with the approved input would be.",
        )
    return ApprovalMissing("No approval was asked for this step.")

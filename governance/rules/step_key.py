"""The identity of a step, and of the calls that are the same step again."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from governance import canonical

_STEP_KEY = b"governance/step-key/1"
_IDEMPOTENCY_KEY = b"governance/idempotency-key/1"


def step_key(
    execution: uuid.UUID, generation: int, name: str, binds_digest: bytes, n: int
) -> bytes:
    """Return the identity of a step, through retries, resets and new runs of its execution.

    Args:
        execution: The execution.
        generation: How often the execution continued as new, from 0.
        name: The step's name in the contract.
        binds_digest: Digest of what the call binds, 32 bytes.
        n: Which of the equal calls of this generation, from 1.

    Returns:
        SHA-256, 32 bytes, over `governance/step-key/1` and the five parts, each preceded by its
        length (8 bytes, big-endian); integers are 8 bytes, big-endian.

    Raises:
        ValueError: A part is out of range.
    """
    if generation < 0 or n < 1 or len(binds_digest) != 32:
        raise ValueError("a step key needs generation >= 0, n >= 1 and a digest of 32 bytes")
    parts = (
        _STEP_KEY,
        execution.bytes,
        generation.to_bytes(8, "big"),
        name.encode(),
        binds_digest,
        n.to_bytes(8, "big"),
    )
    return canonical.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts))


def idempotency_key(key: bytes) -> str:
    """Return the key that a step gives to outside systems, the same in every round.

    A UUID of version 8 (RFC 9562, section 5.8), 36 characters, which most systems accept. It is
    derived one way, so it tells them nothing of the step key.
    """
    digest = bytearray(canonical.sha256(_IDEMPOTENCY_KEY + key)[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))


class Call(NamedTuple):
    """Which step a call is.

    Attributes:
        n: Which of the equal calls, from 1.
        round: How often this one has been called, from 1.
    """

    n: int
    round: int


class CallTracker:
    """Counts the calls of one run, as the workflow saw them.

    Equal calls have the same step name and digest of binds. A call after one that the workflow saw
    fail, time out or be cancelled is that step again, the lowest `n` first; after a success, or
    while one is open, it is the next. Deterministic: the same order of calls gives the same
    answers.
    """

    def __init__(self) -> None:
        """Start with no calls."""
        self._last: dict[tuple[str, bytes], int] = {}
        self._open: dict[tuple[str, bytes, int], int] = {}
        self._failed: dict[tuple[str, bytes], dict[int, int]] = {}

    def call(self, name: str, digest: bytes) -> Call:
        """Count a call and say which step it is."""
        equal = (name, digest)
        if failed := self._failed.get(equal):
            n = min(failed)
            call = Call(n, failed.pop(n) + 1)
        else:
            call = Call(self._last.get(equal, 0) + 1, 1)
            self._last[equal] = call.n
        self._open[*equal, call.n] = call.round
        return call

    def failed(self, name: str, digest: bytes, n: int) -> None:
        """Note that the workflow saw call `n` fail, time out or be cancelled.

        Raises:
            ValueError: No such call is open.
        """
        self._failed.setdefault((name, digest), {})[n] = self._close(name, digest, n)

    def succeeded(self, name: str, digest: bytes, n: int) -> None:
        """Note that the workflow saw call `n` succeed.

        Raises:
            ValueError: No such call is open.
        """
        self._close(name, digest, n)

    def _close(self, name: str, digest: bytes, n: int) -> int:
        try:
            return self._open.pop((name, digest, n))
        except KeyError:
            raise ValueError(f"call {n} of {name} is not open") from None

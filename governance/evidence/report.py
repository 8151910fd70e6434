"""What verifying a log says: data; how it is shown is for others to decide."""

from __future__ import annotations

from dataclasses import dataclass

from governance.chain.note import Checkpoint


@dataclass(frozen=True, slots=True)
class Problem:
    """The first difference that was found.

    Args:
        step: Number of the step of `verify_log` that found it.
        what: What differs, one sentence.
        entry: Id of the entry, where there is one.
        stream: Stream of the entry, `execution/<32 hex digits>`.
        seq: Position of the entry in its stream.
        leaf: Position in the tree.
        size: Size of the checkpoint.
    """

    step: int
    what: str
    entry: int | None = None
    stream: str | None = None
    seq: int | None = None
    leaf: int | None = None
    size: int | None = None


class Difference(Exception):
    """Carries the first problem out of the step that found it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.what)


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict over a log, and how much of it was looked at.

    If there is a problem, the counts are those of what was read before it.

    Args:
        origin: The log that was asked for.
        entries: Entries read.
        streams: Streams with entries.
        sealed: Entries that the last good checkpoint covers.
        unsealed: Entries that none covers yet.
        checkpoints: Good checkpoints on record.
        checkpoint: The last good one.
        first_problem: The first difference, or None.
    """

    origin: str
    entries: int
    streams: int
    sealed: int
    unsealed: int
    checkpoints: int
    checkpoint: Checkpoint | None
    first_problem: Problem | None

    @property
    def ok(self) -> bool:
        """No difference was found."""
        return self.first_problem is None

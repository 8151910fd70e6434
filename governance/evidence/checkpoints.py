"""The checkpoints of a log, in the order of their sizes, against the tree as it grows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import AsyncServerCursor
from psycopg.rows import class_row

from governance.chain.note import Checkpoint, open_note
from governance.chain.tree import CompactRange
from governance.db import Connection
from governance.db.queries import load
from governance.errors import NoteInvalid
from governance.evidence.report import Difference, Problem
from governance.signing import Verifier

_SQL: Final = load("verifying")


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint as the database has it on record."""

    size: int
    key_name: str
    root: bytes
    note: str


class Checkpoints:
    """Checks each checkpoint when the tree has reached its size.

    Args:
        rows: Those on record, in the order of their sizes.
        origin: The log's name.
        verifiers: The keys that may have signed them.
        since: The note that was kept outside the database.
    """

    def __init__(
        self,
        rows: AsyncServerCursor[CheckpointRow],
        origin: str,
        verifiers: Sequence[Verifier],
        since: bytes | None,
    ) -> None:
        self._rows: Final = rows
        self._origin: Final = origin
        self._verifiers: Final = verifiers
        self._kept = None if since is None else self._open(since, "The given checkpoint", None)
        self._next: CheckpointRow | None = None
        self.good = 0
        self.last: Checkpoint | None = None

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        conn: Connection,
        origin: str,
        verifiers: Sequence[Verifier],
        since: bytes | None,
    ) -> AsyncGenerator[Checkpoints]:
        """Read the checkpoints of the database at hand."""
        async with conn.cursor(
            "checkpoints", binary=True, row_factory=class_row(CheckpointRow)
        ) as rows:
            await rows.execute(_SQL["fetch_checkpoints"])
            checkpoints = cls(rows, origin, verifiers, since)
            checkpoints._next = await rows.fetchone()
            yield checkpoints

    async def check(self, tree: CompactRange) -> None:
        """Step 6: check every checkpoint of the tree's size."""
        while self._next is not None and self._next.size == tree.size:
            self._check_row(self._next, tree)
            self._next = await self._rows.fetchone()
        if self._kept is not None and self._kept.size == tree.size:
            self._check_root(self._kept, tree, "The given checkpoint")
            self.last, self._kept = self._kept, None

    def check_all_reached(self, tree: CompactRange) -> None:
        """Step 6, at the end of the tree: no checkpoint is of a larger one."""
        if self._kept is not None:
            self._refuse_larger(self._kept.size, tree, "The given checkpoint")
        if self._next is not None:
            self._refuse_larger(self._next.size, tree, "A checkpoint on record")

    def _check_row(self, row: CheckpointRow, tree: CompactRange) -> None:
        what = f"The checkpoint of size {row.size}"
        checkpoint = self._open(row.note.encode(), what, row)
        if (checkpoint.size, checkpoint.root) != (row.size, row.root):
            raise _at(row.size, f"{what} is on record with another size or root than it signs.")
        self._check_root(checkpoint, tree, what)
        self.good += 1
        self.last = checkpoint

    def _open(self, data: bytes, what: str, row: CheckpointRow | None) -> Checkpoint:
        size = None if row is None else row.size
        try:
            note = open_note(data, self._verifiers)
            checkpoint = Checkpoint.parse(note.text)
        except NoteInvalid as error:
            raise _at(size, f"{what}: {error.message}") from None
        if checkpoint.origin != self._origin:
            raise _at(size, f"{what} is of the log {checkpoint.origin}, not of {self._origin}.")
        if row is not None and row.key_name not in {one.name for one in note.signatures}:
            raise _at(size, f"{what} is on record as signed by {row.key_name}, which did not.")
        return checkpoint

    def _check_root(self, checkpoint: Checkpoint, tree: CompactRange, what: str) -> None:
        if checkpoint.root != tree.root():
            raise _at(
                tree.size,
                f"{what} signs the root {checkpoint.root.hex()}, but the first {tree.size} leaves "
                f"have the root {tree.root().hex()}.",
            )

    def _refuse_larger(self, size: int, tree: CompactRange, what: str) -> None:
        raise _at(
            size, f"{what} is of size {size}, but the log has {tree.size} leaves: its end is gone."
        )


def _at(size: int | None, what: str) -> Difference:
    return Difference(Problem(6, what, size=size))

"""The steps of verifying a whole log. `verify_log` says in which order they are taken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg.rows import class_row

from governance.chain.entry import NO_PREVIOUS, Entry
from governance.chain.stored import StoredEntry
from governance.chain.tree import CompactRange
from governance.db import Connection
from governance.db.queries import load
from governance.errors import ChainBroken
from governance.evidence.checkpoints import Checkpoints
from governance.evidence.report import Difference, Problem, Report
from governance.signing import Verifier

_SQL: Final = load("verifying")
_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class EntryRow(StoredEntry):
    """An entry, its leaf, and the entry before it in its stream.

    Args:
        idx: Its position in the tree, if it has one.
        leaf_before: Stored leaf hash of the entry before it.
        idx_before: Position of that one in the tree.
    """

    idx: int | None
    leaf_before: bytes | None
    idx_before: int | None


@dataclass(frozen=True, slots=True)
class LeafRow:
    """A leaf, and the stored leaf hash of the entry it stands for."""

    idx: int
    entry: int
    hash: bytes
    leaf: bytes | None


class LogWalk:
    """Reads one log from end to end and remembers no more than where it is.

    Args:
        conn: In a transaction with one snapshot.
        origin: The log's name.
        verifiers: The keys that may have signed checkpoints.
    """

    def __init__(self, conn: Connection, origin: str, verifiers: Sequence[Verifier]) -> None:
        self._conn: Final = conn
        self._origin: Final = origin
        self._verifiers: Final = verifiers
        self._checkpoints: Checkpoints | None = None
        self._observed: dict[bytes, EntryRow] = {}
        self._last_id = 0
        self._entries = 0
        self._streams = 0
        self.tree: Final = CompactRange()

    async def check_origin(self) -> None:
        """Step 1: the log is the one that was asked for."""
        row = await (await self._conn.execute(_SQL["fetch_origin"])).fetchone()
        if row is None or row[0] != self._origin:
            named = "has no name" if row is None else f"is {row[0]}"
            raise Difference(Problem(1, f"The log {named}, not {self._origin}."))

    async def entries(self) -> AsyncIterator[list[EntryRow]]:
        """All entries in the order of their ids, some at a time."""
        async with self._conn.cursor(
            "entries", binary=True, row_factory=class_row(EntryRow)
        ) as cursor:
            await cursor.execute(_SQL["fetch_entries"])
            while rows := await cursor.fetchmany(_ROWS):
                yield rows

    def check_bytes(self, row: EntryRow) -> Entry:
        """Step 2: the bytes of the entry hold."""
        try:
            entry = row.read(self._origin)
        except ChainBroken as error:
            raise _at(row, 2, error.message) from None
        if row.id == self._last_id:
            raise _at(row, 2, f"{row.place}: it, or the place before it, is there twice")
        self._last_id = row.id
        self._entries += 1
        return entry

    def check_link(self, row: EntryRow, entry: Entry) -> None:
        """Step 3: the entry names the one before it in its stream, which was sealed before it."""
        expected = row.leaf_before if row.seq > 1 else NO_PREVIOUS
        if expected is None:
            raise _at(row, 3, f"{row.place}: its stream has no seq {row.seq - 1}")
        if entry.prev != expected:
            raise _at(
                row,
                3,
                f"{row.place}: its prev is {entry.prev.hex()}, but the leaf of seq {row.seq - 1} "
                f"is {expected.hex()}",
            )
        if row.idx is not None and row.seq > 1:
            if row.idx_before is None:
                raise _at(row, 3, f"{row.place}: it has a leaf, seq {row.seq - 1} has none")
            if row.idx_before >= row.idx:
                raise _at(row, 3, f"{row.place}: its leaf stands before that of seq {row.seq - 1}")
        self._remember(row, entry)

    async def check_observed(self) -> None:
        """Step 4: what the entries read so far observed stands in the tree before them."""
        wanted, self._observed = self._observed, {}
        if not wanted:
            return
        async with self._conn.cursor(binary=True) as cursor:
            await cursor.execute(_SQL["fetch_positions"], {"hashes": list(wanted)})
            found: dict[bytes, int] = {leaf: idx for leaf, idx in await cursor.fetchall()}
        for leaf, row in wanted.items():
            idx = found.get(leaf)
            if idx is None or row.idx is None or idx >= row.idx:
                where = "not in the tree" if idx is None else f"leaf {idx}, after it"
                raise _at(row, 4, f"{row.place}: it observed {leaf.hex()}, which is {where}")

    async def check_streams(self) -> None:
        """Step 3, from the other end: no stream forks, or ends elsewhere than its row says."""
        fork = await self._one(_SQL["fetch_fork"])
        if fork is not None:
            stream, seq, entry = fork
            raise Difference(
                Problem(3, f"Two entries of the stream {stream} have seq {seq}.", entry, seq=seq)
            )
        head = await self._one(_SQL["fetch_wrong_head"])
        if head is not None:
            stream, kind, seq, last = head
            name = f"{kind}/{stream.hex}"
            raise Difference(
                Problem(
                    3,
                    f"The stream {name} says that it ends with seq {seq}; its last entry has seq "
                    f"{last}" + (", as it should, but with another leaf." if last == seq else "."),
                    stream=name,
                    seq=seq,
                )
            )
        streams = await self._one(_SQL["count_streams"])
        self._streams = 0 if streams is None else int(streams[0])

    async def leaves(self) -> AsyncIterator[LeafRow]:
        """All leaves in the order of the tree."""
        async with self._conn.cursor(
            "leaves", binary=True, row_factory=class_row(LeafRow)
        ) as cursor:
            cursor.itersize = _ROWS
            await cursor.execute(_SQL["fetch_leaves"])
            async for row in cursor:
                yield row

    def check_leaf(self, row: LeafRow) -> None:
        """Step 5: the leaf follows the one before it and is its entry's hash."""
        if row.idx != self.tree.size:
            what = f"Leaf {self.tree.size} is missing: the next one is leaf {row.idx}."
        elif row.leaf is None:
            what = f"Leaf {row.idx} stands for entry {row.entry}, which is missing."
        elif row.leaf != row.hash:
            what = f"Leaf {row.idx} is not the hash of its entry {row.entry}."
        else:
            self.tree.append(row.hash)
            return
        raise Difference(Problem(5, what, entry=row.entry, leaf=self.tree.size))

    @asynccontextmanager
    async def checkpoints(self, since: bytes | None) -> AsyncGenerator[Checkpoints]:
        """The checkpoints on record, and the one that was kept outside."""
        async with Checkpoints.opened(
            self._conn, self._origin, self._verifiers, since
        ) as checkpoints:
            self._checkpoints = checkpoints
            yield checkpoints

    def report(self, problem: Problem | None) -> Report:
        """Step 7: what was read, and how much of it a checkpoint covers."""
        last = None if self._checkpoints is None else self._checkpoints.last
        sealed = 0 if last is None else last.size
        return Report(
            origin=self._origin,
            entries=self._entries,
            streams=self._streams,
            sealed=sealed,
            unsealed=self._entries - sealed,
            checkpoints=0 if self._checkpoints is None else self._checkpoints.good,
            checkpoint=last,
            first_problem=problem,
        )

    def _remember(self, row: EntryRow, entry: Entry) -> None:
        """Keep what a sealed entry observed; of several that observed the same, the first.

        Of an entry that is not in the tree yet nothing is said.
        """
        if row.idx is None:
            return
        for leaf in entry.observed:
            first = self._observed.setdefault(leaf, row)
            if first.idx is not None and row.idx < first.idx:
                self._observed[leaf] = row

    async def _one(self, query: LiteralString) -> tuple[Any, ...] | None:
        return await (await self._conn.execute(query)).fetchone()


def _at(row: EntryRow, step: int, what: str) -> Difference:
    return Difference(
        Problem(step, what, entry=row.id, stream=row.stream_text, seq=row.seq, leaf=row.idx)
    )

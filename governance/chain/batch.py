"""The next entries to seal: which they are, and whether they may be sealed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg.rows import class_row

from governance.chain.entry import NO_PREVIOUS, Entry
from governance.chain.stored import StoredEntry
from governance.db import Connection
from governance.db.queries import load
from governance.errors import ChainBroken

_SQL: Final = load("sealing")
_ROWS: Final = 500
_Place = tuple[uuid.UUID, int]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Ids up to `last_id` are final once every transaction below `xid` has ended."""

    xid: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry without a leaf whose own bytes hold.

    Args:
        id: Number that the database gave it.
        stream: Id of its stream.
        leaf: Its leaf hash.
        entry: What its body says.
    """

    id: int
    stream: uuid.UUID
    leaf: bytes
    entry: Entry

    @property
    def place(self) -> str:
        """Names the entry in messages."""
        return f"entry {self.id} ({self.entry.stream}, seq {self.entry.seq})"


@dataclass(frozen=True, slots=True)
class Batch:
    """What one snapshot shows of the entries without a leaf, in the order of their ids.

    Args:
        rows: The entries, at most as many as were asked for.
        more: There may be others in the same snapshot.
        size: Leaves that the tree has in the database.
        xmin: Every transaction below it has ended.
        upto: Every entry up to this id that the snapshot shows has a leaf or is in `rows`.
        xid: Id of the transaction that took the snapshot, if it was asked for.
    """

    rows: list[Candidate]
    more: bool
    size: int
    xmin: int
    upto: int
    xid: int | None

    @property
    def hashes(self) -> list[bytes]:
        """The leaf hashes, in the order of the tree."""
        return [row.leaf for row in self.rows]


class LowWater:
    """The id up to which nothing can still come, so that no round looks at the whole table.

    An id that is visible was drawn before the snapshot, and so was every smaller one, by a
    transaction that already had its own id then. So once every transaction below an id that is
    assigned after the snapshot has ended, nothing up to the visible id is still open. The upper
    bound of the snapshot itself is no such id: it is the one after the last transaction that
    *ended*, and one that has drawn an entry's id and is still running can lie above it.
    """

    def __init__(self) -> None:
        self.id = 0
        self._mark: _Mark | None = None

    async def take(self, conn: Connection, origin: str, limit: int) -> Batch:
        """Read the next batch, in a REPEATABLE READ transaction that ran no statement yet.

        Raises:
            ChainBroken: An entry's stored bytes contradict each other; names the first.
        """
        cursor = await conn.execute(_SQL["fetch_view"])
        row = await cursor.fetchone()
        xmin, last_id, size = row if row is not None else (0, 0, 0)
        rows = await _unsealed(conn, origin, self.id, limit)
        more = len(rows) == limit
        upto = rows[-1].id if more else last_id
        xid: int | None = None
        if self._mark is None and upto > self.id:
            found = await (await conn.execute(_SQL["fetch_transaction_id"])).fetchone()
            xid = None if found is None else int(found[0])
        return Batch(rows, more, size, xmin, upto, xid)

    def sealed(self, batch: Batch) -> None:
        """Move up after all of the batch was sealed and committed."""
        mark = self._mark
        if mark is not None and batch.xmin >= mark.xid and batch.upto >= mark.last_id:
            self.id, self._mark = mark.last_id, None
        if batch.xid is not None:
            self._mark = _Mark(batch.xid, batch.upto)


async def check(conn: Connection, rows: Sequence[Candidate]) -> None:
    """See that all that these entries rest on is sealed before them.

    Raises:
        ChainBroken: It is not; names the first entry and the difference.
    """
    links = await _links(conn, rows)
    sealed = await _sealed(conn, {leaf for row in rows for leaf in row.entry.observed})
    for row in rows:
        _check_link(row, links)
        for leaf in row.entry.observed:
            if leaf not in sealed:
                raise ChainBroken(
                    f"{row.place}: it observed {leaf.hex()}, which is not sealed before it"
                )
        links[row.stream, row.entry.seq] = row.leaf
        sealed.add(row.leaf)


def _check_link(row: Candidate, links: dict[_Place, bytes]) -> None:
    before = row.entry.seq - 1
    expected = links.get((row.stream, before)) if before else NO_PREVIOUS
    if expected is None:
        raise ChainBroken(f"{row.place}: its stream's seq {before} is not sealed before it")
    if row.entry.prev != expected:
        raise ChainBroken(
            f"{row.place}: its prev is {row.entry.prev.hex()}, but the leaf of seq {before} is "
            f"{expected.hex()}"
        )


async def _unsealed(conn: Connection, origin: str, low: int, limit: int) -> list[Candidate]:
    """Read entries without a leaf and derive each again, keeping one payload at a time."""
    found: list[Candidate] = []
    async with conn.cursor("unsealed", binary=True, row_factory=class_row(StoredEntry)) as cursor:
        cursor.itersize = _ROWS
        await cursor.execute(_SQL["fetch_unsealed"], {"low": low, "limit": limit})
        async for row in cursor:
            found.append(Candidate(row.id, row.stream, row.leaf, row.read(origin)))
    return found


async def _links(conn: Connection, rows: Sequence[Candidate]) -> dict[_Place, bytes]:
    """The sealed leaf before each stream's first entry in the batch."""
    wanted: dict[uuid.UUID, int] = {}
    for row in rows:
        wanted.setdefault(row.stream, row.entry.seq - 1)
    parameters: dict[str, Any] = {"streams": list(wanted), "seqs": list(wanted.values())}
    async with conn.cursor(binary=True) as cursor:
        await cursor.execute(_SQL["fetch_links"], parameters)
        return {(stream, seq): leaf for stream, seq, leaf in await cursor.fetchall()}


async def _sealed(conn: Connection, hashes: set[bytes]) -> set[bytes]:
    if not hashes:
        return set()
    async with conn.cursor(binary=True) as cursor:
        await cursor.execute(_SQL["fetch_sealed"], {"hashes": list(hashes)})
        return {leaf for (leaf,) in await cursor.fetchall()}

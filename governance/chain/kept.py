"""Checkpoints kept outside the database, against the tree inside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from governance.chain.note import Checkpoint, open_note
from governance.chain.sinks import Sink
from governance.chain.tree import CompactRange
from governance.db import Connection
from governance.db.queries import load
from governance.errors import ChainBroken, LogRolledBack, NoteInvalid
from governance.signing import Verifier

_SQL: Final = load("sealing")
_ROWS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint and where it was found."""

    place: str
    checkpoint: Checkpoint
    note: bytes


def read_kept(place: str, note: bytes, origin: str, verifiers: Iterable[Verifier]) -> Kept:
    """Read a kept note.

    Raises:
        NoteInvalid: None of the keys signed it, or it is of another log.
    """
    try:
        checkpoint = Checkpoint.parse(open_note(note, verifiers).text)
    except NoteInvalid as error:
        raise NoteInvalid(f"The checkpoint in {place}: {error.message}") from None
    if checkpoint.origin != origin:
        raise NoteInvalid(
            f"The checkpoint in {place} is of the log {checkpoint.origin}, not of {origin}."
        )
    return Kept(place, checkpoint, note)


async def from_sinks(
    sinks: Sequence[Sink], origin: str, verifiers: Sequence[Verifier]
) -> list[Kept]:
    """Read the latest checkpoint of each sink that has one. Raises like `read_kept`."""
    found: list[Kept] = []
    for sink in sinks:
        note = await sink.latest()
        if note is not None:
            found.append(read_kept(sink.name, note, origin, verifiers))
    return found


async def from_database(
    conn: Connection, origin: str, verifiers: Sequence[Verifier]
) -> Kept | None:
    """Read the latest checkpoint that the database has on record. Raises like `read_kept`."""
    row = await (await conn.execute(_SQL["fetch_last_checkpoint"])).fetchone()
    if row is None:
        return None
    return read_kept("the database", row[0].encode(), origin, verifiers)


async def rebuild(conn: Connection, kept: Iterable[Kept]) -> CompactRange:
    """Compute the tree again from the stored leaves and compare it with what was kept.

    Args:
        conn: In a transaction with one snapshot.
        kept: Checkpoints that must be of this tree.

    Raises:
        LogRolledBack: The tree is smaller than a kept one.
        ChainBroken: The tree had another root at a kept size, or the leaves have a gap.
    """
    todo = sorted(kept, key=lambda one: one.checkpoint.size, reverse=True)
    tree = CompactRange()
    async with conn.cursor("leaves", binary=True) as cursor:
        cursor.itersize = _ROWS
        await cursor.execute(_SQL["fetch_leaves"])
        async for idx, leaf in cursor:
            _compare(tree, todo)
            if idx != tree.size:
                raise ChainBroken(f"leaf {tree.size} is missing: the next one is leaf {idx}")
            tree.append(leaf)
    _compare(tree, todo)
    if todo:
        refuse_smaller(tree, todo[0])
    return tree


def refuse_smaller(tree: CompactRange, kept: Kept) -> None:
    """Refuse a tree that ends before a kept checkpoint.

    Raises:
        LogRolledBack: It does; says from where to where.
    """
    if tree.size < kept.checkpoint.size:
        raise LogRolledBack(
            f"The log {kept.checkpoint.origin} went back from size {kept.checkpoint.size} "
            f"(checkpoint in {kept.place}) to size {tree.size}; nothing was signed.",
            hint="Bring the database back to at least that size; entries after it may be lost.",
        )


def refuse_other(tree: CompactRange, kept: Kept) -> None:
    """Refuse a tree that has another root than a kept checkpoint of its size.

    Raises:
        ChainBroken: It has.
    """
    if tree.root() != kept.checkpoint.root:
        raise ChainBroken(
            f"The first {tree.size} leaves have the root {tree.root().hex()}, but the checkpoint "
            f"in {kept.place} was signed over {kept.checkpoint.root.hex()}; nothing was signed."
        )


def _compare(tree: CompactRange, todo: list[Kept]) -> None:
    while todo and todo[-1].checkpoint.size == tree.size:
        refuse_other(tree, todo.pop())

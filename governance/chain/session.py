"""One session of a sealer: the lock, and what is known as long as its connection lasts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from governance.chain.batch import Batch, LowWater, check
from governance.chain.kept import (
    Kept,
    from_database,
    from_sinks,
    rebuild,
    refuse_other,
    refuse_smaller,
)
from governance.chain.note import Checkpoint, sign_note
from governance.chain.sinks import Sink
from governance.chain.tree import CompactRange
from governance.db import Connection, transaction
from governance.db.connection import Target
from governance.db.failures import translated
from governance.db.queries import load
from governance.db.versions import check_schema
from governance.errors import ChainBroken, KeyInvalid, SchemaMissing, SealerRunning
from governance.signing import Signer, Verifier

_SQL: Final = load("sealing")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a sealer was given, see `Sealer`."""

    target: Target
    signer: Signer
    sinks: tuple[Sink, ...]
    trusted: tuple[Verifier, ...]
    limit: int
    new_sinks: bool

    @property
    def verifiers(self) -> Sequence[Verifier]:
        """The keys whose checkpoints may be in the sinks."""
        return (self.signer.verifier, *self.trusted)


class Session:
    """Holds the lock of one log on one connection.

    What it remembers (the tree, what is published, the low-water mark) was compared with the
    database and the sinks when it was opened. After any error it must be closed.
    """

    def __init__(self, conn: Connection, settings: Settings) -> None:
        """Begin with an empty tree; `open` is what makes a session."""
        self._conn: Final = conn
        self._settings: Final = settings
        self._origin = ""
        self._tree = CompactRange()
        self._newest = 0  # the largest size kept outside
        self._published = 0  # the size that every sink has
        self._recorded = 0  # the size that the database has a checkpoint of
        self.low: Final = LowWater()

    @classmethod
    async def open(cls, settings: Settings) -> Session:
        """Take the lock, compute the tree again and compare it with what was kept.

        Raises:
            SealerRunning: Another session has the lock.
            ChainBroken: The tree contradicts a kept checkpoint or has a gap.
            NoteInvalid: A kept checkpoint is not one of this log by a known key.
            Unavailable: The database or a sink is not there.
        """
        label = settings.target.label
        conn = await settings.target.connect()
        session = cls(conn, settings)
        opened = False
        try:
            with translated(label):
                await check_schema(conn, label)
                if await (await conn.execute(_SQL["try_lock"])).fetchone() != (True,):
                    raise SealerRunning(
                        f"Another sealer is running on {label}.",
                        hint="One is enough; stop it first to run another.",
                    )
            await session._compare()
            opened = True
            return session
        finally:
            if not opened:
                await conn.close()

    async def close(self) -> None:
        """Close the connection, and with it the lock."""
        await self._conn.close()

    async def _compare(self) -> None:
        settings = self._settings
        async with self._transaction(transaction.SNAPSHOT) as conn:
            self._origin = await _origin(conn)
            _refuse_other_key(settings.signer, self._origin)
            outside = await from_sinks(settings.sinks, self._origin, settings.verifiers)
            inside = await from_database(conn, self._origin, settings.verifiers)
            if inside is not None and not outside and not settings.new_sinks:
                raise ChainBroken(
                    f"The database has a checkpoint of size {inside.checkpoint.size}, but none is "
                    f"kept in {', '.join(sink.name for sink in settings.sinks)}; nothing was "
                    "signed.",
                    hint="Bring the kept checkpoints back, or say that this place is new.",
                )
            kept = outside if inside is None else [*outside, inside]
            self._tree = await rebuild(conn, kept)
        sizes = [one.checkpoint.size for one in outside]
        self._newest = max(sizes, default=0)
        self._published = min(sizes) if len(sizes) == len(settings.sinks) else 0
        self._recorded = 0 if inside is None else inside.checkpoint.size

    async def seal(self) -> Batch:
        """Commit leaves for the next entries.

        Raises:
            ChainBroken: A stored entry does not hold; none of the batch was sealed.
        """
        async with self._transaction(transaction.SNAPSHOT) as conn:
            batch = await self.low.take(conn, self._origin, self._settings.limit)
            if batch.size != self._tree.size:
                raise ChainBroken(
                    f"The tree had {self._tree.size} leaves and now has {batch.size}: leaves were "
                    "written or taken away by somebody else; nothing was signed."
                )
            if batch.rows:
                await check(conn, batch.rows)
                parameters = {
                    "size": batch.size,
                    "entries": [row.id for row in batch.rows],
                    "hashes": batch.hashes,
                }
                await conn.execute(_SQL["insert_leaves"], parameters)
        self.low.sealed(batch)
        for leaf in batch.hashes:
            self._tree.append(leaf)
        return batch

    async def publish(self) -> Checkpoint | None:
        """Sign the tree, keep the note outside, put it on record; what was done is left out.

        Raises:
            ChainBroken: The sinks hold what this session did not publish.
            SinkUnavailable: The note cannot be kept; it is not on record then.
        """
        size, settings = self._tree.size, self._settings
        if size == 0 or size == self._published == self._recorded:
            return None
        for kept in await from_sinks(settings.sinks, self._origin, settings.verifiers):
            self._refuse(kept)
        checkpoint = Checkpoint(self._origin, size, self._tree.root())
        note = sign_note(checkpoint.text, [settings.signer])
        for sink in settings.sinks:
            await sink.publish(size, note)
        self._newest = self._published = size
        if self._recorded != size:
            await self._record(checkpoint, note)
        return checkpoint

    def _refuse(self, kept: Kept) -> None:
        """Look once more at what is kept: it was compared when the session began."""
        refuse_smaller(self._tree, kept)
        if kept.checkpoint.size == self._tree.size:
            refuse_other(self._tree, kept)
        elif kept.checkpoint.size > self._newest:
            raise ChainBroken(
                f"Somebody else put a checkpoint of size {kept.checkpoint.size} into {kept.place}."
            )

    async def _record(self, checkpoint: Checkpoint, note: bytes) -> None:
        async with self._transaction(transaction.WRITE) as conn:
            parameters = {
                "size": checkpoint.size,
                "key_name": self._settings.signer.verifier.name,
                "root": checkpoint.root,
                "note": note.decode(),
            }
            await conn.execute(_SQL["insert_checkpoint"], parameters)
        self._recorded = checkpoint.size

    @asynccontextmanager
    async def _transaction(self, kind: transaction.Kind) -> AsyncGenerator[Connection]:
        conn, label = self._conn, self._settings.target.label
        await transaction.begin(conn, kind, label)
        try:
            with transaction.bounded(conn, kind.patience):
                with translated(label):
                    yield conn
                await transaction.commit(conn, label)
        finally:
            await transaction.roll_back(conn)


async def _origin(conn: Connection) -> str:
    row = await (await conn.execute(_SQL["fetch_origin"])).fetchone()
    if row is None:
        raise SchemaMissing("The log has no name.", hint="Run `governance migrate`.")
    return str(row[0])


def _refuse_other_key(signer: Signer, origin: str) -> None:
    """A checkpoint signed by the key of another log is one that nobody can verify."""
    name = signer.verifier.name
    if name != origin:
        raise KeyInvalid(
            f'The key is named "{name}" and the log "{origin}".',
            hint=f"Sign with the key of this log: `governance keys new {origin}`.",
        )

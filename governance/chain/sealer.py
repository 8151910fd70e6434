"""The sealer: gives entries their place in the tree and signs what the tree has become.

One at a time, on a connection of its own that no pooler shares. The order of duty: leaves are
committed, then the checkpoint is signed, then it is kept outside the database, then it is put on
record inside. A sealer that is stopped between two of these leaves work for the next one, never a
contradiction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

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
from governance.errors import (
    ChainBroken,
    ConfigurationError,
    SchemaMissing,
    SealerRunning,
    Unavailable,
)
from governance.signing import Signer, Verifier

_SQL: Final = load("sealing")
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What one round did.

    Args:
        entries: How many got their leaf.
        checkpoint: What was signed, if anything was.
        more: Entries were left for the next round.
    """

    entries: int
    checkpoint: Checkpoint | None
    more: bool


@dataclass(slots=True)
class _Session:
    """What holds as long as the connection does, and not longer."""

    conn: Connection
    origin: str
    tree: CompactRange
    newest: int  # the largest size kept outside
    published: int  # the size that every sink has
    recorded: int  # the size that the database has a checkpoint of
    low: LowWater


class Sealer:
    """Seals one log.

    Args:
        dsn: The database, reached directly: the lock is held by the session.
        signer: Signs the checkpoints.
        sinks: Where they are kept outside the database; at least one.
        trusted: Earlier keys whose checkpoints the sinks may still hold.
        limit: Entries a transaction.
        new_sinks: Accept sinks that are all empty although the database has checkpoints.

    Raises:
        ConfigurationError: There is no sink, or `dsn` is not a connection string.
    """

    def __init__(
        self,
        dsn: str,
        signer: Signer,
        sinks: Sequence[Sink],
        *,
        trusted: Sequence[Verifier] = (),
        limit: int = 10_000,
        new_sinks: bool = False,
    ) -> None:
        """Keep the settings; nothing is opened."""
        if not sinks:
            raise ConfigurationError(
                "The sealer needs a place outside the database to keep checkpoints in."
            )
        # Plans are made for the values at hand: one plan for every low-water mark would be the
        # one that reads the whole table.
        self._target: Final = Target(dsn, prepare_threshold=None)
        self._signer: Final = signer
        self._sinks: Final = tuple(sinks)
        self._verifiers: Final = (signer.verifier, *trusted)
        self._limit: Final = limit
        self._new_sinks: Final = new_sinks
        self._session: _Session | None = None

    async def __aenter__(self) -> Self:
        """The sealer; the first round opens the connection."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of the lock."""
        await self.close()

    async def close(self) -> None:
        """Close the connection, and with it the lock. Safe to repeat."""
        session, self._session = self._session, None
        if session is not None:
            await session.conn.close()

    async def seal_once(self) -> Sealed:
        """Seal the next entries, at most `limit`, and sign the tree if it is larger than signed.

        The first call, and the first after an error, computes the whole tree again and compares
        it with what the sinks hold.

        Raises:
            SealerRunning: Another sealer is.
            ChainBroken: Stored entries or kept checkpoints contradict the tree; nothing of this
                batch was sealed and nothing was signed.
            NoteInvalid: A kept checkpoint is not one of this log by a known key.
            Unavailable: The database or a sink is not there now.
        """
        done = False
        try:
            if self._session is None:
                self._session = await self._open()
            batch = await self._seal(self._session)
            checkpoint = await self._publish(self._session)
            done = True
        finally:
            if not done:  # whatever is remembered may be wrong now
                await self.close()
        return Sealed(len(batch.rows), checkpoint, batch.more)

    async def follow(
        self,
        interval: float,
        stop: asyncio.Event,
        *,
        told: Callable[[Sealed], Awaitable[None]] | None = None,
    ) -> None:
        """Seal what comes, until told to stop.

        Once it has run, a database or sink that goes away is waited for.

        Args:
            interval: Seconds between two looks.
            stop: Ends it when set, after the round at hand.
            told: Called after each round that sealed or signed.

        Raises:
            SealerRunning: Another sealer was there first.
            Unavailable: Only in the first round.
            ChainBroken: As `seal_once`.
            NoteInvalid: As `seal_once`.
        """
        started = False
        while not stop.is_set():
            more = False
            try:
                sealed = await self.seal_once()
            except Unavailable as error:
                if not started:
                    raise
                _LOG.warning("sealing is interrupted: %s", error)
            else:
                started, more = True, sealed.more
                if told is not None and (sealed.entries or sealed.checkpoint):
                    await told(sealed)
            if not more:
                await _wait(stop, interval)

    async def _open(self) -> _Session:
        """Take the lock, then compute the tree again and compare it with what was kept."""
        conn = await self._target.connect()
        opened = False
        try:
            with translated(self._target.label):
                await check_schema(conn, self._target.label)
                row = await (await conn.execute(_SQL["try_lock"])).fetchone()
                if row != (True,):
                    raise SealerRunning(
                        f"Another sealer is running on {self._target.label}.",
                        hint="One is enough; stop it first to run another.",
                    )
                session = await self._compared(conn)
            opened = True
            return session
        finally:
            if not opened:
                await conn.close()

    async def _compared(self, conn: Connection) -> _Session:
        async with self._transaction(conn, transaction.SNAPSHOT):
            origin = await _origin(conn)
            outside = await from_sinks(self._sinks, origin, self._verifiers)
            inside = await from_database(conn, origin, self._verifiers)
            if inside and not outside and not self._new_sinks:
                raise ChainBroken(
                    f"The database has a checkpoint of size {inside.checkpoint.size}, but none is "
                    f"kept in {', '.join(sink.name for sink in self._sinks)}; nothing was signed.",
                    hint="Bring the kept checkpoints back, or say that this place is new.",
                )
            tree = await rebuild(conn, [*outside, inside] if inside else outside)
        sizes = [kept.checkpoint.size for kept in outside]
        return _Session(
            conn,
            origin,
            tree,
            newest=max(sizes, default=0),
            published=min(sizes) if len(sizes) == len(self._sinks) else 0,
            recorded=inside.checkpoint.size if inside else 0,
            low=LowWater(),
        )

    async def _seal(self, session: _Session) -> Batch:
        """Commit leaves for the next entries."""
        conn = session.conn
        async with self._transaction(conn, transaction.SNAPSHOT):
            batch = await session.low.take(conn, session.origin, self._limit)
            if batch.size != session.tree.size:
                raise ChainBroken(
                    f"The tree had {session.tree.size} leaves and now has {batch.size}: leaves "
                    "were written or taken away by somebody else; nothing was signed."
                )
            if batch.rows:
                await check(conn, batch.rows)
                parameters = {
                    "size": batch.size,
                    "entries": [row.id for row in batch.rows],
                    "hashes": batch.hashes,
                }
                await conn.execute(_SQL["insert_leaves"], parameters)
        session.low.sealed(batch)
        for leaf in batch.hashes:
            session.tree.append(leaf)
        return batch

    async def _publish(self, session: _Session) -> Checkpoint | None:
        """Sign the tree, keep the note outside, put it on record; what is done is left out."""
        size = session.tree.size
        if size == 0 or (size == session.published and size == session.recorded):
            return None
        for kept in await from_sinks(self._sinks, session.origin, self._verifiers):
            self._refuse(session, kept)
        checkpoint = Checkpoint(session.origin, size, session.tree.root())
        note = sign_note(checkpoint.text, [self._signer])
        for sink in self._sinks:
            await sink.publish(size, note)
        session.newest = session.published = size
        if session.recorded != size:
            await self._record(session, checkpoint, note)
        return checkpoint

    def _refuse(self, session: _Session, kept: Kept) -> None:
        """Look once more at what is kept: it was compared when the session began."""
        refuse_smaller(session.tree, kept)
        if kept.checkpoint.size == session.tree.size:
            refuse_other(session.tree, kept)
        elif kept.checkpoint.size > session.newest:
            raise ChainBroken(
                f"Somebody else put a checkpoint of size {kept.checkpoint.size} into {kept.place}."
            )

    async def _record(self, session: _Session, checkpoint: Checkpoint, note: bytes) -> None:
        async with self._transaction(session.conn, transaction.WRITE):
            parameters = {
                "size": checkpoint.size,
                "key_name": self._signer.verifier.name,
                "root": checkpoint.root,
                "note": note.decode(),
            }
            await session.conn.execute(_SQL["insert_checkpoint"], parameters)
        session.recorded = checkpoint.size

    @asynccontextmanager
    async def _transaction(
        self, conn: Connection, kind: transaction.Kind
    ) -> AsyncIterator[Connection]:
        label = self._target.label
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


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass

"""The sealer: gives entries their place in the tree and signs what the tree has become.

One at a time, on a connection of its own that no pooler shares. The order of duty: leaves are
committed, then the checkpoint is signed, then it is kept outside the database, then it is put on
record inside. A sealer that is stopped between two of these leaves work for the next one, never a
contradiction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from governance.chain.note import Checkpoint
from governance.chain.session import Session, Settings
from governance.chain.sinks import Sink
from governance.db.connection import Target
from governance.errors import ConfigurationError, Unavailable
from governance.signing import Signer, Verifier

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
        target = Target(dsn, prepare_threshold=None)
        self._settings: Final = Settings(
            target, signer, tuple(sinks), tuple(trusted), limit, new_sinks
        )
        self._session: Session | None = None

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
            await session.close()

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
                self._session = await Session.open(self._settings)
            batch = await self._session.seal()
            checkpoint = await self._session.publish()
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


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass

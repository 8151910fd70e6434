"""Keeps the claims of one worker process alive: one statement renews all that are due."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from governance import steps
from governance.db import Database
from governance.errors import Unavailable

logger = logging.getLogger(__name__)

_TICK: Final = 1.0


@dataclass
class _Held:
    attempt: uuid.UUID
    lease: float
    evicted: Callable[[], None]
    due: float


class Claims:
    """The claims this process holds.

    Renewal is independent of the activities' own heartbeats: every claim at a third of its lease.
    An attempt whose claim was taken over is told once; it can then be cancelled, and in any case
    records nothing.
    """

    def __init__(self, database: Database) -> None:
        """Hold nothing."""
        self._database = database
        self._held: dict[bytes, _Held] = {}

    def add(
        self, key: bytes, attempt: uuid.UUID, lease: float, evicted: Callable[[], None]
    ) -> None:
        """Renew this claim from now on; call `evicted` if another attempt took it."""
        self._held[key] = _Held(attempt, lease, evicted, time.monotonic() + lease / 3)

    def remove(self, key: bytes, attempt: uuid.UUID) -> None:
        """Renew this claim no more."""
        held = self._held.get(key)
        if held is not None and held.attempt == attempt:
            del self._held[key]

    async def renew_forever(self) -> None:
        """Renew until cancelled. A database that is away is tried again at the next tick."""
        while True:
            shortest = min((h.lease for h in self._held.values()), default=_TICK * 3)
            await asyncio.sleep(min(_TICK, shortest / 6))
            try:
                await self.renew_due(time.monotonic())
            except Unavailable as error:
                logger.warning("leases could not be renewed: %s", error)

    async def renew_due(self, now: float) -> None:
        """Renew the claims that are due at this monotonic time; tell those that were lost."""
        due = {key: held for key, held in self._held.items() if held.due <= now}
        if not due:
            return
        leases = [steps.Lease(key, held.attempt, held.lease) for key, held in due.items()]
        async with self._database.transaction() as conn:
            still = await steps.renew(conn, leases)
        for key, held in due.items():
            held.due = now + held.lease / 3
            if key not in still and self._held.get(key) is held:
                del self._held[key]
                held.evicted()

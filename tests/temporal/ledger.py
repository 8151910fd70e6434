"""Activities with effects that can be counted: a bank that pays as often as it is told to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from temporal_integration import governed_step


@dataclass(frozen=True)
class Paid:
    """One payment that was really made."""

    what: str
    key: str
    actor: str
    token: int


class Ledger:
    """Never looks at the idempotency key, so that every effect too many is seen."""

    def __init__(self) -> None:
        self.paid: list[Paid] = []
        self.noted: list[str] = []
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.entered: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.failures: list[BaseException] = []

    @property
    def activities(self) -> list[Any]:
        """What to register."""
        return [self.pay, self.pay_slowly, self.note, self.gate]

    @property
    def whats(self) -> list[str]:
        """What was paid, in order."""
        return [one.what for one in self.paid]

    @activity.defn
    async def pay(self, what: str) -> str:
        """Pay, or fail with the next of `failures`, after which the money is gone all the same."""
        step = governed_step()
        self.paid.append(Paid(what, step.idempotency_key, step.actor, step.token))
        if self.failures:
            raise self.failures.pop(0)
        return f"paid {what}"

    @activity.defn
    async def pay_slowly(self, what: str) -> str:
        """Pay when the gate of that name is opened."""
        self.entered[what].set()
        await self.gates[what].wait()
        return await self.pay(what)

    @activity.defn(name="pay_slowly")
    async def wait(self, what: str) -> str:
        """In the place of `pay_slowly` where nothing is governed: hear of a cancellation soon."""
        self.entered[what].set()
        while not self.gates[what].is_set():
            activity.heartbeat()
            await asyncio.sleep(0.02)
        return f"paid {what}"

    @activity.defn
    async def note(self, what: str) -> str:
        """No contract asks anything for this one."""
        self.noted.append(what)
        return f"noted {what}"

    @activity.defn
    async def gate(self, name: str) -> None:
        """Wait until the gate of that name is opened."""
        self.entered[name].set()
        await self.gates[name].wait()

"""Workflows that pay, written as any team writes them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

TIMEOUT = timedelta(seconds=20)
ONCE = RetryPolicy(maximum_attempts=1)


async def pay(what: str, activity: str = "pay") -> str:
    """Pay, without retries."""
    reference: str = await workflow.execute_activity(
        activity, what, result_type=str, start_to_close_timeout=TIMEOUT, retry_policy=ONCE
    )
    return reference


async def gate(name: str) -> None:
    """Wait until the test opens the gate."""
    await workflow.execute_activity("gate", name, start_to_close_timeout=TIMEOUT)


@workflow.defn
class PayOnce:
    """One payment."""

    @workflow.run
    async def run(self, what: str) -> str:
        return await pay(what)


@workflow.defn
class PaySlowlyOnce:
    """One payment that the bank takes its time for."""

    @workflow.run
    async def run(self, what: str) -> str:
        return await pay(what, "pay_slowly")


@workflow.defn
class PayAroundGate:
    """A payment, a gate, a payment."""

    @workflow.run
    async def run(self) -> None:
        await pay("before")
        await gate("middle")
        await pay("after")


@workflow.defn
class PayBoth:
    """Two payments, each after a gate of its own."""

    @workflow.run
    async def run(self, one: str, two: str) -> list[str]:
        return list(await asyncio.gather(self._branch("first", one), self._branch("second", two)))

    async def _branch(self, name: str, what: str) -> str:
        await gate(name)
        return await pay(what)


@workflow.defn
class PayThree:
    """Three payments at once."""

    @workflow.run
    async def run(self) -> list[str]:
        return list(await asyncio.gather(pay("a"), pay("b"), pay("c")))


@workflow.defn
class PayInTurn:
    """Payments one after the other."""

    @workflow.run
    async def run(self, whats: list[str]) -> list[str]:
        return [await pay(what) for what in whats]


@workflow.defn
class PayAgainAfterFailure:
    """Its own retry loop."""

    @workflow.run
    async def run(self, tries: int) -> str:
        for _ in range(tries - 1):
            try:
                return await pay("once")
            except ActivityError:
                continue
        return await pay("once")


@workflow.defn
class PayThenContinue:
    """Pay, continue as new once and pay again."""

    @workflow.run
    async def run(self, generation: int) -> str:
        reference = await pay("same")
        if generation == 0:
            workflow.continue_as_new(1)
        return reference


@workflow.defn
class PayThenFail:
    """Pay; the first attempts of the workflow then fail."""

    @workflow.run
    async def run(self, attempts: int) -> str:
        reference = await pay("same")
        if workflow.info().attempt < attempts:
            raise ApplicationError("not yet", type="NotYet")
        return reference


@workflow.defn
class PayAndListen:
    """One payment; a signal of its own that makes a workflow task."""

    @workflow.run
    async def run(self, what: str) -> str:
        return await pay(what)

    @workflow.signal
    def poke(self) -> None:
        """Nothing."""


@workflow.defn
class PaySlowlyBeating:
    """One payment whose activity has to heartbeat every second."""

    @workflow.run
    async def run(self, what: str) -> str:
        result: str = await workflow.execute_activity(
            "pay_slowly",
            what,
            result_type=str,
            start_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=1),
        )
        return result


@workflow.defn
class PayByCardThenCash:
    """When the card is declined, the code pays in cash."""

    @workflow.run
    async def run(self) -> str:
        try:
            return await pay("42", "pay_card")
        except ActivityError:
            return await pay("42", "pay_cash")

"""Workflows that end while approvals are asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from tests.temporal.flows.pay import TIMEOUT, pay

# Bounded only because an eviction from the worker's cache is swallowed too.
_OFTEN = 200


@workflow.defn
class EndWhileHeld:
    """Asks for approvals, waits for `go` and ends as told, without waiting for them."""

    def __init__(self) -> None:
        self._go = False
        self._tasks: list[asyncio.Task[Any]] = []

    @workflow.run
    async def run(self, how: str) -> str:
        if how == "ended":
            return "ended"
        self._tasks = [asyncio.create_task(pay(what)) for what in ("a", "b", "c")]
        if how == "at_once":
            return how
        await workflow.wait_condition(lambda: self._go)
        if how == "fail":
            raise ApplicationError("ended", type="Ended")
        if how == "continue":
            workflow.continue_as_new("ended")
        if how == "cancelled_handles":
            for task in self._tasks:
                task.cancel()
        return how

    @workflow.signal
    def go(self) -> None:
        """End now."""
        self._go = True

    @workflow.signal
    async def fail_now(self) -> None:
        """End from a signal handler."""
        raise ApplicationError("ended by a signal", type="Ended")


@workflow.defn
class Swallow:
    """Whatever happens to its payments, it goes on, in the way it is told to."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._log: list[str] = []

    @workflow.run
    async def run(self, how: str) -> str:
        if how == "done":
            return "done"
        if how == "in_update":
            await workflow.wait_condition(lambda: False)
        if how == "in_background":
            self._tasks.append(asyncio.create_task(self._swallow()))
            await workflow.wait_condition(lambda: False)
        await self._swallow()
        if how == "sleep":
            await workflow.wait_condition(lambda: False)
        if how == "continue":
            workflow.continue_as_new("done")
        if how == "fail":
            raise ApplicationError("something else", type="Else")
        if how == "other":
            await workflow.execute_activity("note", "after", start_to_close_timeout=TIMEOUT)
        for _ in range(_OFTEN if how == "again" else 0):
            await self._swallow()
        if how == "swallow_sleep":
            await self._sleep_on()
        return how

    @workflow.signal
    def poke(self) -> None:
        """Nothing."""

    @workflow.update
    async def pay(self, what: str) -> str:
        """Pay in an update handler."""
        return await pay(what)

    async def _sleep_on(self) -> None:
        for _ in range(_OFTEN):
            try:
                await asyncio.sleep(3600)
            except BaseException as error:  # noqa: BLE001 - that is what it is for
                self._log.append(repr(error))

    async def _swallow(self) -> None:
        try:
            await pay("a")
        except BaseException as error:  # noqa: BLE001 - that is what it is for
            self._log.append(repr(error))


@workflow.defn
class Careful:
    """What plain code is told at the call itself."""

    @workflow.run
    async def run(self, how: str) -> str:
        options: dict[str, Any] = {"result_type": str, "start_to_close_timeout": TIMEOUT}
        if how == "no_timeout":
            del options["start_to_close_timeout"]
        argument: Any = ["first"] if how == "mutated" else "42"
        if how == "unserialisable":
            argument = object()
        try:
            handle = workflow.start_activity("pay_list", argument, **options)
        except (ValueError, TypeError) as error:
            return f"{type(error).__name__} at the call"
        if how == "mutated":
            argument.append("later")
        return str(await handle)

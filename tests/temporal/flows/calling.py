"""The same payment, called in every way the SDK has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from tests.temporal.flows.failing import seen
from tests.temporal.flows.pay import ONCE, TIMEOUT, pay

with workflow.unsafe.imports_passed_through():
    from tests.temporal.ledger import Ledger

OPTIONS: dict[str, Any] = {"start_to_close_timeout": TIMEOUT, "retry_policy": ONCE}

WAYS: dict[str, Callable[[], Any]] = {
    "name": lambda: workflow.execute_activity("pay", "42", result_type=str, **OPTIONS),
    "method": lambda: workflow.execute_activity_method(Ledger.pay, "42", **OPTIONS),
    "handle": lambda: workflow.start_activity("pay", "42", result_type=str, **OPTIONS),
    "local": lambda: workflow.execute_local_activity("pay", "42", result_type=str, **OPTIONS),
    "local_handle": lambda: workflow.start_local_activity("pay", "42", result_type=str, **OPTIONS),
    "shielded": lambda: asyncio.shield(pay("42")),
    "task": lambda: asyncio.create_task(pay("42")),
}


@workflow.defn
class Calling:
    """Pays in the way it is told to; says how it failed."""

    def __init__(self) -> None:
        self._paid: list[str] = []

    @workflow.run
    async def run(self, way: str) -> str:
        if way == "signal":
            await workflow.wait_condition(lambda: bool(self._paid))
            return self._paid[0]
        try:
            return str(await WAYS[way]())
        except (ActivityError, ApplicationError) as error:
            return seen(error)

    @workflow.signal
    async def pay_now(self, what: str) -> None:
        """Pay in a signal handler."""
        self._paid.append(await pay(what))

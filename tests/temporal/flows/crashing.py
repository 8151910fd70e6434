"""A payment whose attempts may be lost."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from tests.temporal.flows.failing import seen


@workflow.defn
class PayUnderLimit:
    """One payment, at a bank that may be elsewhere; after 2 s an attempt is made again."""

    @workflow.run
    async def run(self, what: str, bank: str | None = None) -> str:
        reference: str = await workflow.execute_activity(
            "pay",
            what,
            result_type=str,
            task_queue=bank,
            start_to_close_timeout=timedelta(seconds=2),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=50)),
        )
        return reference


@workflow.defn
class PaySlowly:
    """One payment that takes as long as it takes; says how the wait for it ended."""

    @workflow.run
    async def run(self, what: str) -> str:
        try:
            reference: str = await workflow.execute_activity(
                "pay_slowly", what, result_type=str, start_to_close_timeout=timedelta(minutes=1)
            )
        except ActivityError as error:
            return seen(error)
        return reference

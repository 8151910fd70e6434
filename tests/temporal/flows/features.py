"""A workflow that no contract names, with most of what the SDK has."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

SOON: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=10)}


@workflow.defn
class FeatureChild:
    """A child that answers."""

    @workflow.run
    async def run(self, what: str) -> str:
        return f"child of {what}"


@workflow.defn
class Features:
    """Uses one feature after the other, then waits for its handlers, then continues as new."""

    def __init__(self) -> None:
        self._log: list[str] = []
        self._done = False

    @workflow.run
    async def run(self, generation: int) -> list[str]:
        if generation == 1:
            return ["continued"]
        await self._activities()
        await self._cancelled()
        if workflow.patched("a-feature"):
            self._log.append(str(workflow.uuid4()))
        workflow.upsert_memo({"note": len(str(workflow.random().random())) > 0})
        child = await workflow.execute_child_workflow(
            FeatureChild.run, "features", id=f"{workflow.info().workflow_id}-child"
        )
        self._log.append(child)
        await workflow.wait_condition(lambda: self._done)
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(1)

    async def _activities(self) -> None:
        retry = RetryPolicy(maximum_attempts=2, non_retryable_error_types=["Never"])
        await workflow.execute_activity("note", "one", retry_policy=retry, summary="s", **SOON)
        await workflow.execute_local_activity("note", "two", **SOON)
        await workflow.execute_activity("note", "three", activity_id="mine", **SOON)
        try:
            await workflow.execute_activity("fail", "x", **SOON)
        except ActivityError as error:
            self._log.append(str(error.cause))

    async def _cancelled(self) -> None:
        handle = workflow.start_activity("note", "never", **SOON)
        handle.cancel()
        try:
            await handle
        except (ActivityError, asyncio.CancelledError):
            self._log.append("cancelled")
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            self._log.append("timed out")

    @workflow.signal
    async def add(self, what: str) -> None:
        """Call an activity from a signal handler."""
        self._log.append(await workflow.execute_activity("note", what, result_type=str, **SOON))

    @workflow.signal(dynamic=True)
    def anything(self, name: str, args: Sequence[RawValue]) -> None:
        """Any other signal."""
        self._log.append(f"{name} {len(args)}")

    @workflow.query
    def log(self) -> list[str]:
        """What happened so far."""
        return self._log

    @workflow.update
    async def plain(self, what: str) -> str:
        """An update without a validator."""
        return str(await workflow.execute_activity("note", what, result_type=str, **SOON))

    @workflow.update
    async def finish(self, what: str) -> str:
        """An update with one."""
        self._done = True
        return what

    @finish.validator
    def only_now(self, what: str) -> None:
        """Refuse anything else."""
        if what != "now":
            raise ApplicationError("not now")

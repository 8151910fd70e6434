"""Workflows that end a waiting call in every way there is, and say what they saw."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

TIMEOUT = timedelta(seconds=30)


def call() -> workflow.ActivityHandle[str]:
    """The call that waits: for an approval under a contract, else for its activity."""
    handle: workflow.ActivityHandle[str] = workflow.start_activity(
        "pay_slowly",
        "42",
        result_type=str,
        start_to_close_timeout=TIMEOUT,
        heartbeat_timeout=timedelta(milliseconds=500),
        retry_policy=RetryPolicy(maximum_attempts=1),
        cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
    )
    return handle


def seen(error: BaseException) -> str:
    """What user code can tell about an error."""
    text = type(error).__name__
    if isinstance(error, ActivityError):
        text += f"[{error.activity_type} {error.retry_state}]"
    if isinstance(error, ApplicationError):
        text += f"[{error.type}]"
    return text if error.__cause__ is None else f"{text} <- {seen(error.__cause__)}"


@workflow.defn
class Ending:
    """Ends the wait as it is told to."""

    def __init__(self) -> None:
        self._seen: list[str] = []

    @workflow.run
    async def run(self, how: str) -> list[str]:
        way: Any = getattr(self, how)
        await way()
        return self._seen

    async def handle_cancel(self) -> None:
        handle = call()
        await asyncio.sleep(0.05)
        self._seen.append(str(handle.cancel()))
        async with self._caught():
            await handle
        self._seen.append(str(handle.cancelled()))
        self._seen.append(str(handle.done()))

    async def handle_cancel_at_once(self) -> None:
        handle = call()
        handle.cancel()
        async with self._caught():
            await handle

    async def wait_for(self) -> None:
        async with self._caught():
            await asyncio.wait_for(call(), 0.1)

    async def timeout(self) -> None:
        async with self._caught():
            async with asyncio.timeout(0.1):
                await call()

    async def task_cancel(self) -> None:
        task = asyncio.create_task(self._wait())
        await asyncio.sleep(0.05)
        task.cancel()
        async with self._caught():
            await task

    async def group(self) -> None:
        async with self._caught(), asyncio.TaskGroup() as group:
            group.create_task(self._wait())
            group.create_task(self._fail_soon())

    async def gather(self) -> None:
        async with self._caught():
            await asyncio.gather(self._wait(), self._fail_soon())

    async def cancelled_and_caught(self) -> None:
        async with self._caught():
            await call()

    async def cancelled(self) -> None:
        await call()

    async def cancelled_and_cleaned_up(self) -> None:
        try:
            await call()
        except ActivityError as error:
            self._seen.append(seen(error))
            await workflow.execute_activity("note", "undone", start_to_close_timeout=TIMEOUT)
            raise

    async def shielded(self) -> None:
        async with self._caught():
            await asyncio.wait_for(asyncio.shield(call()), 0.1)

    async def _wait(self) -> str:
        return await call()

    async def _fail_soon(self) -> None:
        await asyncio.sleep(0.05)
        raise ApplicationError("other branch", type="Other")

    @contextlib.asynccontextmanager
    async def _caught(self) -> AsyncGenerator[None]:
        try:
            yield
        except BaseExceptionGroup as group:
            self._seen.extend(seen(one) for one in group.exceptions)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - any is told
            self._seen.append(seen(error))

"""Records how executions end, on the server's word.

A run that is about to end is a hint to ask the server, at once; a sweep over closed workflows finds
the ends nobody told of: terminated, timed out, a hint lost with its worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from governance import executions
from governance.errors import Unavailable
from governance.executions import Run
from governance.names import ExecutionState
from temporal_integration._runtime import Runtime

logger = logging.getLogger(__name__)

_TRIES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_SWEEP_EVERY: Final = 10.0
_OVERLAP: Final = timedelta(seconds=60)
_FIRST_SWEEP: Final = timedelta(days=3)
_REMEMBERED: Final = 10_000

_STATES: Final = {
    WorkflowExecutionStatus.COMPLETED: (ExecutionState.COMPLETED, ""),
    WorkflowExecutionStatus.FAILED: (ExecutionState.FAILED, ""),
    WorkflowExecutionStatus.CANCELED: (ExecutionState.CANCELLED, ""),
    WorkflowExecutionStatus.TERMINATED: (ExecutionState.FAILED, "terminated"),
    WorkflowExecutionStatus.TIMED_OUT: (ExecutionState.FAILED, "timed_out"),
}


class Endings:
    """Looks at what ended and records it, once each."""

    def __init__(self, runtime: Runtime, flows: frozenset[str]) -> None:
        """Look at runs of these workflow types."""
        self._runtime = runtime
        self._flows = flows
        self._hints: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._since = datetime.now(UTC) - _FIRST_SWEEP

    def hint(self, workflow_id: str, run_id: str) -> None:
        """This run is about to end. Called from workflow threads; never waits."""
        if self._loop is not None and not self._loop.is_closed():
            # Not before the server had time to take the end in: until then it is in the way.
            self._loop.call_soon_threadsafe(
                self._loop.call_later, _TRIES[0], self._hints.put_nowait, (workflow_id, run_id)
            )

    async def run_forever(self) -> None:
        """Look at hints as they come and sweep now and then, until cancelled."""
        self._loop = asyncio.get_running_loop()
        next_sweep = time.monotonic()
        looking: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    pause = max(0.0, next_sweep - time.monotonic())
                    async with asyncio.timeout(pause):  # wait_for of 3.11 loses cancellations
                        hint = await self._hints.get()
                    task = asyncio.create_task(self._look_soon(*hint))
                    looking.add(task)
                    task.add_done_callback(looking.discard)
                except TimeoutError:
                    next_sweep = time.monotonic() + _SWEEP_EVERY
                    await self._guarded(self._sweep())
        finally:
            for task in looking:
                task.cancel()

    async def look_at_execution(self, execution: uuid.UUID, workflow_id: str) -> None:
        """No run of this workflow id took a signal: end the execution if the server agrees."""

        async def look() -> bool:
            return await self._look(workflow_id, await self._last_run(execution))

        await self._guarded(look())

    async def _last_run(self, execution: uuid.UUID) -> str:
        async with self._runtime.database.reading() as conn:
            return await executions.last_run(conn, execution)

    async def _look_soon(self, workflow_id: str, run_id: str) -> None:
        """The run is told to end before the server has taken its end: ask until it has."""
        for pause in (0, *_TRIES[1:]):
            await asyncio.sleep(pause)
            if await self._guarded(self._look(workflow_id, run_id)):
                return

    async def _guarded(self, work: Coroutine[Any, Any, bool]) -> bool:
        try:
            return await work
        except (Unavailable, RPCError) as error:
            logger.warning("how a workflow ended is looked at later: %s", error)
            return False

    async def _look(self, workflow_id: str, run_id: str) -> bool:
        """Record how a run ended; True when there is nothing more to do about it."""
        run = await self._runtime.find_run(run_id)
        if run is None:
            return True
        try:
            found = await self._client.get_workflow_handle(workflow_id, run_id=run_id).describe()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return True  # the server has forgotten it: retention
        return await self._record(run, found.status)

    async def _record(self, run: Run, status: WorkflowExecutionStatus | None) -> bool:
        if status == WorkflowExecutionStatus.RUNNING or status is None:
            return False
        ended = _STATES.get(status)
        if ended is None:
            return True  # continued as new: the next run goes on
        if await self._last_run(run.execution) != run.run_id or await self._goes_on(run):
            return True  # how a later run ends is how the execution ends
        state, code = ended
        await self._runtime.database.run(
            lambda conn: executions.close_execution(
                conn, run.execution, state, code=code, run_id=run.run_id
            )
        )
        return True

    async def _goes_on(self, run: Run) -> bool:
        """Whether a later run of the same execution is open: a retry, or a reset."""
        try:
            current = await self._client.get_workflow_handle(run.workflow_id).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise
        if current.status != WorkflowExecutionStatus.RUNNING or current.run_id == run.run_id:
            return False
        return await self._same_execution(run, current)

    async def _same_execution(self, run: Run, current: WorkflowExecutionDescription) -> bool:
        known = await self._runtime.find_run(current.run_id)
        if known is not None:
            return known.execution == run.execution
        facts = await self._runtime.facts(run.workflow_id, current.run_id)
        # Not opened yet. Of the same chain it goes on; an id used again starts a new one.
        return facts.predecessor() is not None

    async def _sweep(self) -> bool:
        """Record the ends of closed runs that were closed since the last sweep."""
        if not self._flows:
            return True
        types = ", ".join("'" + flow.replace("'", "''") + "'" for flow in sorted(self._flows))
        since = (self._since - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        query = (
            f"WorkflowType IN ({types}) AND ExecutionStatus != 'Running' AND CloseTime >= '{since}'"
        )
        newest = self._since
        async for found in self._client.list_workflows(query):
            newest = max(newest, found.close_time or newest)
            if found.run_id not in self._seen:
                await self._swept(found.run_id, found.status)
        self._since = newest
        return True

    async def _swept(self, run_id: str, status: WorkflowExecutionStatus | None) -> None:
        run = await self._runtime.find_run(run_id)
        if run is None or await self._record(run, status):
            self._seen[run_id] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    @property
    def _client(self) -> Client:
        return self._runtime.client

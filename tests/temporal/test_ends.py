"""A run that ends takes its questions with it, and does not stall on them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from governance.names import ApprovalState, ExecutionState, Verdict
from tests.temporal.contracts import contract
from tests.temporal.flows.ending import EndWhileHeld
from tests.temporal.flows.pay import PayOnce, PayThree
from tests.temporal.playing import Play, Scene, at_once, new_worker
from tests.temporal.stage import Handle, Stage, failure, result

STALLED = 2.0
ENDS = {
    "return": ExecutionState.COMPLETED,
    "fail": ExecutionState.FAILED,
    "continue": ExecutionState.COMPLETED,
    "cancelled_handles": ExecutionState.COMPLETED,
    "at_once": ExecutionState.COMPLETED,
}


@pytest.mark.parametrize("how", ENDS)
async def test_nothing_is_asked_after_the_end(play: Play, how: str) -> None:
    async with play(EndWhileHeld) as stage:
        handle = await stage.start(EndWhileHeld.run, how)
        if how != "at_once":
            await stage.pending(3)
            await handle.signal(EndWhileHeld.go)
        await _ended(stage, handle)
        assert await stage.ended(handle) == ENDS[how]


async def test_nothing_is_asked_after_a_cancellation(play: Play) -> None:
    async with play(EndWhileHeld) as stage:
        handle = await stage.start(EndWhileHeld.run, "return")
        await stage.pending(3)
        await handle.cancel()
        await _ended(stage, handle)
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
        assert await stage.ended(handle) == ExecutionState.CANCELLED


async def test_nothing_is_asked_after_a_handler_failed_the_run(play: Play) -> None:
    async with play(EndWhileHeld) as stage:
        handle = await stage.start(EndWhileHeld.run, "return")
        await stage.pending(3)
        await handle.signal(EndWhileHeld.fail_now)
        await _ended(stage, handle)
        assert await stage.ended(handle) == ExecutionState.FAILED


async def test_cancelled_before_its_first_task(play: Play, scene: Scene) -> None:
    contracts = [contract("PayOnce")]
    async with scene(contracts=contracts) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await handle.cancel()
        async with new_worker(stage, PayOnce):
            with pytest.raises(WorkflowFailureError):
                await result(handle)
            assert await stage.ended(handle) == ExecutionState.CANCELLED
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
        assert stage.ledger.paid == []


@pytest.mark.parametrize(("how", "code"), [("terminate", "terminated"), ("timeout", "timed_out")])
async def test_an_end_that_no_code_sees(play: Play, how: str, code: str) -> None:
    """The next wake-up finds nobody; until then the step is refused by the border."""
    async with play(PayOnce) as stage:
        timeout = timedelta(seconds=2) if how == "timeout" else None
        handle = await stage.start(PayOnce.run, "42", execution_timeout=timeout)
        await stage.pending()
        if how == "terminate":
            await handle.terminate()
        with pytest.raises(WorkflowFailureError):
            await result(handle)
        await stage.approve()
        assert await stage.ended(handle) == ExecutionState.FAILED
        assert (await stage.execution(handle))["code"] == code


async def test_three_denied_at_once(play: Play) -> None:
    """Twenty runs at a time; a run that ends while a local activity is out stalls 10 s and more."""
    async with play(PayThree) as stage:
        handles = [await stage.start(PayThree.run) for _ in range(at_once(20))]
        waiting = await stage.pending(3 * len(handles))
        await stage.revoke()
        took = []
        for handle in handles:
            mine = [one for one in waiting if one["workflow_id"] == handle.id]
            started = time.monotonic()
            await asyncio.gather(*(stage.decide(one, Verdict.APPROVE) for one in mine))
            cause = await failure(handle)
            took.append(time.monotonic() - started)
            assert isinstance(cause, ApplicationError)
            assert cause.type == "resume_denied"
        assert max(took) < STALLED, took
        assert stage.ledger.paid == []


async def _ended(stage: Stage, handle: Handle) -> None:
    """The run ends soon, and in one workflow task that nobody refused."""
    started = time.monotonic()
    with contextlib.suppress(WorkflowFailureError):
        await result(handle)
    assert time.monotonic() - started < STALLED
    await stage.ended(handle)
    assert {one["state"] for one in await stage.approvals()} <= {ApprovalState.WITHDRAWN}
    failed = await stage.event_ids(handle, EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)
    timed_out = await stage.event_ids(handle, EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
    assert failed == timed_out == []
    assert stage.ledger.paid == []

"""Nobody starts a governed flow as nobody."""

from __future__ import annotations

import uuid

import pytest
from psycopg.sql import SQL
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
    WithStartWorkflowOperation,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError

from governance.errors import ActorMissing
from temporal_integration import acting_as, current_actor
from tests.temporal.flows.ending import Swallow
from tests.temporal.flows.pay import PayOnce
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, Stage, failure, result

REFUSED = SQL("SELECT count(*) FROM governance.entry WHERE type = 'flow.refused'")


async def test_the_client_refuses(play: Play) -> None:
    async with play(PayOnce) as stage:
        with pytest.raises(ActorMissing, match="acting_as"):
            await stage.start(PayOnce.run, "42", actor=None)
        with pytest.raises(ActorMissing):
            await stage.start("PayOnce", "42", actor=None)


async def test_started_by_a_client_without_the_plugin(play: Play, temporal_address: str) -> None:
    """It fails before its first step, and that is on record."""
    async with play(PayOnce) as stage:
        plain = await Client.connect(temporal_address)
        handle = await plain.start_workflow(
            PayOnce.run, "42", id=f"wf-{uuid.uuid4().hex}", task_queue=stage.queue
        )
        cause = await failure(handle)
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.non_retryable) == ("actor_missing", True)
        assert stage.ledger.paid == []
        assert await stage.executions(handle) == []
        assert await stage.rows(REFUSED) == [(1,)]


async def test_signal_with_start(play: Play) -> None:
    async with play(Swallow) as stage:
        handle = await stage.start(Swallow.run, "return", start_signal="poke")
        await stage.approve()
        assert await result(handle) == "return"
        assert (await stage.execution(handle))["actor"] == "olga"


async def test_update_with_start(play: Play) -> None:
    async with play(Swallow) as stage:
        with pytest.raises(ActorMissing):
            await _update_with_start(stage)
        with acting_as("olga"):
            handle, update = await _update_with_start(stage)
        await stage.approve()
        assert await update.result() == "paid 42"
        assert (await stage.execution(handle))["actor"] == "olga"


async def _update_with_start(stage: Stage) -> tuple[Handle, WorkflowUpdateHandle[str]]:
    start = WithStartWorkflowOperation(
        Swallow.run,
        "in_update",
        id=f"wf-{uuid.uuid4().hex}",
        task_queue=stage.queue,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
    )
    update = await stage.client.start_update_with_start_workflow(
        Swallow.pay,
        "42",
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        start_workflow_operation=start,
    )
    return await start.workflow_handle(), update


async def test_a_schedule_starts_as_who_made_it(play: Play) -> None:
    async with play(PayOnce) as stage:
        name = f"schedule-{uuid.uuid4().hex}"
        action = ScheduleActionStartWorkflow(PayOnce.run, "42", id=name, task_queue=stage.queue)
        schedule = Schedule(action=action, spec=ScheduleSpec())
        with pytest.raises(ActorMissing):
            await stage.client.create_schedule(name, schedule)
        with acting_as("olga"):
            made = await stage.client.create_schedule(name, schedule, trigger_immediately=True)
        await stage.approve()
        await stage.paid(1)
        assert stage.ledger.paid[0].actor == "olga"
        await made.delete()


def test_an_actor_is_an_id() -> None:
    for wrong in ("", "x" * 513):
        with pytest.raises(ValueError, match="1 to 512"), acting_as(wrong):
            pass
    with acting_as("olga"), acting_as("felix"):
        assert current_actor() == "felix"
    assert current_actor() is None

"""Histories replay without a database, and a replay does nothing a second time."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Replayer, Worker

from governance.names import ExecutionState
from temporal_integration import GovernancePlugin, _local_activities
from tests.temporal.contracts import contract
from tests.temporal.flows.ending import EndWhileHeld, Swallow
from tests.temporal.flows.pay import PayInTurn, PayOnce, PayThenContinue
from tests.temporal.ledger import Ledger
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, Stage, failure, result

FLOWS = [PayOnce, PayInTurn, PayThenContinue, EndWhileHeld, Swallow]
Kind = Callable[[Stage], Awaitable[Handle]]


async def held(stage: Stage) -> Handle:
    handle = await stage.start(PayOnce.run, "42")
    await stage.pending()
    return handle


async def approved(stage: Stage) -> Handle:
    handle = await stage.start(PayInTurn.run, ["1", "2"])
    for _ in range(2):
        await stage.approve()
    await result(handle)
    return handle


async def denied(stage: Stage) -> Handle:
    handle = await held(stage)
    await stage.revoke()
    await stage.approve()
    await failure(handle)
    return handle


async def denied_and_swallowed(stage: Stage) -> Handle:
    handle = await stage.start(Swallow.run, "sleep")
    await stage.pending()
    await stage.revoke()
    await stage.approve()
    await failure(handle)
    return handle


async def rejected(stage: Stage) -> Handle:
    handle = await held(stage)
    await stage.reject()
    await failure(handle)
    return handle


async def cancelled(stage: Stage) -> Handle:
    handle = await held(stage)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await result(handle)
    return handle


async def ended_while_held(stage: Stage) -> Handle:
    handle = await stage.start(EndWhileHeld.run, "return")
    await stage.pending(3)
    await handle.signal(EndWhileHeld.go)
    await result(handle)
    return handle


async def reset(stage: Stage) -> Handle:
    again = await stage.reset(await approved(stage))
    await result(again)
    return again


async def continued(stage: Stage) -> Handle:
    handle = await stage.start(PayThenContinue.run, 0)
    for _ in range(2):
        await stage.approve()
    await result(handle)
    run_id = (await handle.describe()).run_id
    return stage.client.get_workflow_handle(handle.id, run_id=run_id)


async def refused(stage: Stage) -> Handle:
    plain = await Client.connect(stage.client.service_client.config.target_host)
    handle = await plain.start_workflow(
        PayOnce.run, "42", id=f"wf-{uuid.uuid4().hex}", task_queue=stage.queue
    )
    await failure(handle)
    return handle


KINDS: list[Kind] = [
    held,
    approved,
    denied,
    denied_and_swallowed,
    rejected,
    cancelled,
    ended_while_held,
    reset,
    continued,
    refused,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
async def test_without_a_database(play: Play, monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    async with play(*FLOWS) as stage:
        handle = await kind(stage)
        run = stage.client.get_workflow_handle(
            handle.id, run_id=handle.run_id or handle.result_run_id
        )
        history = await run.fetch_history()
    monkeypatch.delenv("GOVERNANCE_DATABASE_URL", raising=False)
    plugin = GovernancePlugin(contracts=[contract(flow.__name__) for flow in FLOWS])
    await Replayer(workflows=FLOWS, plugins=[plugin]).replay_workflow(history)


async def test_a_history_from_before_the_plugin(temporal_address: str) -> None:
    """It goes on as it was; nothing of ours is put into it."""
    ledger = Ledger()
    client = await Client.connect(temporal_address)
    queue = f"before-{uuid.uuid4().hex}"
    worker = Worker(
        client, task_queue=queue, workflows=[PayOnce], activities=[ledger.wait, plain_pay]
    )
    async with worker:
        handle = await client.start_workflow(PayOnce.run, "42", id=queue, task_queue=queue)
        await result(handle)
        history = await handle.fetch_history()
    plugin = GovernancePlugin(contracts=[contract("PayOnce")])
    await Replayer(workflows=[PayOnce], plugins=[plugin]).replay_workflow(history)


@activity.defn(name="pay")
async def plain_pay(what: str) -> str:
    return what


async def test_nothing_repeats_without_a_cache(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task replays the whole history; each local activity ran as often as it has markers."""
    asked: Counter[str] = Counter()
    answer = _local_activities._answer

    async def counted(work: Any, text: str) -> str:
        asked[activity.info().activity_type] += 1
        return await answer(work, text)

    monkeypatch.setattr(_local_activities, "_answer", counted)
    async with play(PayInTurn, worker={"max_cached_workflows": 0}) as stage:
        handle = await stage.start(PayInTurn.run, ["1", "2", "3"])
        for _ in range(3):
            await stage.approve()
        assert await result(handle) == ["paid 1", "paid 2", "paid 3"]
        markers = await stage.event_ids(handle, EventType.EVENT_TYPE_MARKER_RECORDED)
        assert asked.total() == len(markers)
        assert asked["governance.request"] == 3
        assert stage.ledger.whats == ["1", "2", "3"]
        assert await stage.ended(handle) == ExecutionState.COMPLETED
        types = Counter(await stage.types(handle))
        assert types["flow.started"] == types["flow.completed"] == 1
        assert types["approval.requested"] == types["step.claimed"] == types["step.executed"] == 3

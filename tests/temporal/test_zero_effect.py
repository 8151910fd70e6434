"""Workflows that no contract names have the histories they have without the plugin."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from tests.temporal.contracts import contract
from tests.temporal.flows.features import FeatureChild, Features
from tests.temporal.ledger import Ledger
from tests.temporal.playing import Scene
from tests.temporal.stage import result, until

# How many workflow tasks there are depends on what arrives together.
_TASKS = ("WORKFLOW_TASK_",)
# What two runs of one program differ in.
_OWN = frozenset(
    {
        "acceptedRequestMessageId",
        "continuedExecutionRunId",
        "eventId",
        "firstExecutionRunId",
        "identity",
        "newExecutionRunId",
        "originalExecutionRunId",
        "protocolInstanceId",
        "requestId",
        "runId",
        "stackTrace",
        "taskId",
        "workerVersion",
    }
)


@activity.defn
async def fail(what: str) -> None:
    raise ApplicationError(f"no {what}", non_retryable=True)


RUNNERS = [SandboxedWorkflowRunner(), UnsandboxedWorkflowRunner()]


@pytest.mark.parametrize("runner", RUNNERS, ids=["sandboxed", "unsandboxed"])
async def test_equal_histories(scene: Scene, temporal_address: str, runner: WorkflowRunner) -> None:
    name = f"features-{uuid.uuid4().hex[:8]}"
    plain = await _histories(await Client.connect(temporal_address), name, runner)
    async with scene(contracts=[contract("PayOnce")]) as stage:
        governed = await _histories(stage.client, name, runner)
    assert len(plain) == len(governed) == 3
    for without, with_plugin in zip(plain, governed, strict=True):
        assert without == with_plugin


async def _histories(client: Client, name: str, runner: WorkflowRunner) -> list[list[Any]]:
    """Play with the workflow; the histories of its two runs and its child."""
    worker = Worker(
        client,
        task_queue=name,
        workflows=[Features, FeatureChild],
        activities=[Ledger().note, fail],
        workflow_runner=runner,
    )
    async with worker:
        handle = await client.start_workflow(Features.run, 0, id=name, task_queue=name)
        await until(lambda: _noted(handle, "child of features"))
        await handle.signal(Features.add, "four")
        await until(lambda: _noted(handle, "noted four"))
        await handle.signal("whatever", args=[1, 2])
        await handle.execute_update(Features.plain, "five", id="plain")
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Features.finish, "later", id="later")
        await handle.execute_update(Features.finish, "now", id="now")
        assert await result(handle) == ["continued"]
        runs = [handle.result_run_id, (await handle.describe()).run_id]
        handles = [client.get_workflow_handle(name, run_id=run) for run in runs]
        handles.append(client.get_workflow_handle(f"{name}-child"))
        return [[_normal(e) async for e in h.fetch_history_events() if _kept(e)] for h in handles]


async def _noted(handle: WorkflowHandle[Any, Any], what: str) -> bool:
    return what in await handle.query(Features.log)


def _kept(event: Any) -> bool:
    return not EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").startswith(_TASKS)


def _normal(event: Any) -> Any:
    # A local activity's marker has its times in here.
    if event.HasField("marker_recorded_event_attributes"):
        for payload in event.marker_recorded_event_attributes.details["data"].payloads:
            payload.data = json.dumps(_without(json.loads(payload.data))).encode()
    return _without(MessageToDict(event))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without(v) for k, v in value.items() if not _differs(k)}
    return [_without(one) for one in value] if isinstance(value, list) else value


def _differs(key: str) -> bool:
    return key in _OWN or key.endswith(("EventId", "Time", "_time"))

"""The plugin beside other plugins, clients, workers, and in workflow modules."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from functools import partial
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from governance.errors import ApprovalUnknown, ConfigurationError
from governance.names import Verdict
from temporal_integration import GovernancePlugin
from tests.temporal.contracts import contract
from tests.temporal.flows.importing import NAMES, PayAndName
from tests.temporal.flows.pay import PayOnce
from tests.temporal.flows.stray import Stranger
from tests.temporal.playing import Play, Scene, at_once, new_worker, playing, staged
from tests.temporal.stage import Stage, failure, result, until

CONTRACTS = [contract("PayOnce")]


@pytest.mark.parametrize("runner", [None, UnsandboxedWorkflowRunner()], ids=["sandboxed", "not"])
async def test_imported_at_the_top_of_a_workflow_module(play: Play, runner: Any) -> None:
    """Names are the same objects inside: nothing is loaded a second time."""
    worker = {} if runner is None else {"workflow_runner": runner}
    async with play(PayAndName, worker=worker) as stage:
        handle = await stage.start(PayAndName.run, "42")
        await stage.approve()
        assert await result(handle) == ["paid 42", *NAMES]


async def test_a_worker_without_activities_stays_one(scene: Scene) -> None:
    """Our local activities do not make it take other workers' activity tasks."""
    async with scene(contracts=CONTRACTS) as stage:
        workflows = new_worker(stage, PayOnce, activities=[])
        activities = new_worker(stage)
        assert workflows.config(active_config=True).get("no_remote_activities") is True
        assert not activities.config(active_config=True).get("no_remote_activities")
        async with workflows, activities:
            handle = await stage.start(PayOnce.run, "42")
            await stage.approve()
            assert await result(handle) == "paid 42"


@pytest.mark.parametrize("same", [True, False])
async def test_given_twice(scene: Scene, dsn: str, same: bool) -> None:
    async with scene(contracts=CONTRACTS) as stage:
        other = GovernancePlugin(contracts=CONTRACTS, database_url=dsn)
        with (
            pytest.warns(UserWarning, match="both client and worker"),
            pytest.raises(ConfigurationError, match="given twice"),
        ):
            new_worker(stage, PayOnce, plugins=[stage.plugin if same else other])


async def test_given_to_the_worker_alone(scene: Scene, temporal_address: str) -> None:
    """Then starts by that client carry nobody; those by another client work."""
    async with scene(contracts=CONTRACTS) as stage:
        plain = await Client.connect(temporal_address)
        worker = Worker(
            plain,
            task_queue=stage.queue,
            workflows=[PayOnce],
            activities=stage.ledger.activities,
            plugins=[stage.plugin],
        )
        async with worker:
            handle = await stage.start(PayOnce.run, "42")
            await stage.approve()
            assert await result(handle) == "paid 42"


class InsistingPlugin(SimplePlugin):
    """Refuses any converter but its own, as plugins for agents do."""

    def __init__(self) -> None:
        super().__init__("insisting", data_converter=self._insist)

    def _insist(self, converter: DataConverter | None) -> DataConverter:
        if converter is None or converter == DataConverter.default:
            return pydantic_data_converter
        if converter.payload_converter_class is not PydanticPayloadConverter:
            raise ValueError("another payload converter")
        return converter


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    "other",
    [SimplePlugin("pydantic", data_converter=pydantic_data_converter), InsistingPlugin()],
    ids=["pydantic", "insisting"],
)
async def test_beside_a_converter(play: Play, other: SimplePlugin, where: str) -> None:
    async with play(PayOnce, **{where: [other]}) as stage:
        await _pays(stage)
        found = stage.client.data_converter.payload_converter_class
        assert found is PydanticPayloadConverter


@pytest.mark.parametrize("where", ["before", "after"])
async def test_beside_opentelemetry(play: Play, where: str) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed")
    from opentelemetry import trace
    from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider

    trace.set_tracer_provider(create_tracer_provider())
    async with play(PayOnce, **{where: [OpenTelemetryPlugin()]}) as stage:
        await _pays(stage)


async def test_many_workers_in_one_process(play: Play, dsn: str, temporal_address: str) -> None:
    """Two clients and two queues on one database; each run is of one of them."""
    first = play(PayOnce, contracts=CONTRACTS)
    async with first as stage:
        plugin = GovernancePlugin(contracts=CONTRACTS, database_url=dsn)
        client = await Client.connect(temporal_address, plugins=[plugin])
        other = dataclasses.replace(stage, client=client, queue=f"{stage.queue}-2", plugin=plugin)
        async with new_worker(other, PayOnce):
            starters = [stage, other] * at_once(5)
            handles = [await one.start(PayOnce.run, str(n)) for n, one in enumerate(starters)]
            await stage.approve(len(handles))
            results = await asyncio.gather(*(result(handle) for handle in handles))
        assert results == [f"paid {n}" for n in range(len(handles))]
        assert sorted(stage.ledger.whats) == [str(n) for n in range(len(handles))]


async def test_another_namespace_is_another_realm(
    play: Play, dsn: str, temporal_address: str
) -> None:
    """Two namespaces on one database: nobody decides, grants or wakes across them."""
    namespace = await _new_namespace(temporal_address)
    scene = partial(staged, dsn=dsn, address=temporal_address, namespace=namespace)
    async with (
        play(PayOnce) as here,
        playing(scene, PayOnce, contracts=CONTRACTS) as there,
    ):
        same_id = f"wf-{uuid.uuid4().hex}"
        handles = [await one.start(PayOnce.run, one.realm, id=same_id) for one in (here, there)]
        [elsewhere] = await there.pending()
        with pytest.raises(ApprovalUnknown):
            await here.decide(elsewhere, Verdict.APPROVE)
        await there.revoke()
        await here.approve()
        assert await result(handles[0]) == "paid default"
        await there.approve()
        assert (await failure(handles[1])).__class__.__name__ == "ApplicationError"
        assert [here.ledger.whats, there.ledger.whats] == [["default"], []]


async def _new_namespace(address: str) -> str:
    """A namespace of its own; the server takes a moment to know it."""
    client = await Client.connect(address)
    name = f"test-{uuid.uuid4().hex[:8]}"
    request = RegisterNamespaceRequest(
        namespace=name, workflow_execution_retention_period=Duration(seconds=86400)
    )
    await client.workflow_service.register_namespace(request)

    async def served() -> bool:
        try:
            count = await (await Client.connect(address, namespace=name)).count_workflows()
        except RPCError:
            return False
        return count.count == 0

    await until(served)
    return name


async def test_a_flow_that_nobody_governs_in_the_same_worker(play: Play) -> None:
    async with play(PayOnce, Stranger, contracts=CONTRACTS) as stage:
        handle = await stage.start(Stranger.run, "note", ["hello"], actor=None)
        assert await result(handle) == "noted hello"
        assert await stage.executions(handle) == []


def test_nothing_secret_is_shown() -> None:
    plugin = GovernancePlugin(contracts=CONTRACTS, database_url="postgresql://u:secret@h/d")
    assert "secret" not in repr(plugin)
    assert plugin.name() == "temporal-governance.GovernancePlugin"


async def _pays(stage: Stage) -> None:
    handle = await stage.start(PayOnce.run, "42")
    await stage.approve()
    assert await result(handle) == "paid 42"
    again = await stage.reset(handle)
    assert await result(again) == "paid 42"
    assert stage.ledger.whats == ["42"]

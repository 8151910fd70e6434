"""The database goes away: nothing runs, the wait is durable, and everything goes on afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from functools import partial

import pytest
from temporalio.api.enums.v1 import EventType

from governance.testing import EmbeddedPostgres
from tests import servers
from tests.proxy import Proxy
from tests.temporal.contracts import contract, free
from tests.temporal.flows.pay import PayAroundGate, PayOnce, PaySlowlyBeating, PaySlowlyOnce
from tests.temporal.playing import Play, playing, staged
from tests.temporal.stage import Handle, Stage, result, until

CONTRACTS = [contract("PayOnce")]


async def test_at_the_start(play: Play, proxy: Proxy) -> None:
    async with play(PayOnce, contracts=CONTRACTS, plugin={"database_url": proxy.dsn}) as stage:
        await stage.start(PayOnce.run, "41")
        await stage.approve()  # the worker runs
        proxy.refuse()
        handle = await stage.start(PayOnce.run, "42")
        await _waits_durably(stage, handle)
        assert await stage.executions(handle) == []
        proxy.refuse(False)
        await stage.approve()
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["41", "42"]


async def test_when_a_step_begins(play: Play, proxy: Proxy) -> None:
    """The border answers "not now": no attempt is used up, though the activity has but one."""
    contracts = [free("PayAroundGate")]
    options = {"contracts": contracts, "plugin": {"database_url": proxy.dsn}}
    async with play(PayAroundGate, **options) as stage:
        handle = await stage.start(PayAroundGate.run)
        await stage.ledger.entered["middle"].wait()
        proxy.refuse()
        stage.ledger.gates["middle"].set()
        await _waits_durably(stage, handle)
        assert stage.ledger.whats == ["before"]
        proxy.refuse(False)
        await result(handle)
        assert stage.ledger.whats == ["before", "after"]


async def test_when_a_step_has_run(play: Play, proxy: Proxy) -> None:
    """Its outcome is kept until it can be recorded."""
    contracts = [free("PaySlowlyOnce", "pay_slowly")]
    options = {"contracts": contracts, "plugin": {"database_url": proxy.dsn}}
    async with play(PaySlowlyOnce, **options) as stage:
        handle = await stage.start(PaySlowlyOnce.run, "42")
        await stage.ledger.entered["42"].wait()
        proxy.refuse()
        stage.ledger.gates["42"].set()
        await stage.paid(1)
        assert "step.executed" not in await stage.types(handle)
        proxy.refuse(False)
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert [t for t in await stage.types(handle) if t.startswith("step.")] == [
            "step.claimed",
            "step.executed",
        ]


async def test_when_a_step_has_run_that_must_heartbeat(play: Play, proxy: Proxy) -> None:
    """While its outcome waits to be recorded, its attempt is kept alive: it is not run again."""
    contracts = [free("PaySlowlyBeating", "pay_slowly")]
    options = {"contracts": contracts, "plugin": {"database_url": proxy.dsn}}
    async with play(PaySlowlyBeating, **options) as stage:
        handle = await stage.start(PaySlowlyBeating.run, "42")
        await stage.ledger.entered["42"].wait()
        proxy.refuse()
        stage.ledger.gates["42"].set()
        await stage.paid(1)
        await asyncio.sleep(3)  # three times what the server waits for a heartbeat
        proxy.refuse(False)
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["42"]
        started = [
            event.activity_task_started_event_attributes.attempt
            for event in await stage.events(handle)
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
        ]
        assert started == [1]


@pytest.fixture
def own_postgres() -> Generator[EmbeddedPostgres]:
    server = EmbeddedPostgres()
    yield server
    server.close()


async def test_killed_while_an_approval_waits(
    own_postgres: EmbeddedPostgres, temporal_address: str
) -> None:
    await servers.migrated(own_postgres.dsn)
    scene = partial(staged, dsn=own_postgres.dsn, address=temporal_address)
    async with playing(scene, PayOnce, contracts=CONTRACTS) as stage:
        waiting = await stage.start(PayOnce.run, "42")
        await stage.pending()
        own_postgres.kill()
        starting = await stage.start(PayOnce.run, "43")
        await _waits_durably(stage, starting)
        own_postgres.restart()
        await stage.approve(2)
        assert await result(waiting, 30) == "paid 42"
        assert await result(starting, 30) == "paid 43"
        assert sorted(stage.ledger.whats) == ["42", "43"]


async def _waits_durably(stage: Stage, handle: Handle) -> None:
    async def timer() -> bool:
        return bool(await stage.event_ids(handle, EventType.EVENT_TYPE_TIMER_STARTED))

    await until(timer)

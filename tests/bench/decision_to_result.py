"""From the decision's call to the held step's result, against a hand-written signal and wait."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from governance import approvals, decisions
from governance.contracts import FlowContract
from governance.db import Database
from governance.decisions import Decider
from governance.names import Verdict
from temporal_integration import GovernancePlugin, acting_as
from tests.bench.people import REALM, set_up
from tests.bench.rows import Row, row

TIMEOUT = timedelta(seconds=10)
CONTRACT = FlowContract.model_validate(
    {
        "flow": "Held",
        "resume": ["operator"],
        "approvals": {"finance": {"roles": ["finance-approver"]}},
        "steps": [{"activity": "bench_pay", "approval": "finance"}],
    }
)


@activity.defn
async def bench_pay(amount: int) -> int:
    """The step."""
    return amount


@workflow.defn
class Held:
    """Governed: knows nothing of it."""

    @workflow.run
    async def run(self, amount: int) -> int:
        """Pay."""
        return await workflow.execute_activity(bench_pay, amount, start_to_close_timeout=TIMEOUT)


@workflow.defn
class HandWritten:
    """The same by hand: anybody's signal lets it through."""

    def __init__(self) -> None:
        self.approved = False

    @workflow.run
    async def run(self, amount: int) -> int:
        """Wait for the signal, then pay."""
        await workflow.wait_condition(lambda: self.approved)
        return await workflow.execute_activity(bench_pay, amount, start_to_close_timeout=TIMEOUT)

    @workflow.signal
    def approve(self) -> None:
        """Let it through."""
        self.approved = True


async def measure(dsn: str, address: str, runs: int = 60) -> Row:
    """Run both in turn on one server."""
    async with Database(dsn) as db:
        await set_up(db, CONTRACT)
        plugin = GovernancePlugin(contracts=[CONTRACT], database_url=dsn)
        governed = await Client.connect(address, plugins=[plugin])
        plain = await Client.connect(address)
        async with (
            Worker(governed, task_queue="bench-g", workflows=[Held], activities=[bench_pay]),
            Worker(plain, task_queue="bench-p", workflows=[HandWritten], activities=[bench_pay]),
        ):
            ours: list[float] = []
            theirs: list[float] = []
            for index in range(runs + 5):
                mine, other = await _governed(governed, db), await _plain(plain)
                if index >= 5:  # the first ones fill caches and pools
                    ours.append(mine)
                    theirs.append(other)
    return row("decision_to_result", "ms", ours, theirs, most_ratio=1.5, most_added=10.0)


async def _governed(client: Client, db: Database) -> float:
    with acting_as("olga"):
        handle = await client.start_workflow(
            Held.run, 7, id=f"held-{uuid.uuid4().hex}", task_queue="bench-g"
        )
    while True:
        async with db.reading() as conn:
            waiting = await approvals.list_approvals(conn, REALM)
        if waiting:
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)  # let the workflow task that asked complete
    started = time.perf_counter()
    refusal = await db.run(
        lambda c: decisions.decide(
            c, REALM, waiting[0]["id"], Verdict.APPROVE, Decider("felix", "bench")
        )
    )
    assert refusal is None
    assert await handle.result() == 7
    return (time.perf_counter() - started) * 1000


async def _plain(client: Client) -> float:
    handle = await client.start_workflow(
        HandWritten.run, 7, id=f"plain-{uuid.uuid4().hex}", task_queue="bench-p"
    )
    await asyncio.sleep(0.3)
    started = time.perf_counter()
    await handle.signal(HandWritten.approve)
    assert await handle.result() == 7
    return (time.perf_counter() - started) * 1000

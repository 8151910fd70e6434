"""Governed steps that ask nobody, against the same workflow without the plugin."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from governance.contracts import FlowContract
from governance.db import Database
from temporal_integration import GovernancePlugin, acting_as
from tests.bench.people import REALM, set_up
from tests.bench.rows import Row, row

TIMEOUT = timedelta(seconds=10)
STEPS = 20
AT_ONCE = 40


@activity.defn
async def bench_step(number: int) -> int:
    """The step."""
    return number


@workflow.defn
class Plain:
    """So many steps in a row."""

    @workflow.run
    async def run(self, steps: int) -> int:
        """Run them."""
        for number in range(steps):
            await workflow.execute_activity(bench_step, number, start_to_close_timeout=TIMEOUT)
        return steps


@workflow.defn
class Governed(Plain):
    """The same, under a contract."""

    @workflow.run
    async def run(self, steps: int) -> int:
        """Run them."""
        return await super().run(steps)


CONTRACT = FlowContract.model_validate(
    {"flow": "Governed", "resume": ["operator"], "steps": [{"activity": "bench_step"}]}
)
Once = Callable[[int], Awaitable[float]]


async def measure(dsn: str, address: str, runs: int = 15) -> list[Row]:
    """`twenty_steps`: added time a step; `throughput`: workflows of five steps a second."""
    async with Database(dsn) as db:
        await set_up(db, CONTRACT)
        plugin = GovernancePlugin(contracts=[CONTRACT], database_url=dsn, realm=REALM)
        governed = await Client.connect(address, plugins=[plugin])
        plain = await Client.connect(address)
        async with (
            Worker(governed, task_queue="free-g", workflows=[Governed], activities=[bench_step]),
            Worker(plain, task_queue="free-p", workflows=[Plain], activities=[bench_step]),
        ):
            mine, theirs = _once(governed, Governed, "free-g"), _once(plain, Plain, "free-p")
            return [await _twenty(mine, theirs, runs), await _throughput(mine, theirs)]


def _once(client: Client, flow: Any, queue: str) -> Once:
    async def run(steps: int) -> float:
        started = time.perf_counter()
        with acting_as("olga"):
            await client.execute_workflow(
                flow.run, steps, id=f"free-{uuid.uuid4().hex}", task_queue=queue
            )
        return (time.perf_counter() - started) * 1000

    return run


async def _twenty(mine: Once, theirs: Once, runs: int) -> Row:
    ours: list[float] = []
    baseline: list[float] = []
    for index in range(runs + 2):
        one, other = await mine(STEPS), await theirs(STEPS)
        if index >= 2:
            ours.append(one / STEPS)
            baseline.append(other / STEPS)
    return row("twenty_steps", "ms", ours, baseline, most_ratio=1.05, most_added=6.0)


async def _throughput(mine: Once, theirs: Once, rounds: int = 3) -> Row:
    ours: list[float] = []
    baseline: list[float] = []
    for _ in range(rounds):
        ours.append(await _rate(mine))
        baseline.append(await _rate(theirs))
    return row("throughput", "wf/s", ours, baseline, least_ratio=0.75)


async def _rate(once: Once, workflows: int = 150, steps: int = 5) -> float:
    room = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with room:
            await once(steps)

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(workflows)))
    return workflows / (time.perf_counter() - started)

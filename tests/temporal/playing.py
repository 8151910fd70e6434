"""Sets a stage: contracts in force, people with their roles, a worker."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

from psycopg.sql import SQL
from temporalio.client import Client
from temporalio.worker import Worker

from governance import administration
from governance.contracts import FlowContract
from governance.db import Database
from temporal_integration import GovernancePlugin
from tests.temporal.stage import ADMIN, APPROVER, OPERATOR, Stage

Play: TypeAlias = Callable[..., AbstractAsyncContextManager[Stage]]
"""`async with play(Flow, …, contracts=[…], activities=[…], worker={…}) as stage`; see `playing`."""

Scene: TypeAlias = Callable[..., AbstractAsyncContextManager[Stage]]
"""`async with scene(contracts=[…]) as stage`: no worker yet; see `staged`."""

CACHED = "GOVERNANCE_TEST_CACHED_WORKFLOWS"
"""Set to 0 in the environment, every workflow task replays its whole history.

Workflows then go one at a time: the SDK drops a run with local activities in flight from its cache
for the next one, which costs it a workflow task timeout.
"""


def at_once(wanted: int) -> int:
    """How many workflows may go at once."""
    return 1 if os.environ.get(CACHED) == "0" else wanted


_ORPHANS = SQL("""
    SELECT a.step, a.n, e.workflow_id, e.state
    FROM governance.approval a JOIN governance.execution e ON e.id = a.execution
    WHERE a.state = 'pending' AND e.state <> 'open'""")


async def enter(stage: Stage, contracts: Sequence[FlowContract]) -> None:
    """Register and activate the contracts and give everybody their roles."""
    for one in contracts:
        await stage.run(administration.register_contract, stage.realm, one, ADMIN)
        await stage.run(administration.activate_contract, stage.realm, one.digest, "adam")
    await stage.grant(OPERATOR, "operator")
    await stage.grant(OPERATOR, "finance-approver")
    await stage.grant(APPROVER, "finance-approver")


async def assert_nobody_is_asked_in_vain(stage: Stage) -> None:
    """No approval waits for an execution that has ended."""
    assert await stage.rows(_ORPHANS) == []


def new_worker(
    stage: Stage, *flows: Any, activities: Sequence[Any] | None = None, **options: Any
) -> Worker:
    """A worker of the stage's client, with the ledger's activities unless others are given."""
    settings: dict[str, Any] = {"task_queue": stage.queue, **options}
    if cached := os.environ.get(CACHED):
        settings.setdefault("max_cached_workflows", int(cached))
    given = stage.ledger.activities if activities is None else activities
    return Worker(stage.client, workflows=flows, activities=given, **settings)


@asynccontextmanager
async def staged(
    *,
    dsn: str,
    address: str,
    contracts: Sequence[FlowContract],
    plugin: dict[str, Any] | None = None,
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
    **connect: Any,
) -> AsyncGenerator[Stage]:
    """A governed client with its contracts in force and no worker yet.

    `plugin` has options of the plugin, such as the `database_url` of a proxy; `before` and `after`
    are other plugins of the client.
    """
    options: dict[str, Any] = {"contracts": contracts, "database_url": dsn, **(plugin or {})}
    ours = GovernancePlugin(**options)
    client = await Client.connect(address, plugins=[*before, ours, *after], **connect)
    realm = str(options.get("realm") or client.namespace)
    async with Database(dsn) as db:
        stage = Stage(db, client, f"queue-{uuid.uuid4().hex[:12]}", ours, realm)
        await enter(stage, contracts)
        yield stage
        await assert_nobody_is_asked_in_vain(stage)


@asynccontextmanager
async def playing(
    scene: Scene,
    *flows: Any,
    contracts: Sequence[FlowContract],
    activities: Sequence[Any] | None = None,
    worker: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Stage]:
    """A scene with its worker."""
    async with (
        scene(contracts=contracts, **options) as stage,
        new_worker(stage, *flows, activities=activities, **(worker or {})),
    ):
        yield stage

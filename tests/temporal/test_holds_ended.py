"""A hold that is given up looks to user code as the activity itself would, given up."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.worker import Worker

from governance.names import ApprovalState
from tests.temporal.flows.failing import Ending
from tests.temporal.ledger import Ledger
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, result

INSIDE = [
    "handle_cancel",
    "handle_cancel_at_once",
    "wait_for",
    "timeout",
    "task_cancel",
    "group",
    "gather",
    "shielded",
]
OUTSIDE = ["cancelled", "cancelled_and_caught", "cancelled_and_cleaned_up"]

Outcome = tuple[str, WorkflowExecutionStatus | None]


@pytest.mark.parametrize("how", [*INSIDE, *OUTSIDE])
async def test_as_the_activity_would(play: Play, temporal_address: str, how: str) -> None:
    plain = asyncio.create_task(_plain(temporal_address, how))
    async with play(Ending) as stage:
        handle = await stage.start(Ending.run, how)
        if how in OUTSIDE:
            await stage.pending()
            await handle.cancel()
        assert await _outcome(handle) == await plain
        assert stage.ledger.paid == []
        asked = await stage.approvals()
        assert {one["state"] for one in asked} <= {ApprovalState.WITHDRAWN}


async def _plain(address: str, how: str) -> Outcome:
    """The same workflow without the plugin, its activity running."""
    ledger = Ledger()
    client = await Client.connect(address)
    stage = f"plain-{how}"
    worker = Worker(
        client, task_queue=stage, workflows=[Ending], activities=[ledger.wait, ledger.note]
    )
    async with worker:
        handle = await client.start_workflow(
            Ending.run, how, id=f"{stage}-{id(ledger)}", task_queue=stage
        )
        if how in OUTSIDE:
            await asyncio.wait_for(ledger.entered["42"].wait(), 10)
            await handle.cancel()
        return await _outcome(handle)


async def _outcome(handle: Handle) -> Outcome:
    """What user code saw, or what the client got, and how the workflow ended."""
    try:
        seen = "; ".join(await result(handle))
    except WorkflowFailureError as error:
        seen = repr(type(error.cause))
    return seen, (await handle.describe()).status

"""A denial is final, whatever workflow code does with the error."""

from __future__ import annotations

import time

import pytest
from temporalio.client import WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from governance.names import Verdict
from tests.temporal.flows.ending import Swallow
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, Stage, failure

SOON = 5.0
WAYS = ["return", "continue", "fail", "other", "again", "sleep", "swallow_sleep", "in_background"]


@pytest.mark.parametrize("how", WAYS)
async def test_swallowed(play: Play, how: str) -> None:
    async with play(Swallow) as stage:
        handle = await stage.start(Swallow.run, how)
        await _denied(stage, handle)


async def test_in_an_update_handler(play: Play) -> None:
    async with play(Swallow) as stage:
        handle = await stage.start(Swallow.run, "in_update")
        await handle.start_update(Swallow.pay, "42", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        await _denied(stage, handle)


@pytest.mark.parametrize("how", ["return", "again", "swallow_sleep"])
async def test_swallowed_without_a_cache(play: Play, how: str) -> None:
    async with play(Swallow, worker={"max_cached_workflows": 0}) as stage:
        handle = await stage.start(Swallow.run, how)
        await _denied(stage, handle)


async def _denied(stage: Stage, handle: Handle) -> None:
    [asked] = await stage.pending()
    await stage.revoke()
    started = time.monotonic()
    assert await stage.decide(asked, Verdict.APPROVE) is None
    cause = await failure(handle)
    assert time.monotonic() - started < SOON
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.non_retryable) == ("resume_denied", True)
    assert stage.ledger.paid == []
    assert (await stage.execution(handle))["state"] == "denied"
    types = await stage.types(handle)
    assert types.count("flow.failed") == types.count("resume.denied") == 1
    assert types[-1] == "flow.failed"
    assert len(await stage.turns(handle)) == 1

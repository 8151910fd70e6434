"""A denial stands for every later run, also for one that asked before its reset."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from tests.temporal.flows.ending import Swallow
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, Stage, failure, until


@pytest.mark.parametrize("how", ["return", "sleep", "again"])
async def test_reset_to_after_the_request(play: Play, how: str) -> None:
    """Nothing asks at the start of such a run; it hears of the denial at its resume."""
    async with play(Swallow) as stage:
        handle = await stage.start(Swallow.run, how)
        await stage.pending()
        await handle.signal(Swallow.poke)
        tasks = await _second_task(stage, handle)
        await stage.revoke()
        await stage.approve()
        await _denied(handle)
        await stage.grant()
        await _denied(await stage.reset(handle, tasks[1]))
        assert stage.ledger.paid == []
        types = await stage.types(handle)
        assert types.count("flow.failed") == types.count("resume.denied") == 1
        assert len(await stage.turns(handle)) == 1


async def _second_task(stage: Stage, handle: Handle) -> list[int]:
    async def look() -> list[int] | None:
        tasks = await stage.tasks(handle)
        return tasks if len(tasks) > 1 else None

    return await until(look)


async def _denied(handle: Handle) -> None:
    cause = await failure(handle)
    assert isinstance(cause, ApplicationError)
    assert cause.type == "resume_denied"

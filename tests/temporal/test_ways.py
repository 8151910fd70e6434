"""A call is held however it is made."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from tests.temporal.flows.calling import WAYS, Calling
from tests.temporal.playing import Play
from tests.temporal.stage import failure, result


@pytest.mark.parametrize("way", WAYS)
async def test_held_paid_and_injected(play: Play, way: str) -> None:
    async with play(Calling) as stage:
        handle = await stage.start(Calling.run, way)
        await stage.pending()
        assert stage.ledger.paid == []
        await stage.approve()
        assert await result(handle) == "paid 42"
        assert await result(await stage.reset(handle)) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert len(await stage.approvals()) == 1


@pytest.mark.parametrize("way", ["name", "local"])
async def test_rejected(play: Play, way: str) -> None:
    """A rejection looks the same for both: code that catches `ActivityError` sees it."""
    async with play(Calling) as stage:
        handle = await stage.start(Calling.run, way)
        await stage.reject()
        assert await result(handle) == "ActivityError[pay 2] <- ApplicationError[approval_rejected]"
        assert stage.ledger.paid == []


@pytest.mark.parametrize("way", ["name", "local"])
async def test_denied(play: Play, way: str) -> None:
    async with play(Calling) as stage:
        handle = await stage.start(Calling.run, way)
        await stage.pending()
        await stage.revoke()
        await stage.approve()
        cause = await failure(handle)
        assert isinstance(cause, ApplicationError)
        assert cause.type == "resume_denied"
        assert stage.ledger.paid == []


async def test_in_a_signal_handler_that_runs_before_main(play: Play) -> None:
    """Nothing of the run is known yet when its handler calls; the call waits for that."""
    async with play(Calling) as stage:
        handle = await stage.start(
            Calling.run, "signal", start_signal="pay_now", start_signal_args=["42"]
        )
        await stage.approve()
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["42"]

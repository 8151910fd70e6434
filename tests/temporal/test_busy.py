"""A step that another attempt holds: the call waits outside of it, then gets what came of it."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import EventType

from governance.contracts import StepRule
from tests.temporal.contracts import contract
from tests.temporal.flows.crashing import PaySlowly
from tests.temporal.playing import Play
from tests.temporal.stage import Handle, Stage, result, until

STEP = StepRule(activity="pay_slowly", lease=timedelta(seconds=5))
CONTRACT = contract("PaySlowly", approvals={}, steps=[STEP])


async def test_a_slow_attempt_that_lives_keeps_its_step(play: Play) -> None:
    """The reset run is told to come back; by then the first attempt is done."""
    async with play(PaySlowly, contracts=[CONTRACT]) as stage:
        again = await _held(stage)
        stage.ledger.gates["42"].set()
        assert await result(again) == "paid 42"
        assert stage.ledger.whats == ["42"]
        steps = [t for t in await stage.types(again) if t.startswith("step.")]
        assert steps == ["step.claimed", "step.executed", "step.injected"]


async def test_cancelled_while_another_attempt_holds_the_step(play: Play) -> None:
    async with play(PaySlowly, contracts=[CONTRACT]) as stage:
        again = await _held(stage)
        await again.cancel()
        seen = await result(again)
        assert seen == "ActivityError[pay_slowly 7] <- CancelledError"
        assert stage.ledger.paid == []
        stage.ledger.gates["42"].set()


async def _held(stage: Stage) -> Handle:
    """A run of a reset whose call waits for the attempt of the run before."""
    handle = await stage.start(PaySlowly.run, "42")
    await stage.ledger.entered["42"].wait()
    again = await stage.reset(handle)

    async def timer() -> bool:
        return bool(await stage.event_ids(again, EventType.EVENT_TYPE_TIMER_STARTED))

    await until(timer)
    return again

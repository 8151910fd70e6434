"""A frozen flow waits, spends no attempt, and goes on once somebody lifts the freeze."""

from __future__ import annotations

import pytest
from temporalio.api.enums.v1 import EventType

from governance import freezes
from governance.errors import Frozen
from temporal_integration import _border
from tests.temporal.contracts import free
from tests.temporal.flows.pay import PayOnce
from tests.temporal.playing import Play
from tests.temporal.stage import ADMIN, Handle, Stage, result, until


@pytest.mark.parametrize("needs_approval", [False, True])
@pytest.mark.parametrize("whole_realm", [False, True])
async def test_it_waits_and_goes_on(
    play: Play, monkeypatch: pytest.MonkeyPatch, needs_approval: bool, whole_realm: bool
) -> None:
    monkeypatch.setattr(_border, "_FROZEN", 0.2)
    flow = None if whole_realm else "PayOnce"
    contracts = None if needs_approval else [free("PayOnce")]
    async with play(PayOnce, contracts=contracts) as stage:
        await stage.run(freezes.freeze, stage.realm, flow, ADMIN, "an incident")
        handle = await stage.start(PayOnce.run, "42")  # its activity may be tried once only
        if needs_approval:
            await stage.approve()
        await _looked_again(stage, handle, 3)
        assert stage.ledger.paid == []
        await stage.run(freezes.unfreeze, stage.realm, flow, "adam")
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["42"]
        steps = [t for t in await stage.timeline(handle) if t.type.startswith("step.")]
        assert [t.type for t in steps] == ["step.refused", "step.claimed", "step.executed"]
        assert steps[0].payload["code"] == "frozen"
        assert {t.payload["round"] for t in steps} == {1}


async def _looked_again(stage: Stage, handle: Handle, times: int) -> None:
    async def timers() -> bool:
        return len(await stage.event_ids(handle, EventType.EVENT_TYPE_TIMER_FIRED)) >= times

    await until(timers)


@pytest.mark.parametrize(
    ("frozen_for", "pause"), [(0, 30), (300, 30), (3000, 300), (6000, 600), (10**7, 600)]
)
def test_days_of_looking_again_are_affordable(frozen_for: float, pause: float) -> None:
    assert _border._thaw_pause(Frozen(seconds=frozen_for)) == pause

"""What is wrong with a call is said at the call; what changes later does not matter."""

from __future__ import annotations

import pytest
from temporalio import activity

from governance.contracts import StepRule
from tests.temporal.contracts import contract
from tests.temporal.flows.ending import Careful
from tests.temporal.playing import Play
from tests.temporal.stage import result

CONTRACT = contract("Careful", steps=[StepRule(activity="pay_list", approval="finance")])


@activity.defn
async def pay_list(whats: list[str]) -> str:
    return "+".join(whats)


@pytest.mark.parametrize(
    ("how", "error"), [("no_timeout", "ValueError"), ("unserialisable", "TypeError")]
)
async def test_refused_at_the_call(play: Play, how: str, error: str) -> None:
    async with play(Careful, contracts=[CONTRACT], activities=[pay_list]) as stage:
        handle = await stage.start(Careful.run, how)
        assert await result(handle) == f"{error} at the call"
        assert await stage.approvals() == []


async def test_an_argument_that_changes_later(play: Play) -> None:
    async with play(Careful, contracts=[CONTRACT], activities=[pay_list]) as stage:
        handle = await stage.start(Careful.run, "mutated")
        await stage.approve()
        assert await result(handle) == "first"

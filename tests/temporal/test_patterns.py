"""A step that selects several activities by a pattern: an approval is for the one called."""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from governance.contracts import StepRule
from tests.temporal.contracts import contract
from tests.temporal.flows.pay import PayByCardThenCash
from tests.temporal.playing import Play
from tests.temporal.stage import result


@activity.defn
async def pay_card(what: str) -> str:
    raise ApplicationError("declined", non_retryable=True)


@activity.defn
async def pay_cash(what: str) -> str:
    return f"cash {what}"


async def test_an_approval_is_for_the_activity_that_was_called(play: Play) -> None:
    steps = [StepRule(name="payments", activity="pay_*", approval="finance")]
    contracts = [contract("PayByCardThenCash", steps=steps)]
    activities = [pay_card, pay_cash]
    async with play(PayByCardThenCash, contracts=contracts, activities=activities) as stage:
        handle = await stage.start(PayByCardThenCash.run)
        await stage.approve()
        await stage.approve()  # paying in cash is another action: somebody is asked again
        assert await result(handle) == "cash 42"
        assert len(await stage.approvals()) == 2

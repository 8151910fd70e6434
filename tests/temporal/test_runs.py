"""Which run belongs to which execution: retries, cron, reused ids."""

from __future__ import annotations

from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from tests.temporal.contracts import free
from tests.temporal.flows.pay import PayAgainAfterFailure, PayInTurn, PayOnce, PayThenFail
from tests.temporal.playing import Play
from tests.temporal.stage import failure, result


async def test_a_workflow_retry_is_the_same_execution(play: Play) -> None:
    async with play(PayThenFail) as stage:
        policy = RetryPolicy(initial_interval=timedelta(milliseconds=10))
        handle = await stage.start(PayThenFail.run, 3, retry_policy=policy)
        await stage.approve()
        assert await result(handle) == "paid same"
        assert stage.ledger.whats == ["same"]
        assert len(await stage.approvals()) == 1
        continued = [e.payload for e in await stage.timeline(handle) if e.type == "flow.continued"]
        assert [(c["how"], c["generation"]) for c in continued] == [("retry", 0), ("retry", 0)]


async def test_each_cron_tick_is_an_execution_of_its_own(play: Play) -> None:
    async with play(PayOnce, contracts=[free("PayOnce")]) as stage:
        handle = await stage.start(PayOnce.run, "rent", cron_schedule="@every 1s")
        await stage.paid(3)
        await handle.terminate()
        found = await stage.executions(handle)
        assert len(found) >= 3
        assert {row["actor"] for row in found} == {"olga"}
        assert len({paid.key for paid in stage.ledger.paid}) == len(stage.ledger.paid)


async def test_a_reused_workflow_id_is_a_new_execution(play: Play) -> None:
    async with play(PayOnce) as stage:
        handles = []
        for _ in range(2):
            handles.append(await stage.start(PayOnce.run, "42", id="invoice-7"))
            await stage.approve()
            await result(handles[-1])
        assert stage.ledger.whats == ["42", "42"]
        assert len({paid.key for paid in stage.ledger.paid}) == 2
        assert len(await stage.executions(handles[0])) == 2


async def test_two_equal_calls_in_turn_are_two_payments(play: Play) -> None:
    async with play(PayInTurn) as stage:
        handle = await stage.start(PayInTurn.run, ["same", "same"])
        await stage.approve()
        await stage.approve()
        await result(handle)
        assert len({paid.key for paid in stage.ledger.paid}) == 2


async def test_the_users_own_retry_is_the_same_step(play: Play) -> None:
    async with play(PayAgainAfterFailure) as stage:
        stage.ledger.failures = [ApplicationError("lost answer")]
        handle = await stage.start(PayAgainAfterFailure.run, 2)
        await stage.approve()
        assert await result(handle) == "paid once"
        first, second = stage.ledger.paid
        assert first.key == second.key, "the bank can tell that it is the same payment"
        assert first.token < second.token
        assert len(await stage.approvals()) == 1
        again = await stage.reset(handle)
        assert await result(again) == "paid once"
        assert len(stage.ledger.paid) == 2
        await stage.ended(handle)
        assert (await stage.types(handle))[-2:] == ["step.injected", "flow.completed"]


async def test_a_final_failure_is_injected_in_its_round(play: Play) -> None:
    async with play(PayAgainAfterFailure) as stage:
        stage.ledger.failures = [ApplicationError("no", 7, type="No"), ApplicationError("never")]
        handle = await stage.start(PayAgainAfterFailure.run, 2)
        await stage.approve()
        cause = await failure(handle)
        again = await failure(await stage.reset(handle))
        assert len(stage.ledger.paid) == 2
        types = await stage.types(handle)
        assert types.count("step.failed") == types.count("step.injected") == 2
        assert types.count("step.claimed") == 2
        assert str(again.__cause__) == str(cause.__cause__) == "never"

"""Resets: nobody is asked twice, nothing is paid twice."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType

from governance.names import ExecutionState
from tests.temporal.flows.pay import PayAndListen, PayBoth, PayInTurn, PayOnce, PayThenContinue
from tests.temporal.playing import Play
from tests.temporal.stage import SIGNALS, Handle, Stage, result, until


async def test_to_after_the_request_while_nobody_has_decided(play: Play) -> None:
    async with play(PayAndListen) as stage:
        handle = await stage.start(PayAndListen.run, "42")
        await stage.pending()
        await handle.signal(PayAndListen.poke)
        tasks = await _two_tasks(stage, handle)
        again = await stage.reset(handle, tasks[1])
        [asked] = await stage.approve()
        assert await result(again) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert [a["id"] for a in await stage.approvals()] == [asked["id"]]


async def test_to_before_the_request_while_nobody_has_decided(play: Play) -> None:
    """The run that asked is gone without a word; the next one finds its approval."""
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        [asked] = await stage.pending()
        again = await stage.reset(handle)
        await stage.approve()
        assert await result(again) == "paid 42"
        assert [a["id"] for a in await stage.approvals()] == [asked["id"]]
        assert stage.ledger.whats == ["42"]


async def test_without_the_signals(play: Play) -> None:
    """The wake-up is not delivered again; the answer to the request is enough."""
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await result(handle)
        again = await stage.reset(handle, exclude=[SIGNALS])
        assert await result(again) == "paid 42"
        signals = await stage.event_ids(again, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
        assert signals == []
        assert stage.ledger.whats == ["42"]


async def test_without_the_signals_when_approved_and_not_yet_run(play: Play) -> None:
    async with play(PayInTurn) as stage:
        handle = await stage.start(PayInTurn.run, ["1", "2"])
        await stage.approve()
        [second] = await stage.pending()
        await handle.terminate()
        again = await stage.reset(handle, exclude=[SIGNALS])
        await stage.approve()
        assert await result(again) == ["paid 1", "paid 2"]
        assert stage.ledger.whats == ["1", "2"]
        assert {a["id"] for a in await stage.approvals()} >= {second["id"]}


async def test_at_every_task(play: Play) -> None:
    async with play(PayInTurn) as stage:
        handle = await stage.start(PayInTurn.run, ["1", "2"])
        for _ in range(2):
            await stage.approve()
        assert await result(handle) == ["paid 1", "paid 2"]
        for task in await stage.tasks(handle):
            assert await result(await stage.reset(handle, task)) == ["paid 1", "paid 2"]
        assert stage.ledger.whats == ["1", "2"]
        assert len(await stage.approvals()) == 2
        assert await stage.ended(handle) == ExecutionState.COMPLETED


async def test_of_a_reset(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await result(handle)
        second = await stage.reset(handle)
        await result(second)
        third = await stage.reset(second)
        assert await result(third) == "paid 42"
        assert stage.ledger.whats == ["42"]
        types = await stage.types(handle)
        assert types.count("flow.continued") == 2
        assert types.count("step.injected") == 2


async def test_of_a_first_run_while_the_second_runs(play: Play) -> None:
    """The server ends the second; the third is of the same execution."""
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.pending()
        second = await stage.reset(handle)
        await stage.pending()
        third = await stage.reset(handle)
        await stage.approve()
        assert await result(third) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert (await second.describe()).status is not None


async def test_two_branches_finish_in_swapped_order(play: Play) -> None:
    async with play(PayBoth) as stage:
        handle = await stage.start(PayBoth.run, "one", "two")
        await _in_order(stage, "first", "second", decide=True)
        assert await result(handle) == ["paid one", "paid two"]
        for name in ("first", "second"):
            stage.ledger.gates[name].clear()
            stage.ledger.entered[name].clear()
        again = await stage.reset(handle)
        await _in_order(stage, "second", "first", decide=False)
        assert await result(again) == ["paid one", "paid two"]
        assert sorted(stage.ledger.whats) == ["one", "two"]
        assert len(await stage.approvals()) == 2


async def test_two_equal_branches_are_two_payments(play: Play) -> None:
    async with play(PayBoth) as stage:
        handle = await stage.start(PayBoth.run, "same", "same")
        await _in_order(stage, "first", "second", decide=True)
        await result(handle)
        again = await stage.reset(handle)
        assert await result(again) == ["paid same", "paid same"]
        assert stage.ledger.whats == ["same", "same"]
        assert len({paid.key for paid in stage.ledger.paid}) == 2
        assert len(await stage.approvals()) == 2


async def test_to_before_a_continue_as_new(play: Play) -> None:
    async with play(PayThenContinue) as stage:
        handle = await stage.start(PayThenContinue.run, 0)
        await stage.approve()
        await stage.approve()
        assert await result(handle) == "paid same"
        assert stage.ledger.whats == ["same", "same"], "another generation is another step"
        first = stage.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await stage.reset(first)
        assert await result(stage.client.get_workflow_handle(handle.id)) == "paid same"
        assert stage.ledger.whats == ["same", "same"]
        assert len(await stage.approvals()) == 2
        continued = [e.payload for e in await stage.timeline(handle) if e.type == "flow.continued"]
        assert [(c["how"], c["generation"]) for c in continued] == [
            ("continue_as_new", 1),
            ("reset", 0),
            ("continue_as_new", 1),
        ]


async def _two_tasks(stage: Stage, handle: Handle) -> list[int]:
    async def look() -> list[int] | None:
        tasks = await stage.tasks(handle)
        return tasks if len(tasks) > 1 else None

    return await until(look)


async def _in_order(stage: Stage, *names: str, decide: bool) -> None:
    """Open the gates one by one, the next when the payment behind the last one is made."""
    for name in ("first", "second"):
        await stage.ledger.entered[name].wait()
    for done, name in enumerate(names):
        stage.ledger.gates[name].set()
        if decide:
            await stage.approve()
            await stage.paid(done + 1)

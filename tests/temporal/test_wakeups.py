"""Wake-ups are hints: forged ones cost nothing, lost ones are sent again."""

from __future__ import annotations

from typing import Any

from psycopg.sql import SQL
from temporalio.api.enums.v1 import EventType

from governance import administration
from governance.names import Verdict
from temporal_integration import _dispatch
from temporal_integration._names import APPROVED_HINT, DENIED_TOPIC, WAKE_SIGNAL
from tests.temporal.contracts import contract
from tests.temporal.flows.ending import EndWhileHeld
from tests.temporal.flows.pay import PayAndListen, PayInTurn, PayOnce
from tests.temporal.playing import Play, Scene, new_worker
from tests.temporal.stage import Handle, Stage, result, until

GARBAGE: list[list[Any]] = [
    [],
    [None],
    [1],
    [["x"]],
    [{"topic": "x"}],
    ["x", "y", "z"],
    ["x" * 10_000, APPROVED_HINT],
    [DENIED_TOPIC],
    [DENIED_TOPIC, APPROVED_HINT, 3],
    [True, False],
]
UNUSED = SQL("SELECT topic, tries FROM governance.outbox WHERE done_at IS NULL ORDER BY id")
DUE_NOW = SQL("UPDATE governance.outbox SET next_at = governance.clock() WHERE done_at IS NULL")


async def test_garbage(play: Play) -> None:
    async with play(PayAndListen) as stage:
        handle = await stage.start(PayAndListen.run, "42")
        [asked] = await stage.pending()
        for args in GARBAGE:
            await handle.signal(WAKE_SIGNAL, args=args)
        await handle.signal(WAKE_SIGNAL, args=[asked["id"].hex, ["x"]])
        await handle.signal(WAKE_SIGNAL, args=[asked["id"].hex, "rejected"])
        await _all_seen(stage, handle)
        assert stage.ledger.paid == []
        assert await stage.types(handle) == ["flow.started", "approval.requested"]
        await stage.approve()
        assert await result(handle) == "paid 42"
        assert await _failed_tasks(stage, handle) == []


async def test_an_approval_that_was_not_given(play: Play) -> None:
    """It costs one attempt that the border refuses, and the step still waits."""
    async with play(PayAndListen) as stage:
        handle = await stage.start(PayAndListen.run, "42")
        [asked] = await stage.pending()
        for _ in range(3):
            await handle.signal(WAKE_SIGNAL, args=[asked["id"].hex, APPROVED_HINT])
            await _all_seen(stage, handle)
        assert stage.ledger.paid == []
        assert len(await stage.approvals()) == 1
        await stage.approve()
        assert await result(handle) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert (await stage.types(handle)).count("step.refused") <= 1


async def test_before_the_workflow_waits_for_them(play: Play) -> None:
    """With the start itself, before anything of the run is known."""
    async with play(PayOnce) as stage:
        signal: dict[str, Any] = {"start_signal": WAKE_SIGNAL, "start_signal_args": [DENIED_TOPIC]}
        handle = await stage.start(PayOnce.run, "42", **signal)
        await stage.approve()
        assert await result(handle) == "paid 42"


async def test_forged_ones_do_not_end_a_run_that_may_go_on(play: Play) -> None:
    async with play(EndWhileHeld) as stage:
        handle = await stage.start(EndWhileHeld.run, "return")
        await stage.pending(3)
        for _ in range(5):
            await handle.signal(WAKE_SIGNAL, args=[DENIED_TOPIC])
        await handle.signal(EndWhileHeld.go)
        assert await result(handle) == "return"
        assert await _failed_tasks(stage, handle) == []


async def test_decided_while_no_worker_runs(scene: Scene) -> None:
    async with scene(contracts=[contract("PayOnce")]) as stage:
        async with new_worker(stage, PayOnce):
            handle = await stage.start(PayOnce.run, "42")
            [asked] = await stage.pending()
        assert await stage.decide(asked, Verdict.APPROVE) is None
        async with new_worker(stage, PayOnce):
            assert await result(handle, 30) == "paid 42"
        assert await stage.rows(UNUSED) == []


async def test_leased_by_a_dispatcher_that_died(play: Play, monkeypatch: Any) -> None:
    """It was leased and never sent; when the lease has run out it is sent."""
    async with play(PayOnce) as stage:
        sent = _losing(monkeypatch, 1)
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await until(lambda: _tried(stage, 1))
        assert sent == []
        await stage.change(DUE_NOW)
        assert await result(handle, 30) == "paid 42"
        assert len(sent) == 1
        assert await stage.rows(UNUSED) == []


async def test_two_decisions_of_one_run_keep_their_order(play: Play, monkeypatch: Any) -> None:
    async with play(PayInTurn) as stage:
        sent = _losing(monkeypatch, 0)
        handle = await stage.start(PayInTurn.run, ["1", "2"])
        first = (await stage.approve())[0]["id"].hex
        second = (await stage.approve())[0]["id"].hex
        assert await result(handle) == ["paid 1", "paid 2"]
        assert [one.topic for one in sent] == [first, second]


async def test_another_realm_is_not_woken(play: Play) -> None:
    """Two fleets on one database: each tells its own workflows only."""
    async with play(PayOnce, plugin={"realm": "other"}) as other:
        handle = await other.start(PayOnce.run, "42")
        await other.pending()
        assert await other.read(administration.list_roles, "default") == []
        await other.approve()
        assert await result(handle) == "paid 42"


def _losing(monkeypatch: Any, count: int) -> list[Any]:
    """Lose the first wake-ups, as a process that dies before it sends them; returns the others."""
    send = _dispatch.Dispatcher._send
    lost: list[Any] = []
    sent: list[Any] = []

    async def sometimes(self: _dispatch.Dispatcher, wake: Any) -> None:
        if len(lost) < count:
            lost.append(wake)
            return
        sent.append(wake)
        await send(self, wake)

    monkeypatch.setattr(_dispatch.Dispatcher, "_send", sometimes)
    return sent


async def _tried(stage: Stage, times: int) -> bool:
    return any(tries >= times for _, tries in await stage.rows(UNUSED))


async def _all_seen(stage: Stage, handle: Handle) -> None:
    """Wait until the workflow has nothing left to do."""

    async def idle() -> bool:
        events = await stage.events(handle)
        kinds = [e.event_type for e in events]
        last = max(
            i for i, k in enumerate(kinds) if k == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        )
        return not _BUSY & set(kinds[last + 1 :])

    await until(idle)


_BUSY = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
}


async def _failed_tasks(stage: Stage, handle: Handle) -> list[int]:
    return await stage.event_ids(handle, EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)

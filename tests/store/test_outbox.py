"""Wake-ups: in order for each execution, whoever sends them, and done only when they were used."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from governance import approvals, outbox
from governance.db import Database
from governance.db.statements import pipelined
from governance.errors import ApprovalNotUsable, ResumeDenied
from governance.executions import Run
from governance.names import Verdict
from governance.outbox import WakeUp
from governance.steps import Injected
from tests.store import scenario as s

APPROVE, REJECT = Verdict.APPROVE, Verdict.REJECT


async def decided(db: Database, run: Run, n: int, verdict: Verdict = APPROVE) -> uuid.UUID:
    approval = await s.pending(db, run, s.call(run, n=n))
    assert await s.decide(db, approval, verdict=verdict) is None
    return approval


async def sent(db: Database) -> list[WakeUp]:
    """What one look of a dispatcher sends; afterwards all of it is due again."""
    wakes = await s.woken(db)
    async with db.transaction() as conn:
        await conn.execute("UPDATE governance.outbox SET next_at = created_at")
    return wakes


async def topics(db: Database) -> list[str]:
    return [wake.topic for wake in await sent(db)]


# ---------------------------------------------------------------- in order


async def test_in_order_and_again_until_used(world: Database) -> None:
    runs = [await s.opened(world), await s.opened(world)]
    asked = [[await decided(world, run, n) for n in (1, 2, 3)] for run in runs]
    for place in range(3):
        wakes = await sent(world)
        first = {(wake.execution, wake.topic) for wake in wakes if wake.tries == 1}
        expected = zip(runs, asked, strict=True)
        assert first == {(run.execution, of_run[place].hex) for run, of_run in expected}
        # One that was sent and not used is sent again, and holds up nobody behind it.
        assert len(wakes) == 2 * (place + 1)
    for run, of_run in zip(runs, asked, strict=True):
        for one in of_run:
            assert await s.go_on(world, run, one) == "admitted"
    assert await sent(world) == []


async def test_a_wake_up_is_leased(world: Database) -> None:
    run = await s.opened(world)
    await decided(world, run, 1)
    async with world.reading() as conn:
        [row] = await outbox.find_due(conn, s.REALM, 10)
        assert await outbox.find_due(conn, "another realm", 10) == []
    told = await asyncio.gather(
        *(world.run(lambda conn: outbox.lease(conn, s.REALM, row)) for _ in range(8))
    )
    assert sum(one is not None for one in told) == 1
    async with world.reading() as conn:
        assert await outbox.find_due(conn, s.REALM, 10) == []
    [(seconds,)] = await s.rows(
        world,
        "SELECT extract(epoch FROM next_at - governance.clock())::float8 FROM governance.outbox",
    )
    assert 3 < seconds <= 5


async def sent_by_many(db: Database, executions: int, each: int) -> dict[uuid.UUID, list[str]]:
    """The topics of each execution in the order in which several dispatchers sent them."""
    runs = [await s.opened(db) for _ in range(executions)]
    for n in range(1, each + 1):
        await asyncio.gather(*(decided(db, run, n) for run in runs))
    by_id, told = {run.execution: run for run in runs}, defaultdict[uuid.UUID, list[str]](list)

    async def send(row: int, pause: float) -> None:
        wake = await db.run(lambda conn: outbox.lease(conn, s.REALM, row))
        if wake is not None:
            await asyncio.sleep(pause)  # as long as a call takes
            told[wake.execution].append(wake.topic)
            await s.go_on(db, by_id[wake.execution], uuid.UUID(wake.topic))

    async def dispatcher(dice: random.Random) -> None:
        while sum(map(len, told.values())) < executions * each:
            async with db.reading() as conn:
                due = await outbox.find_due(conn, s.REALM, 100)
            for row in dice.sample(due, len(due)):
                await send(row, dice.random() * 0.01)

    async with asyncio.timeout(60):
        await asyncio.gather(*(dispatcher(random.Random(seed)) for seed in range(4)))
    return told


async def in_order(db: Database) -> dict[uuid.UUID, list[str]]:
    found = defaultdict[uuid.UUID, list[str]](list)
    query = "SELECT execution, topic FROM governance.outbox ORDER BY id"
    for execution, topic in await s.rows(db, query):
        found[execution].append(topic)
    return found


async def test_several_dispatchers_keep_the_order(world: Database) -> None:
    assert await sent_by_many(world, 6, 6) == await in_order(world)


async def test_taking_any_due_row_would_not(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await s.prepare(db)
    for name in ("find_due", "lease"):
        careless = outbox._Q[name].replace("earlier.id <", "earlier.id < 0 AND earlier.id <")
        monkeypatch.setitem(outbox._Q._statements, name, careless)
    assert await sent_by_many(db, 3, 6) != await in_order(db)


async def test_a_dispatcher_that_listens_is_told(world: Database) -> None:
    run = await s.opened(world)
    async with await world.connect() as conn:
        await pipelined(conn, outbox.listen())
        await decided(world, run, 1)
        async with asyncio.timeout(5):
            told = await anext(conn.notifies())
        assert outbox.told(told.payload, "another realm") is False
        wake = outbox.told(told.payload, s.REALM)
        async with world.reading() as reading:
            [row] = await outbox.find_due(reading, s.REALM, 10)
        assert wake == await world.alone(lambda one: outbox.lease(one, s.REALM, row))


async def test_one_of_many_leads_and_another_follows(world: Database) -> None:
    async with await world.connect() as first, await world.connect() as second:
        assert await outbox.try_to_lead(first, s.REALM)
        assert not await outbox.try_to_lead(second, s.REALM)
        assert await outbox.try_to_lead(second, "another realm")
        await first.close()
        query = "SELECT pg_advisory_lock(7177, hashtext(%s))"  # waits until the server noticed
        async with asyncio.timeout(5):
            await second.execute(query, [s.REALM])
        assert await outbox.try_to_lead(second, s.REALM)


# ---------------------------------------------------------------- what a wake-up hints at


async def test_an_approved_step_is_resumed_by_its_begin(world: Database) -> None:
    run = await s.opened(world)
    approval = await decided(world, run, 1)
    assert [wake.hint for wake in await sent(world)] == ["approved"]
    assert (await s.entry_types(world, run.execution)).count("resume.admitted") == 0
    await s.permitted(world, run, s.call(run))
    assert (await s.entry_types(world, run.execution)).count("resume.admitted") == 1
    assert await sent(world) == []
    assert await s.go_on(world, run, approval) == "admitted"  # and is on record once for a run
    assert (await s.entry_types(world, run.execution)).count("resume.admitted") == 1


async def test_begin_denies_an_actor_who_lost_the_role(world: Database) -> None:
    run = await s.opened(world)
    await decided(world, run, 1)
    await s.revoke(world, s.OLGA, "operator")
    assert [wake.hint for wake in await sent(world)] == ["approved"]
    assert isinstance(await s.begin(world, run, s.call(run)), ResumeDenied)
    assert await s.state_of(world, run) == ("denied", "resume_denied")
    assert await topics(world) == ["denied"]


async def test_a_rejection_is_told_and_admits_nobody(world: Database) -> None:
    run = await s.opened(world)
    approval = await decided(world, run, 1, REJECT)
    assert [wake.hint for wake in await sent(world)] == ["rejected"]
    assert await s.go_on(world, run, approval) == "rejected"
    assert await sent(world) == []


# ---------------------------------------------------------------- nobody is held up for ever

Ending = Callable[[Database, Run, uuid.UUID], Awaitable[object]]


async def cancelled_after_its_decision(db: Database, run: Run, approval: uuid.UUID) -> None:
    await db.run(lambda conn: approvals.withdraw_step(conn, run, "pay", 1, "cancelled"))


async def begun(db: Database, run: Run, approval: uuid.UUID) -> None:
    await s.permitted(db, run, s.call(run))


async def done_by_a_run_before_the_reset(db: Database, run: Run, approval: uuid.UUID) -> None:
    pay = s.call(run)
    await s.finish(db, run, pay, await s.permitted(db, run, pay))
    reset = await s.opened(db, s.facts(original_run_id=run.run_id))
    assert await s.begin(db, reset, s.call(reset)) == Injected(b"paid")


async def begun_too_late(db: Database, run: Run, approval: uuid.UUID) -> None:
    await sent(db)
    await s.let_limit_pass(db, approval, "execute_by")
    assert isinstance(await s.begin(db, run, s.call(run)), ApprovalNotUsable)


async def found_by_a_reset(db: Database, run: Run, approval: uuid.UUID) -> None:
    reset = await s.opened(db, s.facts(original_run_id=run.run_id))
    assert await s.ask(db, reset, s.call(reset)) == ("rejected", approval)


@pytest.mark.parametrize(
    ("verdict", "ending"),
    [
        (APPROVE, begun),
        (APPROVE, cancelled_after_its_decision),
        (APPROVE, done_by_a_run_before_the_reset),
        (APPROVE, begun_too_late),
        (REJECT, found_by_a_reset),
        (REJECT, cancelled_after_its_decision),
    ],
)
async def test_a_wake_up_that_nobody_waits_for_holds_up_no_other(
    world: Database, verdict: Verdict, ending: Ending
) -> None:
    run = await s.opened(world)
    first = await decided(world, run, 1, verdict)
    second = await decided(world, run, 2)
    await ending(world, run, first)
    assert await topics(world) == [second.hex]

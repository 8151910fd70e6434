"""Attempts that fail, rounds that follow, and leases that are renewed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from governance import steps
from governance.db import Database
from governance.executions import Run
from governance.steps import Busy, Call, Injected, Permit
from tests.store import scenario as s

# ---------------------------------------------------------------- failures and rounds


async def failed(db: Database, run: Run, asked: Call, token: int, failure: bytes | None) -> bool:
    return await db.run(
        lambda conn: steps.fail(conn, run, asked, token, code="Declined", failure=failure)
    )


async def test_a_failed_attempt_gives_the_claim_back(world: Database) -> None:
    run = await s.opened(world)
    first, second = s.call(run, "notify"), s.call(run, "notify")
    token = await s.permitted(world, run, first)
    assert await failed(world, run, first, token, None)
    assert not await failed(world, run, first, token, None)
    assert await s.permitted(world, run, second) == token + 1
    assert not await failed(world, run, first, token, b"declined")
    assert await s.finish(world, run, second, token + 1) is None


async def test_a_round_that_failed_is_injected_and_the_next_one_runs(world: Database) -> None:
    run = await s.opened(world)
    pay = s.call(run)
    approval = await s.approved(world, run, pay)
    assert await failed(world, run, pay, await s.permitted(world, run, pay), b"declined")
    assert await s.begin(world, run, s.call(run)) == Injected(b"declined", failed=True)
    again = s.call(run, round=2)
    assert again.key == pay.key
    assert await s.begin(world, run, again) == Permit(2, approval)
    assert await s.finish(world, run, again, 2) is None
    assert await s.begin(world, run, s.call(run)) == Injected(b"paid")


# ---------------------------------------------------------------- renewing


def lease(asked: Call, seconds: float = 60) -> steps.Lease:
    return steps.Lease(asked.key, asked.attempt, seconds)


async def test_renewing_keeps_a_claim_and_tells_what_was_lost(world: Database) -> None:
    run = await s.opened(world)
    kept, lost = s.call(run, "notify", lease=1), s.call(run, "notify", n=2)
    for held in (kept, lost):
        await s.permitted(world, run, held)
        await s.let_lease_run_out(world, held.key)
    await s.permitted(world, run, s.call(run, "notify", n=2))
    leases = [lease(kept), lease(lost), lease(s.call(run, "notify", n=3))]
    assert await world.run(lambda conn: steps.renew(conn, leases)) == {kept.key}
    assert isinstance(await s.begin(world, run, s.call(run, "notify")), Busy)


async def test_asking_again_for_one_s_own_claim_renews_it(world: Database) -> None:
    run = await s.opened(world)
    held = s.call(run, "notify", lease=5)
    token = await s.permitted(world, run, held)
    assert await s.permitted(world, run, replace(held, lease=60)) == token
    told = await s.begin(world, run, s.call(run, "notify"))
    assert isinstance(told, Busy)
    assert told.seconds > 50


async def test_renewing_waits_for_no_row(world: Database) -> None:
    run = await s.opened(world)
    free, locked = s.call(run, "notify"), s.call(run, "notify", n=2)
    for held in (free, locked):
        await s.permitted(world, run, held)
        await s.let_lease_run_out(world, held.key)
    async with world.transaction() as other:
        await other.execute("SELECT FROM governance.step WHERE key = %s FOR UPDATE", [locked.key])
        async with asyncio.timeout(1):
            held_still = await world.run(
                lambda conn: steps.renew(conn, [lease(locked), lease(free)])
            )
    assert held_still == {free.key, locked.key}
    live = "SELECT key FROM governance.step WHERE lease_until > governance.clock()"
    assert await s.rows(world, live) == [(free.key,)]


async def test_renewing_in_any_order_beside_finishing_deadlocks_nobody(world: Database) -> None:
    run = await s.opened(world)
    held = [s.call(run, "notify", n=n) for n in range(1, 31)]
    tokens = [await s.permitted(world, run, one) for one in held]

    async def renew(batch: list[Call]) -> None:
        for _ in range(20):
            leases = [lease(one) for one in batch]
            async with world.transaction() as conn:  # not run(): a deadlock would be tried again
                await steps.renew(conn, leases)

    async def finish_all() -> None:
        for one, token in zip(held, tokens, strict=True):
            async with world.transaction() as conn:
                assert await steps.finish(conn, run, one, token, b"") is None

    await asyncio.gather(renew(held), renew(held[::-1]), renew(held[10:] + held[:10]), finish_all())

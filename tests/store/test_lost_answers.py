"""I4: a connection that breaks at COMMIT never costs an honest attempt its step."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from governance import steps
from governance.client import GovernanceClient
from governance.db import Database
from governance.decisions import Decider
from governance.executions import Run
from governance.names import ExecutionState
from governance.steps import Busy, Evicted, Injected, Permit
from tests.proxy import Loss, Proxy
from tests.store import scenario as s

WORKERS = 6
TRIES = 30


@pytest.fixture
async def lossy(proxy: Proxy) -> AsyncGenerator[Database]:
    """The test's database through a proxy that loses answers."""
    async with Database(proxy.dsn, max_size=WORKERS + 2) as opened:
        yield opened


async def one_step(
    lossy: Database, proxy: Proxy, dice: random.Random, run: Run, n: int, told: Counter[str]
) -> None:
    """Begin and finish as the border does, while COMMITs are lost in both directions."""
    held = s.call(run, "notify", n=n)

    def lose() -> None:
        proxy.lose(Loss.ANSWER, dice.choice((1, 1, 2)))
        if dice.random() < 0.3:
            proxy.lose(Loss.QUESTION)

    lose()
    begun = await lossy.run(lambda conn: steps.begin(conn, run, held), tries=TRIES)
    told[type(begun).__name__] += 1
    if isinstance(begun, Permit):
        token = begun.token
        lose()
        outcome = f"outcome {n}".encode()
        finished = await lossy.run(
            lambda conn: steps.finish(conn, run, held, token, outcome), tries=TRIES
        )
        told[type(finished).__name__] += 1


async def many_steps(db: Database, lossy: Database, proxy: Proxy, count: int) -> Counter[str]:
    """What attempts are told; each step has one attempt only, so each is honest."""
    numbers, told = iter(range(1, count + 1)), Counter[str]()

    async def worker(seed: int) -> None:
        dice, run = random.Random(seed), await s.opened(db)
        for n in numbers:
            await one_step(lossy, proxy, dice, run, n, told)

    await asyncio.gather(*(worker(seed) for seed in range(WORKERS)))
    return told


async def test_no_honest_attempt_is_told_that_it_was_evicted(
    world: Database, lossy: Database, proxy: Proxy
) -> None:
    count = 300
    assert await many_steps(world, lossy, proxy, count) == {"Permit": count, "NoneType": count}
    assert proxy.lost > 2 * count
    kinds = await s.rows(
        world, "SELECT type, count(*)::int FROM governance.entry WHERE type ~ '^step' GROUP BY 1"
    )
    assert dict(kinds) == {"step.claimed": count, "step.executed": count}


@pytest.mark.parametrize(
    ("statement", "as_if", "lie"),
    [
        ("lock_step", "SELECT token, holder,", Busy),
        ("fetch_step", "SELECT outcome, done_by,", Injected),
    ],
)
async def test_who_does_not_know_its_own_claim_again_is_caught(
    db: Database,
    lossy: Database,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    as_if: str,
    lie: type[object],
) -> None:
    await s.prepare(db)
    naive = as_if.replace("holder,", "gen_random_uuid() AS holder,").replace(
        "done_by,", "gen_random_uuid() AS done_by,"
    )
    monkeypatch.setitem(steps._Q._statements, statement, steps._Q[statement].replace(as_if, naive))
    told = await many_steps(db, lossy, proxy, 10)
    assert told[lie.__name__]


async def test_a_lost_eviction_is_told_again(world: Database, proxy: Proxy) -> None:
    async with Database(proxy.dsn) as lossy:
        run = await s.opened(world)
        slow, fast = s.call(run, "notify"), s.call(run, "notify")
        token = await s.permitted(world, run, slow)
        await s.let_lease_run_out(world, slow.key)
        proxy.lose(Loss.ANSWER)
        assert await s.begin(lossy, run, fast) == Permit(token + 1, None)
        proxy.lose(Loss.ANSWER)
        assert await s.finish(lossy, run, slow, token) == Evicted()
        proxy.lose(Loss.ANSWER)
        assert await s.finish(lossy, run, fast, token + 1) is None
        assert proxy.lost == 3


async def test_everything_else_a_workflow_asks_can_be_asked_again(
    world: Database, proxy: Proxy
) -> None:
    async with Database(proxy.dsn) as lossy:
        proxy.lose(Loss.ANSWER)
        run = await s.opened(lossy)
        pay = s.call(run)
        proxy.lose(Loss.ANSWER)
        approval = await s.pending(lossy, run, pay)
        assert await s.decide(world, approval) is None
        proxy.lose(Loss.ANSWER)
        assert await s.go_on(lossy, run, approval) == "admitted"
        proxy.lose(Loss.ANSWER)
        token = await s.permitted(lossy, run, pay)
        proxy.lose(Loss.ANSWER)
        assert await lossy.run(
            lambda conn: steps.fail(conn, run, pay, token, code="E", failure=b"f")
        ) in (True, False)
        proxy.lose(Loss.ANSWER)
        later = await s.opened(lossy, s.facts(original_run_id=run.run_id))
        assert later.execution == run.execution
        assert await s.begin(lossy, later, s.call(later)) == Injected(b"f", failed=True)
        proxy.lose(Loss.ANSWER)
        assert not await s.close(lossy, later, ExecutionState.COMPLETED)
        assert proxy.lost == 7
    entries = await s.entry_types(world, run.execution)
    once = ["flow.started", "approval.requested", "step.claimed", "step.failed", "flow.completed"]
    assert [entries.count(kind) for kind in once] == [1] * 5


async def test_who_decided_and_did_not_hear_of_it_is_not_refused(
    world: Database, proxy: Proxy
) -> None:
    run = await s.opened(world)
    approval = await s.pending(world, run, s.call(run))
    async with GovernanceClient(proxy.dsn, s.REALM) as door:
        proxy.lose(Loss.ANSWER)
        await door.approve(approval, Decider(s.ANA, "test"))
        assert proxy.lost == 1
    assert (await s.entry_types(world, run.execution))[1:] == [
        "approval.requested",
        "approval.decided",
    ]


async def test_a_transaction_that_the_server_ended_hides_no_error_of_its_own(
    world: Database,
) -> None:
    async def stand_still() -> None:
        async with world.transaction() as conn:
            await conn.execute("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
            reader = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().add_reader(conn.fileno(), reader.set_result, None)
            await reader
            asyncio.get_running_loop().remove_reader(conn.fileno())
            raise ValueError("what went wrong here")

    with pytest.raises(ValueError, match="what went wrong here"):
        await stand_still()

"""B22: once a freeze is acknowledged no step begins; what is done is injected; another lifts it."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator
from typing import Any, LiteralString

import psycopg
import pytest

from governance import freezes, steps
from governance.db import Database
from governance.errors import (
    AdministrationRefused,
    ConfigurationError,
    FreezeUnknown,
    Frozen,
    ResumeDenied,
)
from governance.executions import Run
from governance.names import ExecutionState
from governance.steps import Injected, Permit
from tests.conftest import RoleDsn
from tests.store import scenario as s
from tests.store.audit import differences
from tests.store.test_grants import refused

BOTH = pytest.mark.parametrize("flow", [s.FLOW, None], ids=["flow", "realm"])


async def payloads(db: Database, kind: str) -> list[dict[str, Any]]:
    """What the entries of one kind say, oldest first."""
    found = await s.rows(
        db,
        "SELECT p.body FROM governance.entry e JOIN governance.payload p ON p.entry = e.id "
        "WHERE e.type = %s ORDER BY e.id",
        kind,
    )
    return [json.loads(body) for (body,) in found]


# ---------------------------------------------------------------- what it stops


@BOTH
async def test_nothing_begins_while_frozen_and_it_goes_on_afterwards(
    world: Database, flow: str | None
) -> None:
    run = await s.opened(world)
    pay = s.call(run)
    approval = await s.approved(world, run, pay)
    assert await s.freeze(world, flow)
    for _ in range(3):
        assert isinstance(await s.begin(world, run, s.call(run)), Frozen)
    assert isinstance(await s.begin(world, run, s.call(run, "notify")), Frozen)
    entries = await s.entry_types(world, run.execution)
    assert (entries.count("step.refused"), entries.count("step.claimed")) == (2, 0)
    await s.unfreeze(world, flow)
    assert await s.begin(world, run, s.call(run)) == Permit(1, approval)


async def test_each_freeze_is_told_once_a_step(world: Database) -> None:
    run = await s.opened(world)
    for flow in (s.FLOW, None, s.FLOW):
        await s.freeze(world, flow)
        for _ in range(2):
            assert isinstance(await s.begin(world, run, s.call(run, "notify")), Frozen)
        await s.unfreeze(world, flow)
    told = [said["freeze"] for said in await payloads(world, "step.refused")]
    assert told == [said["freeze"] for said in await payloads(world, "freeze.set")]


async def test_what_is_done_is_injected_while_frozen(world: Database) -> None:
    run = await s.opened(world)
    done, failed = s.call(run, "notify"), s.call(run, "notify", n=2)
    await s.finish(world, run, done, await s.permitted(world, run, done), b"told")
    token = await s.permitted(world, run, failed)
    await world.run(lambda conn: steps.fail(conn, run, failed, token, code="E", failure=b"no"))
    await s.freeze(world)
    assert await s.begin(world, run, s.call(run, "notify")) == Injected(b"told")
    again = s.call(run, "notify", n=2)
    assert await s.begin(world, run, again) == Injected(b"no", failed=True)


async def test_who_is_running_may_finish_but_not_begin_again(world: Database) -> None:
    run = await s.opened(world)
    held = s.call(run, "notify")
    token = await s.permitted(world, run, held)
    await s.freeze(world)
    assert isinstance(await s.begin(world, run, held), Frozen)
    assert await s.finish(world, run, held, token) is None


async def test_people_decide_while_frozen_and_nobody_is_denied(world: Database) -> None:
    run = await s.opened(world)
    pay = s.call(run)
    approval = await s.pending(world, run, pay)
    await s.freeze(world)
    assert await s.decide(world, approval) is None
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, run, s.call(run)), Frozen)
    assert await s.state_of(world, run) == (ExecutionState.OPEN, None)
    await s.unfreeze(world)
    assert isinstance(await s.begin(world, run, s.call(run)), ResumeDenied)


async def test_other_flows_and_realms_go_on(world: Database) -> None:
    run = await s.opened(world)
    await s.freeze(world, "Another")
    await world.run(lambda conn: freezes.freeze(conn, "elsewhere", None, "ada", "why"))
    await s.permitted(world, run, s.call(run, "notify"))


async def test_a_freeze_of_the_realm_and_of_a_flow_are_lifted_each(world: Database) -> None:
    run = await s.opened(world)
    await s.freeze(world)
    await s.freeze(world, None)
    await s.unfreeze(world)
    assert isinstance(await s.begin(world, run, s.call(run, "notify")), Frozen)
    await s.unfreeze(world, None)
    await s.permitted(world, run, s.call(run, "notify"))


# ---------------------------------------------------------------- who may, and the record


@BOTH
async def test_lifting_takes_another_person(world: Database, flow: str | None) -> None:
    assert await s.freeze(world, flow)
    assert not await s.freeze(world, flow, "bob")
    for same in ("ada", "Ada"):
        with pytest.raises(AdministrationRefused, match="set this freeze"):
            await s.unfreeze(world, flow, same)
    async with world.reading() as conn:
        [row] = await freezes.list_freezes(conn, s.REALM)
    assert (row["flow"], row["set_by"], row["reason"]) == (flow, "ada", "an incident")
    await s.unfreeze(world, flow)
    with pytest.raises(FreezeUnknown, match="is not frozen"):
        await s.unfreeze(world, flow)
    [put], [lifted] = await payloads(world, "freeze.set"), await payloads(world, "freeze.lifted")
    assert put["freeze"] == lifted["freeze"]
    assert (put["by"], put["reason"], put["flow"]) == ("ada", "an incident", flow or "")
    assert (lifted["by"], lifted["reason"]) == ("bob", "it is over")


async def test_where_it_is_on_record(world: Database) -> None:
    await s.freeze(world)
    await s.freeze(world, None)
    found = await s.rows(
        world,
        "SELECT s.kind, s.realm, s.name FROM governance.entry e "
        "JOIN governance.stream s ON s.id = e.stream WHERE e.type = 'freeze.set' ORDER BY e.id",
    )
    assert found == [("contract", s.REALM, s.FLOW), ("log", s.REALM, freezes.REALM_STREAM)]


async def test_a_freeze_needs_a_reason(world: Database) -> None:
    with pytest.raises(AdministrationRefused, match="needs a reason"):
        await world.run(lambda conn: freezes.freeze(conn, s.REALM, s.FLOW, "ada", " "))


async def test_two_at_once_set_one(world: Database) -> None:
    assert sorted(await asyncio.gather(*(s.freeze(world) for _ in range(5)))) == [False] * 4 + [
        True
    ]


@pytest.mark.parametrize("group", ["worker", "decider", "sealer", "reader"])
async def test_only_an_administrator_freezes(
    world: Database, role_dsn: RoleDsn, group: str
) -> None:
    await s.freeze(world, "Another")
    async with Database(role_dsn(group)) as db:
        with pytest.raises(ConfigurationError, match="not allow this"):
            await s.freeze(db)
        with pytest.raises(ConfigurationError, match="not allow this"):
            await s.unfreeze(db, "Another")
    changes: list[LiteralString] = [
        "INSERT INTO governance.freeze (id, realm, set_at, set_by, reason, leaf) "
        "SELECT gen_random_uuid(), 'test', now(), 'ada', 'why', leaf FROM governance.contract",
        "UPDATE governance.freeze SET lifted_at = now(), lifted_by = 'bob'",
        "DELETE FROM governance.freeze",
        "DELETE FROM governance.freeze_told",
        "UPDATE governance.freeze_told SET step = step",
    ]
    assert [text for text in changes if not refused(role_dsn(group), text)] == []


async def test_an_administrator_s_login_is_enough_and_changes_nothing_else(
    world: Database, role_dsn: RoleDsn
) -> None:
    run = await s.opened(world)
    async with Database(role_dsn("admin")) as admin, Database(role_dsn("worker")) as worker:
        await s.freeze(admin)
        assert isinstance(await s.begin(worker, run, s.call(run, "notify")), Frozen)
        await s.unfreeze(admin)
    changes: list[LiteralString] = [
        "DELETE FROM governance.freeze",
        "UPDATE governance.freeze SET reason = 'x'",
        "UPDATE governance.freeze SET lifted_at = NULL, lifted_by = NULL",
        "INSERT INTO governance.freeze_told SELECT * FROM governance.freeze_told",
    ]
    assert [text for text in changes if not refused(role_dsn("admin"), text)] == []


async def test_in_sql_too_lifting_takes_two_people(world: Database, role_dsn: RoleDsn) -> None:
    await s.freeze(world)
    with psycopg.connect(role_dsn("admin")) as conn, pytest.raises(psycopg.errors.CheckViolation):
        conn.execute("UPDATE governance.freeze SET lifted_at = now(), lifted_by = 'ada'")


# ---------------------------------------------------------------- one race, step by step

NO_LOCK = {"lock_shared": "SELECT %(realm)s::text, %(flow)s::text"}
"""Freezes are read without any lock."""

ONE_STATEMENT = NO_LOCK | {
    "fetch_for_step": """
        SELECT * FROM (
            SELECT f.id, f.flow, f.leaf, 0::float8 AS seconds, false AS told, %(key)s::bytea
            FROM (SELECT pg_advisory_xact_lock_shared(7178, hashtext(%(realm)s)),
                         pg_advisory_xact_lock_shared(
                             7179, hashtext(%(realm)s || chr(31) || %(flow)s)) OFFSET 0) locked
            LEFT JOIN governance.freeze f ON f.realm = %(realm)s AND f.lifted_at IS NULL
                AND (f.flow IS NULL OR f.flow = %(flow)s)
            OFFSET 0) found
        WHERE id IS NOT NULL LIMIT 1
    """
}
"""The locks are taken in the statement that reads: its snapshot is older than they are."""

MUTANTS = pytest.mark.parametrize("mutant", [NO_LOCK, ONE_STATEMENT], ids=["no lock", "one"])


async def begin_behind_a_freeze(db: Database, flow: str | None) -> object:
    """What an attempt is told that asked before the freeze was committed."""
    run = await s.opened(db)
    async with db.transaction() as conn:
        await freezes.freeze(conn, s.REALM, flow, "ada", "why")
        begun = asyncio.create_task(s.begin(db, run, s.call(run, "notify")))
        await s.until_waiting(db)
    return await begun


@BOTH
async def test_a_begin_that_waited_for_a_freeze_is_refused(
    world: Database, flow: str | None
) -> None:
    assert isinstance(await begin_behind_a_freeze(world, flow), Frozen)


@BOTH
async def test_freezes_read_in_the_locks_own_statement_are_old(
    db: Database, monkeypatch: pytest.MonkeyPatch, flow: str | None
) -> None:
    await s.prepare(db)
    s.sabotage(monkeypatch, freezes, **ONE_STATEMENT)
    assert isinstance(await begin_behind_a_freeze(db, flow), Permit)
    assert await differences(db) == ["step.claimed while frozen"]


async def frozen_beside_a_begin(db: Database, flow: str | None) -> bool:
    """Whether a freeze is acknowledged while a step that saw none is beginning."""
    run = await s.opened(db)
    async with db.transaction() as conn:
        assert isinstance(await steps.begin(conn, run, s.call(run, "notify")), Permit)
        frozen = asyncio.create_task(s.freeze(db, flow))
        waited = asyncio.create_task(s.until_waiting(db))
        await asyncio.wait([frozen, waited], return_when=asyncio.FIRST_COMPLETED)
        overtaken = frozen.done()
        waited.cancel()
    assert await frozen
    return overtaken


@BOTH
async def test_a_freeze_waits_for_a_begin_that_saw_none(world: Database, flow: str | None) -> None:
    assert not await frozen_beside_a_begin(world, flow)


@BOTH
async def test_without_the_locks_a_freeze_overtakes_a_begin(
    world: Database, monkeypatch: pytest.MonkeyPatch, flow: str | None
) -> None:
    s.sabotage(monkeypatch, freezes, **NO_LOCK)
    assert await frozen_beside_a_begin(world, flow)


# ---------------------------------------------------------------- thousands of races

BEGINS = 20


@pytest.fixture
async def crowd(dsn: str) -> AsyncGenerator[Database]:
    """The test's database with room for all who begin."""
    async with Database(dsn, max_size=BEGINS + 2, wait=30) as opened:
        await s.prepare(opened)
        yield opened


async def race(db: Database, runs: list[Run], n: int, dice: random.Random) -> tuple[int, int]:
    """Freeze while every run begins a step: how many began, and how many too late."""
    flow, permits = dice.choice([s.FLOW, None]), list[float]()

    async def begin(run: Run, pause: float) -> None:
        await asyncio.sleep(pause)
        started = time.monotonic()
        if isinstance(await s.begin(db, run, s.call(run, "notify", n=n)), Permit):
            permits.append(started)

    begins = [asyncio.create_task(begin(run, dice.random() * 0.06)) for run in runs]
    await asyncio.sleep(dice.random() * 0.03)
    await s.freeze(db, flow)
    acknowledged = time.monotonic()
    await asyncio.gather(*begins)
    await s.unfreeze(db, flow)
    return len(permits), sum(started > acknowledged for started in permits)


@pytest.mark.slow
async def test_2000_races_of_begin_and_freeze(crowd: Database) -> None:
    runs, dice = [await s.opened(crowd) for _ in range(BEGINS)], random.Random(1)
    began = late = 0
    for n in range(1, 101):
        permits, after = await race(crowd, runs, n, dice)
        began, late = began + permits, late + after
    assert late == 0
    assert 100 < began < 1900, "the races were no races"
    assert await differences(crowd) == []


@MUTANTS
async def test_the_same_races_without_the_guard_are_caught(
    crowd: Database, monkeypatch: pytest.MonkeyPatch, mutant: dict[str, str]
) -> None:
    s.sabotage(monkeypatch, freezes, **mutant)
    runs, dice = [await s.opened(crowd) for _ in range(BEGINS)], random.Random(1)
    for n in range(1, 101):
        await race(crowd, runs, n, dice)
        found = await differences(crowd)
        if "step.claimed while frozen" in found:
            return
    raise AssertionError("never caught")

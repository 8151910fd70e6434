"""I2: a revocation that was acknowledged denies whatever begins after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from governance.administration import revoke_role
from governance.chain.sealer import Sealer
from governance.chain.sinks import FileSink
from governance.db import Database
from governance.errors import ResumeDenied
from governance.roles import directory
from governance.steps import Permit
from governance.steps import begin as begin_step
from tests.store import races
from tests.store import scenario as s
from tests.store.logs import SIGNER, verify

NO_LOCK = {"lock_actor_shared": "SELECT %(realm)s::text, %(actor)s::text"}
"""Roles are read without any lock."""

ONE_STATEMENT = NO_LOCK | {
    "fetch_roles": """
        SELECT s.head, g.role, g.granted_at, g.granted_by
        FROM (SELECT pg_advisory_xact_lock_shared(
                  7173, governance.actor_bucket(%(realm)s, %(actor)s)) OFFSET 0) locked
        LEFT JOIN governance.stream s
            ON s.kind = 'actor' AND s.realm = %(realm)s AND s.name = %(actor)s
        LEFT JOIN governance.role_grant g ON g.realm = %(realm)s AND g.actor = %(actor)s
    """
}
"""The lock is taken in the statement that reads: its snapshot is older than the lock."""

MUTANTS = pytest.mark.parametrize("mutant", [NO_LOCK, ONE_STATEMENT], ids=["no lock", "one"])


@pytest.fixture
async def crowd(dsn: str) -> AsyncGenerator[Database]:
    """The test's database with room for all racers, and an active contract."""
    async with Database(dsn, max_size=2 * races.RACERS, wait=30) as opened:
        await s.activate(opened, s.contract())
        yield opened


# ---------------------------------------------------------------- one race, step by step


async def begin_behind_a_revocation(db: Database) -> object:
    """What an attempt is told that began before the revocation was committed."""
    [race] = await races.at_the_start(db, 1)
    async with db.transaction() as conn:
        await revoke_role(conn, s.REALM, race.run.actor, "operator", "ada")
        begun = asyncio.create_task(s.begin(db, race.run, s.call(race.run, "notify")))
        await s.until_waiting(db)
    return await begun


async def test_a_begin_that_waited_for_a_revocation_is_denied(crowd: Database) -> None:
    assert isinstance(await begin_behind_a_revocation(crowd), ResumeDenied)


async def test_roles_read_in_the_lock_s_own_statement_are_old(
    crowd: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    s.sabotage(monkeypatch, directory, **ONE_STATEMENT)
    assert isinstance(await begin_behind_a_revocation(crowd), Permit)
    assert (await races.judged(crowd, sealed=False)).wrong == 1


async def revoked_beside_a_begin(db: Database) -> bool:
    """Whether a revocation is acknowledged while a step that read the role is beginning."""
    [race] = await races.at_the_start(db, 1)
    async with db.transaction() as conn:
        begun = await begin_step(conn, race.run, s.call(race.run, "notify"))
        assert isinstance(begun, Permit)
        revoked = asyncio.create_task(s.revoke(db, race.run.actor, "operator"))
        waited = asyncio.create_task(s.until_waiting(db))
        await asyncio.wait([revoked, waited], return_when=asyncio.FIRST_COMPLETED)
        overtaken = revoked.done()
        waited.cancel()
    await revoked
    return overtaken


async def test_a_revocation_waits_for_a_begin_that_read_the_role(crowd: Database) -> None:
    assert not await revoked_beside_a_begin(crowd)


async def test_without_the_lock_a_revocation_overtakes_a_begin(
    crowd: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    s.sabotage(monkeypatch, directory, **NO_LOCK)
    assert await revoked_beside_a_begin(crowd)


async def test_a_trigger_that_locks_something_else_does_not_hold_a_revocation_up(
    crowd: Database,
) -> None:
    async with await crowd.connect() as conn:
        await conn.execute(
            "CREATE OR REPLACE FUNCTION governance.actor_bucket(p_realm text, p_actor text) "
            "RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT pg_backend_pid() & 1023'"
        )
    assert await revoked_beside_a_begin(crowd)


# ---------------------------------------------------------------- thousands of races


async def seal_all(dsn: str, kept: Path) -> None:
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer:
        while (await sealer.seal_once()).entries:
            pass


@pytest.mark.slow
async def test_5000_races_of_begin_and_revoke(crowd: Database, dsn: str, tmp_path: Path) -> None:
    run = await races.at_the_start(crowd, 5000)
    await races.run_all(crowd, run)
    assert sum(race.violations for race in run) == 0
    assert all(race.acknowledged for race in run)
    await seal_all(dsn, tmp_path)
    verdict = await races.judged(crowd)
    assert (verdict.after_revocation, verdict.without_role) == (0, 0)
    assert verdict.claims == sum(len(race.permits) for race in run)
    assert 500 < verdict.claims < 4500, "the races were no races"
    report = await verify(crowd, since=(tmp_path / "latest").read_bytes())
    assert (report.first_problem, report.unsealed) == (None, 0)


@MUTANTS
async def test_the_same_races_without_the_guard_are_caught(
    crowd: Database, monkeypatch: pytest.MonkeyPatch, mutant: dict[str, str]
) -> None:
    s.sabotage(monkeypatch, directory, **mutant)
    wrong = 0
    for seed in range(10):
        run = await races.at_the_start(crowd, 200)
        await races.run_all(crowd, run, seed)
        wrong = (await races.judged(crowd, sealed=False)).wrong
        if wrong:
            break
    assert wrong

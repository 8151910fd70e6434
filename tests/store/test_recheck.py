"""`approver_recheck`: a step begins only while enough of those who approved still could."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from governance import canonical
from governance.chain.entry import Entry
from governance.db import Database
from governance.errors import ApproverLostRole, ResumeDenied
from governance.executions import Run
from governance.names import Verdict
from governance.roles import directory
from governance.steps import Busy, Call, Permit
from governance.steps import begin as begin_step
from tests.store import scenario as s
from tests.store.audit import differences
from tests.store.test_decisions import waiting

NO_LOCK = {"lock_actors_shared": "SELECT %(realm)s::text, %(actors)s::text[]"}
"""Roles are read without any lock."""


@pytest.fixture
async def strict(dsn: str) -> AsyncGenerator[Database]:
    """A payment takes one approver, who must still be one as it begins."""
    async with Database(dsn, max_size=12, wait=30) as opened:
        await s.prepare(opened, s.contract(approver_recheck=True))
        yield opened


async def approved(db: Database, *who: str) -> tuple[Run, Call, uuid.UUID]:
    run, pay, approval = await waiting(db)
    for one in who or (s.ANA,):
        assert await s.decide(db, approval, one) is None
    return run, pay, approval


async def last(db: Database, kind: str) -> tuple[Entry, dict[str, object]]:
    """The newest entry of a type."""
    [(body, payload)] = await s.rows(
        db,
        "SELECT e.body, p.body FROM governance.entry e JOIN governance.payload p ON p.entry = e.id "
        "WHERE e.type = %s ORDER BY e.id DESC LIMIT 1",
        kind,
    )
    said = canonical.loads(payload)
    assert isinstance(said, dict)
    return Entry.parse(body), dict(said)


async def head_of(db: Database, actor: str) -> bytes:
    query = "SELECT head FROM governance.stream WHERE kind = 'actor' AND name = %s"
    [(head,)] = await s.rows(db, query, actor)
    return bytes(head)


async def test_an_approver_who_lost_the_role_stops_the_step(strict: Database) -> None:
    run, pay, approval = await approved(strict)
    await s.revoke(strict, s.ANA, "approver")
    refused = await s.begin(strict, run, pay)
    assert type(refused) is ApproverLostRole
    assert s.ANA not in str(refused)  # names are for the record
    entry, said = await last(strict, "step.refused")
    assert said["code"] == "approver_lost_role"
    assert said["approvers"] == [
        {"approver": s.ANA, "counts": False, "why": "holds no approver", "roles_held": []}
    ]
    assert entry.observed == (await head_of(strict, s.OLGA), await head_of(strict, s.ANA))
    assert await s.approval_state(strict, approval) == "approved"
    assert (await s.state_of(strict, run))[0] == "open"
    await s.grant(strict, s.ANA, "approver")
    assert isinstance(await s.begin(strict, run, pay), Permit)
    entry, said = await last(strict, "step.claimed")
    assert await head_of(strict, s.ANA) in entry.observed
    assert await differences(strict) == []


async def test_unless_asked_a_role_counts_when_its_holder_decides(world: Database) -> None:
    run, pay, _ = await approved(world)
    await s.revoke(world, s.ANA, "approver")
    assert isinstance(await s.begin(world, run, pay), Permit)
    _, said = await last(world, "step.claimed")
    assert "approvers" not in said


async def test_of_two_both_must_still_be_there(db: Database) -> None:
    await s.prepare(db, s.contract(needed=2, approver_recheck=True))
    run, pay, _ = await approved(db, s.ANA, s.EVA)
    await s.revoke(db, s.EVA, "approver")
    refused = await s.begin(db, run, pay)
    assert type(refused) is ApproverLostRole
    assert "Of 2 who approved, 1 still may; it takes 2." in refused.message


async def test_the_actor_s_own_loss_still_ends_the_execution(strict: Database) -> None:
    run, pay, _ = await approved(strict)
    await s.revoke(strict, s.ANA, "approver")
    await s.revoke(strict, s.OLGA, "operator")
    assert type(await s.begin(strict, run, pay)) is ResumeDenied
    assert (await s.state_of(strict, run))[0] == "denied"


async def test_what_is_approved_while_a_step_begins_is_looked_at_again(strict: Database) -> None:
    run, pay, approval = await waiting(strict)
    async with await strict.connect() as conn, conn.transaction():
        shut = "SELECT pg_advisory_xact_lock(7173, governance.actor_bucket(%s, %s))"
        await conn.execute(shut, [s.REALM, s.OLGA])
        begun = asyncio.create_task(s.begin(strict, run, pay))
        await s.until_waiting(strict)
        assert await s.decide(strict, approval) is None
    assert await begun == Busy(0)
    assert isinstance(await s.begin(strict, run, pay), Permit)


async def test_each_bucket_is_locked_once(db: Database) -> None:
    await s.prepare(db, s.contract(duties=(), approver_recheck=True))
    await s.grant(db, s.OLGA, "approver")
    run, pay, _ = await approved(db, s.OLGA)
    async with db.transaction() as conn:
        assert isinstance(await begin_step(conn, run, pay), Permit)
        query = "SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND classid = 7173"
        buckets = await (await conn.execute(query)).fetchall()
    assert len(buckets) == 1


# ---------------------------------------------------------------- races


async def overtaken(db: Database) -> bool:
    """Whether an approver's revocation is acknowledged while a step that read it is beginning."""
    run, pay, _ = await approved(db)
    async with db.transaction() as conn:
        assert isinstance(await begin_step(conn, run, pay), Permit)
        revoked = asyncio.create_task(s.revoke(db, s.ANA, "approver"))
        waited = asyncio.create_task(s.until_waiting(db))
        await asyncio.wait([revoked, waited], return_when=asyncio.FIRST_COMPLETED)
        before = revoked.done()
        waited.cancel()
    await revoked
    return before


async def test_a_revocation_waits_for_a_begin_that_read_the_approver(strict: Database) -> None:
    assert not await overtaken(strict)


async def test_without_the_lock_it_does_not(
    strict: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    s.sabotage(monkeypatch, directory, **NO_LOCK)
    assert await overtaken(strict)


async def race(db: Database, number: int, dice: random.Random) -> tuple[int, int]:
    """An approver loses the role while the step begins: permits, and those that came too late."""
    who = f"approver-{number}"
    await s.grant(db, who, "approver")
    run, pay, approval = await waiting(db)
    assert await s.decide(db, approval, who, Verdict.APPROVE) is None

    async def begin(pause: float) -> tuple[float, bool]:
        await asyncio.sleep(pause)
        started = time.monotonic()
        return started, isinstance(await s.begin(db, run, s.call(run)), Permit)

    first = asyncio.create_task(begin(dice.random() * 0.006))
    await asyncio.sleep(dice.random() * 0.006)
    await s.revoke(db, who, "approver")
    acknowledged = time.monotonic()
    if not (await first)[1]:
        assert type(await s.begin(db, run, pay)) is ApproverLostRole
    started, permitted = await first
    return int(permitted), int(permitted and started > acknowledged)


async def test_races_of_begin_and_an_approver_s_revocation(strict: Database) -> None:
    dice = random.Random(7)
    found: list[tuple[int, int]] = []
    for first in range(0, 120, 6):
        together = (race(strict, number, dice) for number in range(first, first + 6))
        found += await asyncio.gather(*together)
    permits, late = (sum(column) for column in zip(*found, strict=True))
    assert late == 0
    assert 5 < permits < 115, "the races were no races"
    entries = await s.rows(
        strict,
        "SELECT e.id, e.type, p.body FROM governance.entry e "
        "JOIN governance.payload p ON p.entry = e.id "
        "WHERE e.type IN ('step.claimed', 'role.revoked') ORDER BY e.id",
    )
    revoked: set[str] = set()
    claims = 0
    for _, kind, body in entries:
        said: Any = canonical.loads(body)
        if kind == "role.revoked":
            revoked.add(said["actor"])
            continue
        [vote] = said["approvers"]
        assert vote["counts"]
        assert vote["approver"] not in revoked, "the record has them in the wrong order"
        claims += 1
    assert claims == permits
    assert await differences(strict) == []

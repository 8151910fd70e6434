"""Quorum: as many distinct people as the contract says, each vote on record, none lost."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import pytest

from governance import approvals, decisions, executions
from governance.db import Database
from governance.decisions import Decider
from governance.errors import AlreadyDecided, AlreadyVoted, ApprovalMissing, DecisionRefused
from governance.executions import Run
from governance.names import ApprovalState, Verdict
from governance.rules.decision import Accepted
from governance.steps import Call, Permit
from tests.store import scenario as s
from tests.store.audit import differences
from tests.store.test_decisions import said, waiting

MAX = "max"


@pytest.fixture
async def two(dsn: str) -> AsyncGenerator[Database]:
    """A database where a payment takes two approvers, of whom there are three."""
    async with Database(dsn, max_size=12, wait=30) as opened:
        await s.prepare(opened, s.contract(needed=2))
        await s.grant(opened, MAX, "approver")
        yield opened


async def vote(db: Database, approval: uuid.UUID, who: str) -> DecisionRefused | Accepted:
    return await db.run(
        lambda conn: decisions.vote(conn, s.REALM, approval, Verdict.APPROVE, Decider(who))
    )


async def test_two_approve_and_each_vote_is_on_record(two: Database) -> None:
    run, pay, approval = await waiting(two)
    assert await vote(two, approval, s.ANA) == Accepted(("approver",), needed=2, missing=1)
    assert await s.approval_state(two, approval) == "pending"
    assert await s.woken(two) == []
    assert await s.go_on(two, run, approval) == "pending"
    assert type(await s.begin(two, run, pay)) is ApprovalMissing
    assert await vote(two, approval, MAX) == Accepted(("approver",), needed=2, missing=0)
    assert await s.approval_state(two, approval) == "approved"
    [wake] = await s.woken(two)
    assert wake.hint == "approved"
    assert isinstance(await s.begin(two, run, pay), Permit)

    entries = [(kind, body) for kind, body in await said(two, approval) if "voters" in body]
    assert [kind for kind, _ in entries] == ["approval.vote", "approval.decided"]
    [(_, first), (_, last)] = entries
    assert (first["voters"], first["missing"], first["votes"]) == ([s.ANA], 1, [])
    assert (last["voters"], last["missing"], last["needed"]) == ([s.ANA, MAX], 0, 2)
    rows = await s.rows(two, "SELECT decided_by, leaf FROM governance.decision ORDER BY id")
    assert [by for by, _ in rows] == [s.ANA, MAX]
    assert last["votes"] == [rows[0][1].hex()]
    assert await differences(two) == []


async def test_what_people_see_of_it(two: Database) -> None:
    _, _, approval = await waiting(two)
    await vote(two, approval, s.ANA)
    async with two.reading() as conn:
        found = await approvals.get(conn, s.REALM, approval)
        [listed] = await approvals.list_approvals(conn, s.REALM)
    assert (found.tally.missing, listed["needed"], listed["voted"]) == (1, 2, 1)
    [counted] = found.tally.votes
    assert (counted.by, counted.counts, counted.why) == (s.ANA, True, "holding approver")


@pytest.mark.parametrize("again", [s.ANA, "Ana", "ANA "])
async def test_the_same_person_is_not_counted_twice(two: Database, again: str) -> None:
    _, _, approval = await waiting(two)
    await vote(two, approval, s.ANA)
    await s.grant(two, again, "approver")
    told = await vote(two, approval, again)
    assert type(told) is AlreadyVoted
    assert "1 of 2 approver" in told.message
    assert await s.approval_state(two, approval) == "pending"
    assert await differences(two) == []


@pytest.mark.parametrize("who", [s.ANA, s.EVA])
async def test_one_rejection_rejects_also_of_who_had_approved(two: Database, who: str) -> None:
    run, _, approval = await waiting(two)
    await vote(two, approval, s.ANA)
    assert await s.decide(two, approval, who, Verdict.REJECT, "wrong payee") is None
    assert await s.approval_state(two, approval) == "rejected"
    assert type(await vote(two, approval, MAX)) is AlreadyDecided
    assert await s.go_on(two, run, approval) == "rejected"
    assert await differences(two) == []


async def test_one_approver_writes_what_one_approver_always_wrote(world: Database) -> None:
    _, _, approval = await waiting(world)
    assert await s.decide(world, approval) is None
    for _, body in await said(world, approval):
        assert not {"needed", "missing", "voters", "votes"} & body.keys()


# ---------------------------------------------------------------- at once


async def at_once(db: Database, count: int) -> list[tuple[Run, Call, uuid.UUID]]:
    """Many approvals of which each gets its two votes at the same moment."""
    asked = [await waiting(db) for _ in range(count)]
    votes: list[Coroutine[Any, Any, object]] = [
        vote(db, approval, who) for _, _, approval in asked for who in (s.ANA, s.EVA)
    ]
    told = await s.all_at_once(db, votes, gate=(s.ANA, s.EVA))
    assert all(isinstance(one, Accepted) for one in told), told
    return asked


async def test_of_votes_at_once_none_is_stuck_and_none_counts_twice(two: Database) -> None:
    await at_once(two, 100)
    states = await s.rows(two, "SELECT state, count(*) FROM governance.approval GROUP BY state")
    assert states == [("approved", 100)]
    kinds = await s.rows(
        two,
        "SELECT type, count(*) FROM governance.entry "
        "WHERE type IN ('approval.vote', 'approval.decided') GROUP BY type ORDER BY type",
    )
    assert kinds == [("approval.decided", 100), ("approval.vote", 100)]
    assert await s.rows(two, "SELECT count(*) FROM governance.outbox") == [(100,)]
    assert await differences(two) == []


async def test_without_the_lock_votes_at_once_are_stuck(
    two: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlocked = executions._Q["lock_execution_of"].replace("FOR NO KEY UPDATE", "")
    s.sabotage(monkeypatch, executions, lock_execution_of=unlocked)
    for _ in range(5):
        asked = await at_once(two, 20)
        states = [await s.approval_state(two, approval) for _, _, approval in asked]
        if ApprovalState.PENDING in states:
            return
    raise AssertionError("nobody noticed")

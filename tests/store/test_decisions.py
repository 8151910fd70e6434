"""Deciding: one decision whoever clicks how often, and every refusal on record."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest

from governance import approvals, canonical, decisions, executions
from governance.db import Database
from governance.decisions import Decider
from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    ApprovalExpired,
    ApprovalUnknown,
    ApprovalWithdrawn,
    BarrierNotMet,
    DecisionRefused,
    DigestMismatch,
    ReasonRequired,
    ResumeDenied,
)
from governance.executions import Run
from governance.names import ApprovalState, ExecutionState, Verdict
from governance.steps import Call
from tests.store import scenario as s

APPROVE, REJECT = Verdict.APPROVE, Verdict.REJECT


async def waiting(db: Database) -> tuple[Run, Call, uuid.UUID]:
    """A payment that waits for its decision."""
    run = await s.opened(db)
    pay = s.call(run)
    return run, pay, await s.pending(db, run, pay)


async def said(db: Database, approval: uuid.UUID) -> list[tuple[str, Any]]:
    """Type and payload of the entries about an approval, in order."""
    found = await s.rows(
        db,
        "SELECT e.type, p.body FROM governance.entry e "
        "JOIN governance.payload p ON p.entry = e.id ORDER BY e.id",
    )
    entries = [(kind, canonical.loads(body)) for kind, body in found]
    return [(k, p) for k, p in entries if isinstance(p, dict) and p.get("approval") == approval.hex]


# ---------------------------------------------------------------- once


async def clicked(db: Database, approval: uuid.UUID, people: list[str]) -> list[Any]:
    """What they are told who decide at once; 50 clicks, every third a rejection."""
    return await s.all_at_once(
        db,
        [
            s.decide(db, approval, people[i % len(people)], REJECT if i % 3 == 0 else APPROVE)
            for i in range(50)
        ],
        gate=people,
    )


@pytest.mark.parametrize("people", [[s.ANA], [s.ANA, s.EVA]], ids=["one person", "two people"])
async def test_fifty_clicks_at_once_are_one_decision(world: Database, people: list[str]) -> None:
    _, _, approval = await waiting(world)
    told = await clicked(world, approval, people)
    assert told.count(None) == 1
    [(by, verdict)] = await s.rows(world, "SELECT decided_by, verdict FROM governance.decision")
    assert await s.approval_state(world, approval) == {"approve": "approved"}.get(
        verdict, "rejected"
    )
    others = [one for one in told if one is not None]
    assert {type(one) for one in others} == {AlreadyDecided}
    assert all(f" by {by} on " in one.message for one in others)
    kinds = [kind for kind, _ in await said(world, approval)]
    assert (kinds.count("approval.decided"), kinds.count("approval.refused")) == (1, 49)
    assert await s.rows(world, "SELECT count(*) FROM governance.outbox") == [(1,)]


async def test_without_locks_clicks_at_once_are_not_one_decision(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await s.prepare(db)
    unlocked = executions._Q["lock_execution_of"].replace("FOR NO KEY UPDATE", "")
    s.sabotage(monkeypatch, executions, lock_execution_of=unlocked)
    for _ in range(20):
        _, _, approval = await waiting(db)
        told = await clicked(db, approval, [s.ANA, s.EVA])
        if sum(not isinstance(one, AlreadyDecided) for one in told) > 1:
            return
    raise AssertionError("nobody noticed")


# ---------------------------------------------------------------- on record


async def test_a_decision_says_who_with_which_role_over_what(world: Database) -> None:
    run, pay, approval = await waiting(world)
    assert await s.decide(world, approval, s.ANA, APPROVE, "invoice checked") is None
    [_, (kind, decided)] = await said(world, approval)
    assert kind == "approval.decided"
    [role] = decided.pop("roles_held")
    assert (role["role"], role["granted_by"]) == ("approver", "ada")
    assert (
        decided.items()
        >= {
            "decided_by": s.ANA,
            "submitted_by": "os:ana",
            "method": "test",
            "verdict": "approve",
            "reason": "invoice checked",
            "name": "finance",
            "input_digest": pay.input_digest.hex(),
            "shown_digest": canonical.digest_hex(b'{"payee":"Acme"}'),
        }.items()
    )
    async with world.reading() as conn:
        found = await approvals.get(conn, s.REALM, approval)
        listed = await approvals.list_approvals(conn, s.REALM, state=ApprovalState.APPROVED)
        waiting_still = await approvals.list_approvals(conn, s.REALM)
    assert (found.state, found.requested_by, found.shown) == ("approved", s.OLGA, {"payee": "Acme"})
    assert [(row["decided_by"], row["roles_held"]) for row in found.decisions] == [
        (s.ANA, ["approver"])
    ]
    assert [row["id"] for row in listed] == [approval]
    assert waiting_still == []
    assert await s.go_on(world, run, approval) == "admitted"


@pytest.mark.parametrize(
    ("who", "verdict", "reason", "digest", "refusal"),
    [
        (s.OLGA, APPROVE, "", None, ActorMustNotDecide),
        ("Olga", APPROVE, "", None, ActorMustNotDecide),
        ("zoe", APPROVE, "", None, BarrierNotMet),
        (s.ANA, REJECT, "", None, ReasonRequired),
        (s.ANA, REJECT, " \n", None, ReasonRequired),
        (s.ANA, APPROVE, "", bytes(32), DigestMismatch),
    ],
)
async def test_refused_and_on_record_and_still_waiting(
    world: Database,
    who: str,
    verdict: Verdict,
    reason: str,
    digest: bytes | None,
    refusal: type[DecisionRefused],
) -> None:
    await s.grant(world, s.OLGA, "approver")
    _, pay, approval = await waiting(world)
    told = await s.decide(world, approval, who, verdict, reason, digest)
    assert type(told) is refusal
    assert [kind for kind, _ in await said(world, approval)][1:] == ["approval.refused"]
    [_, (_, refused)] = await said(world, approval)
    assert (refused["refused"], refused["code"]) == (who, refusal.code)
    assert await s.approval_state(world, approval) == "pending"
    assert await s.decide(world, approval, s.ANA, digest=pay.input_digest) is None


async def test_a_role_lost_before_deciding_counts(world: Database) -> None:
    _, _, approval = await waiting(world)
    await s.revoke(world, s.ANA, "approver")
    assert type(await s.decide(world, approval)) is BarrierNotMet


async def test_another_realm_has_no_such_approval(world: Database) -> None:
    _, _, approval = await waiting(world)
    with pytest.raises(ApprovalUnknown):
        await world.run(
            lambda conn: decisions.decide(conn, "other", approval, APPROVE, Decider(s.ANA))
        )


# ---------------------------------------------------------------- time


async def test_decide_by_is_judged_by_the_database_s_clock(db: Database) -> None:
    await s.prepare(db, s.contract(decide_by=timedelta(days=4), execute_by=timedelta(hours=1)))
    run, pay, approval = await waiting(db)
    [(days,)] = await s.rows(db, "SELECT decide_by - requested_at FROM governance.approval")
    assert days == timedelta(days=4)
    await s.let_limit_pass(db, approval, "decide_by")
    assert type(await s.decide(db, approval)) is ApprovalExpired
    assert await s.approval_state(db, approval) == "expired"
    assert type(await s.decide(db, approval)) is ApprovalExpired
    kinds = [kind for kind, _ in await said(db, approval)]
    assert kinds[1:] == ["approval.expired", "approval.refused", "approval.refused"]
    # The call that saw it end is answered; the next round of it may ask anew.
    assert (await s.ask(db, run, pay)) == ("expired", approval)
    state, another = await s.ask(db, run, s.call(run, round=2))
    assert (state, another != approval) == ("pending", True)
    assert another is not None
    assert await s.decide(db, another) is None
    [(limit,)] = await s.rows(
        db, "SELECT execute_by - decided_at FROM governance.approval WHERE id = %s", another
    )
    assert limit == timedelta(hours=1)


async def test_what_nobody_decided_in_time_is_told_to_the_workflow(world: Database) -> None:
    run, _, approval = await waiting(world)
    await waiting(world)
    await s.let_limit_pass(world, approval, "decide_by")
    async with world.transaction() as conn:
        assert await approvals.find_overdue(conn, s.REALM) == [(approval, run.execution)]
    for _ in range(2):
        await world.run(lambda conn: approvals.expire(conn, s.REALM, approval, run.execution))
    assert await s.approval_state(world, approval) == "expired"
    async with world.transaction() as conn:
        assert await approvals.find_overdue(conn, s.REALM) == []
    assert [(wake.topic, wake.hint) for wake in await s.woken(world)] == [(approval.hex, "expired")]
    assert await s.go_on(world, run, approval) == "expired"
    assert (await s.entry_types(world, run.execution)).count("approval.expired") == 1


async def test_a_workflow_that_looks_itself_sees_that_time_ran_out(world: Database) -> None:
    run, _, approval = await waiting(world)
    await s.let_limit_pass(world, approval, "decide_by")
    assert await s.go_on(world, run, approval) == "expired"


async def test_an_approval_that_was_not_used_in_time_admits_nobody(world: Database) -> None:
    run, pay, _ = await waiting(world)
    other = s.call(run, n=2)
    approval = await s.approved(world, run, other)
    await s.let_limit_pass(world, approval, "execute_by")
    assert await s.go_on(world, run, approval) == "expired"
    assert (await s.ask(world, run, pay))[0] == "pending"


# ---------------------------------------------------------------- taken back, ended, asked again


async def withdraw(db: Database, approval: uuid.UUID, who: str) -> DecisionRefused | None:
    return await db.run(
        lambda conn: decisions.withdraw_as(conn, s.REALM, approval, Decider(who), "a mistake")
    )


async def test_who_asked_can_take_it_back(world: Database) -> None:
    run, _, approval = await waiting(world)
    assert type(await withdraw(world, approval, s.ANA)) is DecisionRefused
    assert await withdraw(world, approval, s.OLGA) is None
    assert await s.approval_state(world, approval) == "withdrawn"
    assert type(await s.decide(world, approval)) is ApprovalWithdrawn
    assert type(await withdraw(world, approval, s.OLGA)) is ApprovalWithdrawn
    assert await s.go_on(world, run, approval) == "withdrawn"


async def test_what_is_decided_cannot_be_taken_back(world: Database) -> None:
    _, _, approval = await waiting(world)
    assert await s.decide(world, approval) is None
    told = await withdraw(world, approval, s.OLGA)
    assert type(told) is AlreadyDecided
    assert " by ana on " in told.message


async def test_an_ended_execution_asks_nobody(world: Database) -> None:
    run, _, approval = await waiting(world)
    await s.close(world, run, ExecutionState.CANCELLED)
    assert type(await s.decide(world, approval)) is ApprovalWithdrawn


async def test_asking_again_finds_the_same_request(world: Database) -> None:
    run, pay, approval = await waiting(world)
    told = await asyncio.gather(*(s.ask(world, run, pay) for _ in range(8)))
    assert told == [("pending", approval)] * 8
    assert await s.decide(world, approval) is None
    reset = await s.opened(world, s.facts(original_run_id=run.run_id))
    assert await s.ask(world, reset, s.call(reset)) == ("approved", approval)
    assert await s.finish(world, reset, pay, await s.permitted(world, reset, pay)) is None
    assert await s.ask(world, reset, s.call(reset)) == ("done", None)


async def test_a_rejection_stands_for_the_whole_execution(world: Database) -> None:
    run, _, approval = await waiting(world)
    assert await s.decide(world, approval, s.ANA, REJECT, "wrong payee") is None
    later = await s.opened(world, s.facts(attempt=2, continued_run_id=run.run_id))
    for again in (s.call(run, round=2), s.call(later)):
        assert await s.ask(world, later, again) == ("rejected", approval)
    assert (await s.ask(world, later, s.call(later, given=b"other")))[0] == "pending"


# ---------------------------------------------------------------- the resume


async def test_a_resume_waits_for_the_decision(world: Database) -> None:
    run, _, approval = await waiting(world)
    assert await s.go_on(world, run, approval) == "pending"
    await s.decide(world, approval, s.ANA, REJECT, "wrong payee")
    assert await s.go_on(world, run, approval) == "rejected"
    assert await s.go_on(world, run, uuid.uuid4()) == "withdrawn"
    assert (await s.entry_types(world, run.execution)).count("resume.admitted") == 0


async def test_a_resume_without_the_role_ends_the_execution(world: Database) -> None:
    run, pay, approval = await waiting(world)
    await s.revoke(world, s.OLGA, "operator")
    assert await s.decide(world, approval) is None
    assert await s.go_on(world, run, approval) == "denied"
    await s.grant(world, s.OLGA, "operator")
    assert await s.go_on(world, run, approval) == "denied"
    assert isinstance(await s.begin(world, run, pay), ResumeDenied)
    assert (await s.entry_types(world, run.execution)).count("resume.denied") == 1

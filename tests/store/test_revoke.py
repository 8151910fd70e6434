"""Taking a decision back before it is used: once committed, no step begins on it."""

from __future__ import annotations

import uuid

import pytest

from governance import decisions, executions
from governance.client import GovernanceClient
from governance.db import Database
from governance.decisions import Decider
from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    ApprovalExpired,
    ApprovalNotUsable,
    BarrierNotMet,
    CannotRevoke,
    DecisionRefused,
    ReasonRequired,
)
from governance.executions import Run
from governance.steps import Call, Permit
from tests.conftest import RoleDsn
from tests.store import scenario as s
from tests.store.audit import differences
from tests.store.scenario import logged_in
from tests.store.test_decisions import said, waiting


async def revoke(
    db: Database, approval: uuid.UUID, who: str = s.EVA, reason: str = "wrong invoice"
) -> DecisionRefused | None:
    decider = Decider(who, "test", f"os:{who}")
    return await db.run(lambda conn: decisions.revoke(conn, s.REALM, approval, decider, reason))


async def approved(db: Database) -> tuple[Run, Call, uuid.UUID]:
    run, pay, approval = await waiting(db)
    assert await s.decide(db, approval) is None
    return run, pay, approval


async def test_what_is_revoked_does_not_begin(world: Database) -> None:
    run, pay, approval = await approved(world)
    assert await revoke(world, approval) is None
    assert await s.approval_state(world, approval) == "revoked"
    assert [wake.hint for wake in await s.woken(world)] == ["revoked"]
    refused = await s.begin(world, run, pay)
    assert type(refused) is ApprovalNotUsable
    assert refused.message.endswith("cannot be used: revoked.")
    open_rows = "SELECT count(*) FROM governance.outbox WHERE done_at IS NULL"
    assert await s.rows(world, open_rows) == [(0,)]
    [(_, entry)] = [one for one in await said(world, approval) if one[0] == "approval.revoked"]
    [role] = entry["roles_held"]
    assert (role["role"], entry["revoked_by"], entry["submitted_by"]) == (
        "approver", s.EVA, "os:eva",
    )  # fmt: skip
    assert (entry["reason"], entry["attempts_before"]) == ("wrong invoice", 0)
    assert await differences(world) == []


async def test_the_workflow_learns_and_may_ask_again(world: Database) -> None:
    run, pay, approval = await approved(world)
    assert await revoke(world, approval) is None
    assert await s.go_on(world, run, approval) == "revoked"
    assert await s.ask(world, run, pay) == ("revoked", approval)
    state, another = await s.ask(world, run, s.call(run, round=2))
    assert (state, another != approval) == ("pending", True)


async def test_nobody_is_woken_who_has_heard_of_the_decision(world: Database) -> None:
    run, pay, approval = await approved(world)
    assert await s.go_on(world, run, approval) == "admitted"
    assert await revoke(world, approval) is None
    assert await s.woken(world) == []
    assert type(await s.begin(world, run, pay)) is ApprovalNotUsable
    assert await differences(world) == []


async def test_who_approved_may_without_the_role(world: Database) -> None:
    _, _, approval = await approved(world)
    await s.revoke(world, s.ANA, "approver")
    assert await revoke(world, approval, s.ANA) is None


@pytest.mark.parametrize(
    ("who", "reason", "refusal"),
    [
        (s.OLGA, "x", ActorMustNotDecide),
        ("zoe", "x", BarrierNotMet),
        (s.ANA, " ", ReasonRequired),
    ],
)
async def test_who_may_not_and_why_is_on_record(
    world: Database, who: str, reason: str, refusal: type[DecisionRefused]
) -> None:
    run, pay, approval = await approved(world)
    assert type(await revoke(world, approval, who, reason)) is refusal
    (kind, entry) = (await said(world, approval))[-1]
    assert (kind, entry["refused"], entry["code"], entry["verdict"]) == (
        "approval.refused", who, refusal.code, "revoke",
    )  # fmt: skip
    assert isinstance(await s.begin(world, run, pay), Permit)


async def test_not_before_and_not_after(world: Database) -> None:
    run, pay, approval = await waiting(world)
    assert type(await revoke(world, approval)) is CannotRevoke
    assert await s.decide(world, approval) is None
    token = await s.permitted(world, run, pay)
    assert type(await revoke(world, approval)) is CannotRevoke
    assert await s.finish(world, run, pay, token) is None
    assert type(await revoke(world, approval)) is CannotRevoke
    assert await s.approval_state(world, approval) == "used"


async def test_once_and_not_what_has_run_out(world: Database) -> None:
    _, _, approval = await approved(world)
    assert await revoke(world, approval) is None
    assert type(await revoke(world, approval)) is AlreadyDecided
    _, _, late = await approved(world)
    await s.let_limit_pass(world, late, "execute_by")
    assert type(await revoke(world, late)) is ApprovalExpired
    assert await s.approval_state(world, late) == "expired"
    assert await differences(world) == []


async def test_an_attempt_that_gave_no_sign_of_life_does_not_stand_in_the_way(
    world: Database,
) -> None:
    run, pay, approval = await approved(world)
    await s.permitted(world, run, pay)
    await s.let_lease_run_out(world, pay.key)
    assert await revoke(world, approval) is None
    (_, entry) = (await said(world, approval))[-1]
    assert entry["attempts_before"] == 1
    assert type(await s.begin(world, run, s.call(run))) is ApprovalNotUsable


async def raced(db: Database) -> bool:
    """Begin and revoke at once; whether both went through."""
    run, pay, approval = await approved(db)
    gate = (s.OLGA, s.EVA)
    begun, revoked = await s.all_at_once(
        db, [s.begin(db, run, pay), revoke(db, approval)], gate=gate
    )
    return isinstance(begun, Permit) and revoked is None


async def test_of_begin_and_revoke_one_is_first(world: Database) -> None:
    assert not any([await raced(world) for _ in range(20)])
    assert await differences(world) == []


async def test_without_the_lock_both_would_go_through(
    world: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lock_execution", "lock_execution_of"):
        unlocked = executions._Q[name].replace("FOR NO KEY UPDATE", "")
        s.sabotage(monkeypatch, executions, **{name: unlocked})
    assert any([await raced(world) for _ in range(40)])


async def test_a_decider_s_login_is_enough(world: Database, role_dsn: RoleDsn) -> None:
    async with logged_in(role_dsn) as logins:
        run = await s.opened(logins.worker)
        approval = await s.pending(logins.worker, run, s.call(run))
        assert await s.decide(logins.decider, approval) is None
        async with GovernanceClient(role_dsn("decider"), s.REALM) as client:
            with pytest.raises(BarrierNotMet):
                await client.revoke(approval, Decider("zoe"), "x")
            await client.revoke(approval, Decider(s.EVA), "wrong invoice")
        assert await s.go_on(logins.worker, run, approval) == "revoked"

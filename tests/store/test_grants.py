"""I6 and the database roles: who may do what, and that it is enough for the whole story."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from governance import administration, approvals, decisions, outbox, steps
from governance.chain.sealer import Sealer
from governance.chain.sinks import FileSink
from governance.client import GovernanceClient
from governance.db import Database
from governance.db.statements import pipelined
from governance.decisions import Decider
from governance.errors import (
    ActorMustNotDecide,
    ApprovalExpired,
    ConfigurationError,
    ResumeDenied,
)
from governance.executions import open_run
from governance.names import ENTRY_WRITERS, ExecutionState, Verdict
from governance.steps import Evicted, Injected, Permit
from governance.turns import list_turns
from tests.conftest import RoleDsn
from tests.servers import GROUPS
from tests.store import scenario as s
from tests.store.logs import SIGNER, verify
from tests.store.scenario import Logins, logged_in

EVIDENCE = ("entry", "payload", "leaf", "checkpoint")
Refused = psycopg.errors.InsufficientPrivilege


@pytest.fixture
async def logins(world: Database, role_dsn: RoleDsn) -> AsyncGenerator[Logins]:
    """One login for each group role, on a database with people and a contract."""
    async with logged_in(role_dsn) as opened:
        yield opened


def refused(dsn: str, statement: LiteralString | sql.Composed) -> bool:
    """Whether the login may not do this; whatever it does is rolled back."""
    with psycopg.connect(dsn) as conn:
        try:
            conn.execute(statement)
        except Refused:
            return True
        finally:
            conn.rollback()
    return False


# ---------------------------------------------------------------- enough for the whole story


async def test_logins_of_one_role_each_are_enough_for_a_payment(
    world: Database, logins: Logins, role_dsn: RoleDsn, tmp_path: Path
) -> None:
    worker, decider = logins.worker, logins.decider
    await s.activate(logins.admin, s.contract("2"))
    await s.grant(logins.admin, s.OLGA, "approver")
    run = await s.opened(worker)
    pay = s.call(run)
    approval = await s.pending(worker, run, pay)
    assert type(await s.decide(decider, approval, s.OLGA)) is ActorMustNotDecide
    assert await s.decide(decider, approval, s.ANA) is None
    [wake] = await s.woken(worker)
    assert (wake.workflow_id, wake.topic, wake.hint) == ("w", approval.hex, "approved")
    async with worker.transaction() as conn:
        await pipelined(conn, outbox.listen())
    assert await s.go_on(worker, run, approval) == "admitted"
    token = await s.permitted(worker, run, pay)
    async with worker.transaction() as conn:
        lease = steps.Lease(pay.key, pay.attempt, 60)
        assert await steps.renew(conn, [lease]) == {pay.key}
        assert await steps.fail(conn, run, pay, token, code="E", failure=b"declined")
    slow, fast = s.call(run, round=2), s.call(run, round=2)
    token = await s.permitted(worker, run, slow)
    await s.let_lease_run_out(world, pay.key)
    assert isinstance(await s.begin(worker, run, fast), Permit)
    assert await s.finish(worker, run, slow, token) == Evicted()
    assert await s.finish(worker, run, fast, token + 1) is None
    reset = await s.opened(worker, s.facts(original_run_id=run.run_id))
    assert await s.begin(worker, reset, s.call(reset)) == Injected(b"paid")
    assert await s.close(worker, reset, ExecutionState.COMPLETED)
    async with Sealer(role_dsn("sealer"), SIGNER, [FileSink(tmp_path)]) as sealer:
        await sealer.seal_once()
    report = await verify(logins.reader, since=(tmp_path / "latest").read_bytes())
    assert (report.first_problem, report.unsealed) == (None, 0)


async def test_and_for_all_that_can_go_wrong(world: Database, logins: Logins) -> None:
    worker, decider = logins.worker, logins.decider
    async with worker.transaction() as conn:
        await open_run(conn, s.facts(flow="Unknown"), None)
    run = await s.opened(worker)
    late, mistaken, cancelled, rejected, lost = (s.call(run, n=n) for n in range(1, 6))
    approval = await s.pending(worker, run, late)
    await s.let_limit_pass(world, approval, "decide_by")
    assert type(await s.decide(decider, approval)) is ApprovalExpired
    approval = await s.pending(worker, run, mistaken)
    async with decider.transaction() as conn:
        assert (
            await decisions.withdraw_as(conn, s.REALM, approval, Decider(s.OLGA), "mistake") is None
        )
    await s.pending(worker, run, cancelled)
    async with worker.transaction() as conn:
        await approvals.withdraw_step(conn, run, "pay", 3, "cancelled")
    approval = await s.pending(worker, run, rejected)
    assert await s.decide(decider, approval, s.ANA, Verdict.REJECT) is None
    assert await s.go_on(worker, run, approval) == "rejected"
    approval = await s.approved(world, run, lost)
    await s.revoke(logins.admin, s.OLGA, "operator")
    assert await s.go_on(worker, run, approval) == "denied"
    assert isinstance(await s.begin(worker, run, s.call(run, "notify")), ResumeDenied)
    async with logins.reader.reading() as conn:
        assert len(await list_turns(conn, run.execution)) == 1
    await s.close(worker, run, ExecutionState.FAILED, "terminated")


async def test_a_door_needs_no_more_than_its_role(world: Database, role_dsn: RoleDsn) -> None:
    run = await s.opened(world)
    approval = await s.pending(world, run, s.call(run))
    async with GovernanceClient(role_dsn("decider"), s.REALM) as door:
        assert [row["id"] for row in await door.list_approvals()] == [approval]
        assert (await door.show_approval(approval)).requested_by == s.OLGA
        await door.approve(approval, Decider(s.ANA))
    async with GovernanceClient(role_dsn("reader"), s.REALM) as door:
        assert len(await door.executions("w")) == 1
        assert len(await door.timeline(run.execution)) == 3
        with pytest.raises(ConfigurationError, match="permission denied"):
            await door.approve(approval, Decider(s.ANA))
    async with GovernanceClient(role_dsn("admin"), s.REALM) as door:
        assert await door.grant_role("kim", "approver", "ada")
        await door.revoke_role("kim", "approver", "ada")
        with pytest.raises(ConfigurationError, match="permission denied"):
            await door.withdraw(approval, Decider(s.OLGA))


# ---------------------------------------------------------------- I6: entries are insert-only

CHANGES = (
    "UPDATE governance.{0} SET {1} = {1}",
    "DELETE FROM governance.{0}",
    "TRUNCATE governance.{0} CASCADE",
    "INSERT INTO governance.{0} SELECT * FROM governance.{0}",
)


def change(statement: LiteralString, table: str) -> sql.Composed:
    first = {"entry": "id", "payload": "entry", "leaf": "idx", "checkpoint": "size"}[table]
    return sql.SQL(statement).format(sql.Identifier(table), sql.Identifier(first))


async def test_no_login_changes_what_is_written(
    world: Database, role_dsn: RoleDsn, dsn: str, tmp_path: Path
) -> None:
    async with Sealer(dsn, SIGNER, [FileSink(tmp_path)]) as sealer:
        await sealer.seal_once()
    allowed = [
        (group, table, statement.split()[0])
        for group in GROUPS
        for table in EVIDENCE
        for statement in CHANGES
        if not refused_or_clashes(role_dsn(group), change(statement, table))
    ]
    assert allowed == [("sealer", "leaf", "INSERT"), ("sealer", "checkpoint", "INSERT")]


def refused_or_clashes(dsn: str, statement: sql.Composed) -> bool:
    """As `refused`; a row that is there already cannot be inserted again, but could have been."""
    try:
        return refused(dsn, statement)
    except psycopg.errors.UniqueViolation:
        return False


@pytest.mark.parametrize("table", EVIDENCE)
async def test_not_even_the_owner_changes_it(world: Database, dsn: str, table: str) -> None:
    async with await world.connect() as conn:
        for who in ("SET ROLE governance_owner", "RESET ROLE"):
            for replication in ("origin", "replica"):
                await conn.execute(f"SET session_replication_role = {replication}".encode())
                await conn.execute(who.encode())
                for statement in CHANGES[:3]:
                    if table in ("leaf", "checkpoint") and not statement.startswith("TRUNC"):
                        continue  # nothing is sealed here: no row, no trigger
                    with pytest.raises(Refused, match="is insert-only"):
                        await conn.execute(change(statement, table))
                await conn.execute("RESET ROLE")


@pytest.mark.parametrize("table", EVIDENCE)
async def test_it_is_the_trigger_that_stops_the_owner(
    world: Database, dsn: str, tmp_path: Path, table: str
) -> None:
    async with Sealer(dsn, SIGNER, [FileSink(tmp_path)]) as sealer:
        await sealer.seal_once()
    for statement in CHANGES[:3]:
        assert refused(dsn, change(statement, table))
    with psycopg.connect(dsn) as conn:
        conn.execute(sql.SQL("ALTER TABLE governance.{} DISABLE TRIGGER USER").format(
            sql.Identifier(table)))  # fmt: skip
        conn.execute(change(CHANGES[0], table))
        conn.rollback()


async def test_one_grant_too_many_is_noticed(world: Database, dsn: str, role_dsn: RoleDsn) -> None:
    insert = change(CHANGES[3], "entry")
    assert refused_or_clashes(role_dsn("worker"), insert)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("GRANT INSERT ON governance.entry TO governance_worker")
    assert not refused_or_clashes(role_dsn("worker"), insert)


# ---------------------------------------------------------------- who appends what


async def test_each_role_appends_only_its_own_entries(world: Database, role_dsn: RoleDsn) -> None:
    run = await s.opened(world)
    append = sql.SQL("SELECT governance.append({}, {}, 'x', '{{}}')")
    for group in GROUPS:
        may = {
            kind
            for kind in ENTRY_WRITERS
            if not refused(role_dsn(group), append.format(run.execution, kind))
        }
        assert may == {kind for kind, writers in ENTRY_WRITERS.items() if group in writers}
        assert refused(role_dsn(group), append.format(run.execution, "step.invented"))


REFUSED: dict[str, list[LiteralString]] = {
    "worker": [
        "UPDATE governance.approval SET state = 'approved'",
        "UPDATE governance.approval SET state = 'rejected'",
        "UPDATE governance.approval SET execute_by = NULL",
        "UPDATE governance.approval SET input_digest = input_digest",
        "INSERT INTO governance.approval SELECT (a).* FROM (SELECT (jsonb_populate_record(a, "
        """'{"state": "approved"}')).* FROM governance.approval a) a""",
        "INSERT INTO governance.decision (approval, verdict, decided_by, submitted_by, method, "
        "reason, roles_held, at, leaf) SELECT id, 'approve', 'ana', '', '', '', '{}', now(), "
        "input_digest FROM governance.approval",
        "INSERT INTO governance.role_grant (realm, actor, role, granted_by) "
        "VALUES ('test', 'olga', 'approver', 'ada')",
        "DELETE FROM governance.role_grant",
        "INSERT INTO governance.contract (realm, digest, flow, body, state, registered_at, "
        "registered_by, leaf) SELECT realm, digest, 'F', body, state, registered_at, 'x', leaf "
        "FROM governance.contract",
        "UPDATE governance.contract SET state = 'retired'",
        "UPDATE governance.execution SET actor = 'eva'",
        "UPDATE governance.execution SET contract = contract",
        "INSERT INTO governance.execution SELECT * FROM governance.execution",
        "UPDATE governance.stream SET seq = 0",
        "INSERT INTO governance.stream (id, kind, realm, name) "
        "VALUES (gen_random_uuid(), 'log', 'r', 'n')",
        "UPDATE governance.log SET incarnation = gen_random_uuid()",
        "UPDATE governance.entry_kind SET writers = '{worker}'",
        "SELECT governance.append_unchecked(id, 'role.granted', 'x', '{}') FROM governance.stream",
        "SELECT nextval('governance.entry_id')",
        "CREATE TABLE governance.mine (x int)",
        "CREATE OR REPLACE FUNCTION governance.clock() RETURNS timestamptz LANGUAGE sql "
        "AS $$ SELECT '2000-01-01'::timestamptz $$",
        "SET ROLE governance_decider",
        "SET ROLE governance_owner",
    ],
    "decider": [
        "UPDATE governance.step SET token = token + 1",
        "UPDATE governance.step SET outcome = 'x'",
        "INSERT INTO governance.step SELECT * FROM governance.step",
        "INSERT INTO governance.run SELECT realm, 'r', execution, 0, now() FROM governance.run",
        "UPDATE governance.execution SET state = 'open'",
        "UPDATE governance.approval SET input_digest = input_digest",
        "UPDATE governance.approval SET roles = '{}'",
        "UPDATE governance.decision SET verdict = 'approve'",
        "DELETE FROM governance.decision",
        "INSERT INTO governance.role_grant (realm, actor, role, granted_by) "
        "VALUES ('test', 'olga', 'approver', 'ada')",
        "DELETE FROM governance.role_grant",
        "UPDATE governance.contract SET state = 'retired'",
        "SELECT governance.open_execution(gen_random_uuid(), 'test', 'w', 'f', digest, 'ana') "
        "FROM governance.contract",
    ],
    "admin": [
        "UPDATE governance.approval SET state = 'approved'",
        "UPDATE governance.step SET token = token + 1",
        "UPDATE governance.role_grant SET role = 'x'",
        "TRUNCATE governance.role_grant",
        "DELETE FROM governance.contract",
        "UPDATE governance.execution SET state = 'open'",
        "ALTER TABLE governance.role_grant DISABLE TRIGGER role_granted",
    ],
    "sealer": [
        "UPDATE governance.approval SET state = 'approved'",
        "UPDATE governance.stream SET seq = 0",
        "DELETE FROM governance.role_grant",
        "SELECT governance.stream_of('log', 'r', 'n')",
        "SELECT nextval('governance.entry_id')",
    ],
    "reader": [
        "UPDATE governance.approval SET state = 'approved'",
        "UPDATE governance.execution SET state = 'open'",
        "UPDATE governance.step SET token = token + 1",
        "UPDATE governance.outbox SET tries = 0",
        "DELETE FROM governance.role_grant",
        "DELETE FROM governance.turn",
        "SELECT governance.stream_of('log', 'r', 'n')",
        "SELECT governance.open_execution(gen_random_uuid(), 'test', 'w', 'f', digest, 'ana') "
        "FROM governance.contract",
    ],
}


@pytest.mark.parametrize("group", GROUPS)
async def test_what_a_role_may_not_do(world: Database, role_dsn: RoleDsn, group: str) -> None:
    run = await s.opened(world)
    await s.pending(world, run, s.call(run))
    await s.permitted(world, run, s.call(run, "notify"))
    allowed = [text for text in REFUSED[group] if not refused(role_dsn(group), text)]
    assert allowed == []


@pytest.mark.parametrize("group", GROUPS)
async def test_every_role_reads(world: Database, role_dsn: RoleDsn, group: str) -> None:
    async with Database(role_dsn(group)) as db, db.reading() as conn:
        assert len(await administration.list_roles(conn, s.REALM)) == 3


async def test_a_decision_stays_as_it_was_made(world: Database, role_dsn: RoleDsn) -> None:
    run = await s.opened(world)
    approval = await s.pending(world, run, s.call(run))
    await s.decide(world, approval, s.ANA, Verdict.REJECT)
    for state in ("approved", "pending", "used", "withdrawn"):
        assert refused(
            role_dsn("decider"),
            sql.SQL("UPDATE governance.approval SET state = {}").format(state),
        )

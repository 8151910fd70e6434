"""I5: wherever something is cut off, state and entry commit together or not at all."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from governance import administration, approvals, decisions, executions, freezes, resume, steps
from governance.db import Connection, Database
from governance.decisions import Decider
from governance.errors import ConnectionLost
from governance.executions import Actor
from governance.names import ENTRY_WRITERS, ExecutionState, Verdict
from tests.store import scenario as s
from tests.store.audit import differences, differences_seen, fingerprint

Act = Callable[[Connection], Awaitable[Any]]
Story = AsyncGenerator[Act, Any]

KILL = "SELECT pg_terminate_backend(pg_backend_pid())"


class Cutter:
    """Ends the session of a transaction in place of one of its statements.

    Args:
        statement: Which, counted from 1; COMMIT is the last.
        torn: Commit after each statement, as a careless service would.
    """

    def __init__(self, statement: int, *, torn: bool = False) -> None:
        self.left, self.torn, self.at_commit = statement, torn, False

    def cursors(self) -> type[psycopg.AsyncCursor[Any]]:
        cutter = self

        class Cursor(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
                cutter.left -= 1
                if cutter.left == 0:
                    cutter.at_commit = query == "COMMIT"
                    query, params = KILL, None
                await super().execute(query, params, **how)
                for end in ("COMMIT", "BEGIN") if cutter.torn else ():
                    await psycopg.AsyncCursor(self.connection).execute(end)
                return self

        return Cursor


async def cut_off(db: Database, act: Act, cutter: Cutter) -> bool:
    """Do the act and cut it off; whether that was at COMMIT, in place of it."""

    async def work(conn: Connection) -> None:
        conn.cursor_factory = cutter.cursors()
        await act(conn)

    with pytest.raises(ConnectionLost):
        await db.run(work, tries=1)
    return cutter.at_commit


async def act_out(db: Database, act: Act) -> Any:
    """Cut the act off at each of its statements, then do it."""
    async with db.snapshot() as conn:
        before = await fingerprint(conn)
    statement = 1
    while not await cut_off(db, act, Cutter(statement)):
        statement += 1
    async with db.snapshot() as conn:
        assert await fingerprint(conn) == before
    answer = await db.run(act)
    async with db.snapshot() as conn:
        assert await fingerprint(conn) != before, "it did nothing"
    assert await differences(db) == []
    return answer


async def administrators() -> Story:
    """Contracts and roles."""
    for version in ("1", "2"):
        new = s.contract(version)
        yield partial(administration.register_contract, realm=s.REALM, contract=new, by="ada")
        yield partial(administration.activate_contract, realm=s.REALM, digest=new.digest, by="bob")
    for who, role in ((s.OLGA, "operator"), (s.ANA, "approver"), (s.EVA, "approver")):
        yield partial(administration.grant_role, realm=s.REALM, actor=who, role=role, by="ada")
    yield revoking(s.EVA, "approver")


async def payment() -> Story:
    """A payment that is refused, approved, fails, is made, and is found again after a reset."""
    facts = s.facts()
    run = yield lambda conn: executions.open_run(conn, facts, Actor(s.OLGA))
    pay = s.call(run)
    yield lambda conn: steps.begin(conn, run, pay)
    _, approval = yield lambda conn: approvals.request(conn, run, s.request_for(pay))
    yield deciding(approval, s.OLGA)
    yield deciding(approval, s.ANA)
    yield lambda conn: resume.resume(conn, run, approval)
    permit = yield lambda conn: steps.begin(conn, run, pay)
    yield lambda conn: steps.fail(conn, run, pay, permit.token, code="E", failure=b"declined")
    again = s.call(run, round=2)
    permit = yield lambda conn: steps.begin(conn, run, again)
    yield lambda conn: steps.finish(conn, run, again, permit.token, b"paid")
    later = s.facts(original_run_id=run.run_id)
    reset = yield lambda conn: executions.open_run(conn, later, None)
    yield lambda conn: steps.begin(conn, reset, s.call(reset))
    yield ending(reset.execution)


async def refusals() -> Story:
    """Requests that come to nothing, and a denial."""
    yield lambda conn: executions.open_run(conn, s.facts(), None)
    facts = s.facts()
    run = yield lambda conn: executions.open_run(conn, facts, Actor(s.OLGA))
    asked: list[uuid.UUID] = []
    for n in range(1, 6):
        asking = partial(approvals.request, run=run, asked=s.request_for(s.call(run, n=n)))
        _, approval = yield asking
        asked.append(approval)
    rejected, taken_back, cancelled, decided, _ = asked
    yield deciding(rejected, s.ANA, Verdict.REJECT)
    yield lambda conn: resume.resume(conn, run, rejected)
    yield lambda conn: decisions.withdraw_as(
        conn, s.REALM, taken_back, Decider(s.OLGA), "a mistake"
    )
    yield lambda conn: approvals.withdraw_step(conn, run, "pay", 3, "cancelled")
    yield deciding(cancelled, s.ANA)
    yield deciding(decided, s.ANA)
    yield revoking(s.OLGA, "operator")
    yield lambda conn: resume.resume(conn, run, decided)
    yield lambda conn: steps.begin(conn, run, s.call(run, n=4))


async def takeover() -> Story:
    """An attempt that is replaced."""
    yield lambda conn: administration.grant_role(conn, s.REALM, s.OLGA, "operator", "ada")
    facts = s.facts()
    run = yield lambda conn: executions.open_run(conn, facts, Actor(s.OLGA))
    slow, fast = s.call(run, "notify", lease=0), s.call(run, "notify")
    yield lambda conn: steps.begin(conn, run, slow)
    yield lambda conn: steps.begin(conn, run, fast)
    yield lambda conn: steps.finish(conn, run, slow, 1, b"late")
    yield lambda conn: steps.finish(conn, run, fast, 2, b"done")
    yield lambda conn: steps.finish(conn, run, slow, 1, b"later")
    another = s.facts()
    other = yield lambda conn: executions.open_run(conn, another, Actor(s.OLGA))
    held = s.call(other, "notify")
    yield lambda conn: steps.begin(conn, other, held)
    yield revoking(s.OLGA, "operator")
    yield lambda conn: steps.begin(conn, other, s.call(other, "notify", n=2))


async def stop() -> Story:
    """A flow that is frozen, refused twice and let go on; and the realm."""
    yield lambda conn: administration.grant_role(conn, s.REALM, s.OLGA, "operator", "ada")
    facts = s.facts()
    run = yield lambda conn: executions.open_run(conn, facts, Actor(s.OLGA))
    for flow in (s.FLOW, None):
        yield partial(freezes.freeze, realm=s.REALM, flow=flow, by="ada", reason="why")
        yield lambda conn: steps.begin(conn, run, s.call(run, "notify"))
        yield partial(freezes.unfreeze, realm=s.REALM, flow=flow, by="bob")
    yield lambda conn: steps.begin(conn, run, s.call(run, "notify"))


async def several() -> Story:
    """A payment that takes two, is taken back, is asked again, and loses an approver."""
    new = s.contract("3", needed=2, approver_recheck=True)
    yield partial(administration.register_contract, realm=s.REALM, contract=new, by="ada")
    yield partial(administration.activate_contract, realm=s.REALM, digest=new.digest, by="bob")
    yield partial(administration.grant_role, realm=s.REALM, actor=s.EVA, role="approver", by="ada")
    facts = s.facts()
    run = yield lambda conn: executions.open_run(conn, facts, Actor(s.OLGA))
    asked = s.request_for(s.call(run))
    _, approval = yield partial(approvals.request, run=run, asked=asked)
    for who in (s.ANA, s.ANA, s.EVA):
        yield deciding(approval, who)
    for who in (s.OLGA, s.EVA):
        yield taking_back(approval, who)
    yield lambda conn: steps.begin(conn, run, s.call(run))
    again = s.call(run, round=2)
    _, approval = yield partial(approvals.request, run=run, asked=s.request_for(again))
    for who in (s.ANA, s.EVA):
        yield deciding(approval, who)
    yield revoking(s.EVA, "approver")
    yield lambda conn: steps.begin(conn, run, again)
    yield partial(administration.grant_role, realm=s.REALM, actor=s.EVA, role="approver", by="ada")
    yield lambda conn: steps.begin(conn, run, again)


def taking_back(approval: uuid.UUID, who: str) -> Act:
    return lambda conn: decisions.revoke(conn, s.REALM, approval, Decider(who), "a mistake")


def deciding(approval: uuid.UUID, who: str, verdict: Verdict = Verdict.APPROVE) -> Act:
    return lambda conn: decisions.decide(conn, s.REALM, approval, verdict, Decider(who), "why")


def revoking(who: str, role: str) -> Act:
    return lambda conn: administration.revoke_role(conn, s.REALM, who, role, "ada")


def ending(execution: uuid.UUID) -> Act:
    return lambda conn: executions.close_execution(
        conn, execution, ExecutionState.FAILED, code="terminated", run_id="r"
    )


async def test_everything_is_cut_off_everywhere(db: Database) -> None:
    acts = 0
    stories = (administrators(), payment(), refusals(), takeover(), stop(), several())
    for story in stories:
        answer = None
        try:
            while True:
                act = await story.asend(answer)
                answer = await act_out(db, act)
                acts += 1
        except StopAsyncIteration:
            pass
    assert acts > 40
    written = {kind for (kind,) in await s.rows(db, "SELECT type FROM governance.entry")}
    assert set(ENTRY_WRITERS) - written == {
        "log.opened", "flow.completed", "flow.cancelled", "approval.expired",
    }  # fmt: skip


async def torn_acts(db: Database) -> list[Act]:
    """One act of each kind on a run that is ready for it."""
    await s.prepare(db)
    run = await s.opened(db)
    pay = s.call(run)
    waiting = await s.pending(db, run, pay)
    held = s.call(run, "notify")
    token = await s.permitted(db, run, held)
    return [
        lambda conn: executions.open_run(conn, s.facts(), Actor(s.OLGA)),
        lambda conn: approvals.request(conn, run, s.request_for(s.call(run, n=2))),
        deciding(waiting, s.ANA),
        lambda conn: steps.finish(conn, run, held, token, b"done"),
        lambda conn: steps.begin(conn, run, s.call(run, "notify", n=2)),
        ending(run.execution),
    ]


async def test_who_commits_in_the_middle_is_caught(db: Database) -> None:
    """The same cuts find a difference if the statements of an act do not commit together."""
    for act in await torn_acts(db):
        known = Counter(await differences(db))
        statement, found = 1, known - known
        while not found and not await cut_off(db, act, Cutter(statement, torn=True)):
            found = Counter(await differences(db)) - known
            statement += 1
        assert found


async def test_the_check_sees_each_table(world: Database) -> None:
    """A row changed without an entry is found, in every table that has states."""
    run = await s.opened(world)
    pay = s.call(run)
    await s.approved(world, run, pay)
    token = await s.permitted(world, run, pay)
    changes = [
        "UPDATE governance.execution SET state = 'completed'",
        "DELETE FROM governance.run",
        "UPDATE governance.approval SET state = 'used'",
        "DELETE FROM governance.decision",
        f"UPDATE governance.step SET token = {token + 1}",
        "UPDATE governance.step SET outcome = '', done_by = holder, done_token = token",
        "INSERT INTO governance.step_failure SELECT key, 1, '', now() FROM governance.step",
        "ALTER TABLE governance.role_grant DISABLE TRIGGER role_revoked; "
        "DELETE FROM governance.role_grant",
        "UPDATE governance.contract SET state = 'retired'",
        "INSERT INTO governance.turn SELECT id, 1, realm, 'x', '', '', now() "
        "FROM governance.execution",
        "DELETE FROM governance.outbox",
        "INSERT INTO governance.freeze (id, realm, set_at, set_by, reason, leaf) "
        "SELECT gen_random_uuid(), 'test', now(), 'ada', 'why', leaf FROM governance.contract",
    ]
    async with await world.connect() as conn:
        for change in changes:
            async with conn.transaction(force_rollback=True):
                await conn.execute(change.encode())
                assert await differences_seen(conn), change

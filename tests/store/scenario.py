"""A payment flow at the store's side: contract, people, runs and calls, through the services."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, LiteralString, TypeAlias, TypeVar, cast

import pytest

from governance import (
    administration,
    approvals,
    canonical,
    decisions,
    executions,
    freezes,
    outbox,
    resume,
    steps,
)
from governance.contracts import ApprovalRule, FlowContract, StepRule
from governance.db import Database, Queries
from governance.decisions import Decider
from governance.errors import DecisionRefused, StepRefused
from governance.executions import Actor, Run, RunFacts
from governance.names import ExecutionState, Verdict
from governance.rules.step_key import step_key

T = TypeVar("T")

REALM = "test"
FLOW = "PayInvoice"
OLGA, ANA, EVA = "olga", "ana", "eva"
"""Olga is an operator and starts payments; Ana and Eva hold `approver`."""


def contract(version: str = "1", **changes: Any) -> FlowContract:
    """Paying takes an approval, notifying none; the actor must be an operator throughout."""
    finance = ApprovalRule(roles=("approver",), **changes)
    return FlowContract(
        flow=FLOW,
        version=version,
        resume=("operator",),
        approvals={"finance": finance},
        steps=(StepRule(activity="pay", approval="finance"), StepRule(activity="notify")),
    )


async def activate(db: Database, new: FlowContract) -> None:
    """Register a contract version as one person and activate it as another."""
    async with db.transaction() as conn:
        await administration.register_contract(conn, REALM, new, "ada")
    async with db.transaction() as conn:
        await administration.activate_contract(conn, REALM, new.digest, "bob")


async def grant(db: Database, who: str, role: str) -> None:
    async with db.transaction() as conn:
        await administration.grant_role(conn, REALM, who, role, "ada", "joined")


async def revoke(db: Database, who: str, role: str) -> None:
    async with db.transaction() as conn:
        await administration.revoke_role(conn, REALM, who, role, "ada", "left")


async def freeze(db: Database, flow: str | None = FLOW, by: str = "ada") -> bool:
    return await db.run(lambda conn: freezes.freeze(conn, REALM, flow, by, "an incident"))


async def unfreeze(db: Database, flow: str | None = FLOW, by: str = "bob") -> None:
    await db.run(lambda conn: freezes.unfreeze(conn, REALM, flow, by, "it is over"))


async def prepare(db: Database, new: FlowContract | None = None) -> None:
    """An active contract and the three people in their roles."""
    await activate(db, new or contract())
    await grant(db, OLGA, "operator")
    await grant(db, ANA, "approver")
    await grant(db, EVA, "approver")


def facts(run_id: str | None = None, **changes: Any) -> RunFacts:
    """What the server says of a first run, unless told otherwise."""
    given: dict[str, Any] = {"realm": REALM, "workflow_id": "w", "flow": FLOW, **changes}
    return RunFacts(run_id=run_id or uuid.uuid4().hex, **given)


async def opened(db: Database, of: RunFacts | None = None, actor: str = OLGA) -> Run:
    """A run that may start."""
    known = of or facts()
    run = await db.run(lambda conn: executions.open_run(conn, known, Actor(actor)))
    assert isinstance(run, Run), run
    return run


def call(
    run: Run,
    step: str = "pay",
    *,
    n: int = 1,
    round: int = 1,
    given: bytes = b"100 EUR to Acme",
    attempt: uuid.UUID | None = None,
    lease: float = 60,
) -> steps.Call:
    """A new attempt at a step, keyed as the border keys it."""
    digest = canonical.sha256(given)
    return steps.Call(
        key=step_key(run.execution, run.generation, step, digest, n),
        name=step,
        n=n,
        round=round,
        kind="effect",
        approval="finance" if step == "pay" else None,
        input_digest=digest,
        binds_digest=digest,
        attempt=attempt or uuid.uuid4(),
        lease=lease,
    )


def request_for(asked: steps.Call) -> approvals.Request:
    """The request of the hold before this call."""
    return approvals.Request(
        key=asked.key,
        step=asked.name,
        approval="finance",
        n=asked.n,
        round=asked.round,
        input_digest=asked.input_digest,
        binds_digest=asked.binds_digest,
        title="Pay 100 EUR to Acme",
        shown={"payee": "Acme"},
    )


async def ask(db: Database, run: Run, asked: steps.Call) -> tuple[str, uuid.UUID | None]:
    return await db.run(lambda conn: approvals.request(conn, run, request_for(asked)))


async def pending(db: Database, run: Run, asked: steps.Call) -> uuid.UUID:
    """Ask anew; the approval that waits."""
    state, approval = await ask(db, run, asked)
    assert (state, approval is not None) == ("pending", True)
    assert approval is not None
    return approval


async def decide(
    db: Database,
    approval: uuid.UUID,
    who: str = ANA,
    verdict: Verdict = Verdict.APPROVE,
    reason: str = "fine",
    digest: bytes | None = None,
) -> DecisionRefused | None:
    decider = Decider(who, "test", f"os:{who}")
    return await db.run(
        lambda conn: decisions.decide(conn, REALM, approval, verdict, decider, reason, digest)
    )


async def approved(db: Database, run: Run, asked: steps.Call) -> uuid.UUID:
    """Ask and have Ana approve."""
    approval = await pending(db, run, asked)
    assert await decide(db, approval) is None
    return approval


async def go_on(db: Database, run: Run, approval: uuid.UUID) -> str:
    return await db.run(lambda conn: resume.resume(conn, run, approval))


async def woken(db: Database) -> list[outbox.WakeUp]:
    """What one look of a dispatcher sends."""
    async with db.reading() as conn:
        due = await outbox.find_due(conn, REALM, 100)
    wakes = [await db.run(partial(outbox.lease, realm=REALM, row=row)) for row in due]
    return [wake for wake in wakes if wake is not None]


Begun: TypeAlias = steps.Permit | steps.Injected | steps.Busy | StepRefused
Finished: TypeAlias = steps.Injected | steps.Evicted | None


async def begin(db: Database, run: Run, asked: steps.Call) -> Begun:
    return await db.run(lambda conn: steps.begin(conn, run, asked))


async def permitted(db: Database, run: Run, asked: steps.Call) -> int:
    """Begin; the token of the permit."""
    begun = await begin(db, run, asked)
    assert isinstance(begun, steps.Permit), begun
    return begun.token


async def finish(
    db: Database, run: Run, asked: steps.Call, token: int, outcome: bytes = b"paid"
) -> Finished:
    return await db.run(lambda conn: steps.finish(conn, run, asked, token, outcome))


async def close(db: Database, run: Run, state: ExecutionState, code: str = "") -> bool:
    """End the execution as the server says that this run ended."""
    return await db.run(
        lambda conn: executions.close_execution(
            conn, run.execution, state, code=code, run_id=run.run_id
        )
    )


async def rows(db: Database, query: LiteralString, *params: Any) -> list[tuple[Any, ...]]:
    """What a superuser reads."""
    async with db.reading() as conn:
        return await (await conn.execute(query, params or None)).fetchall()


async def entry_types(db: Database, stream: uuid.UUID) -> list[str]:
    """The entries of a stream, in order."""
    query = "SELECT type FROM governance.entry WHERE stream = %s ORDER BY seq"
    return [kind for (kind,) in await rows(db, query, stream)]


async def state_of(db: Database, run: Run) -> tuple[str, str | None]:
    """State and code of a run's execution."""
    query = "SELECT state, code FROM governance.execution WHERE id = %s"
    [(state, code)] = await rows(db, query, run.execution)
    return state, code


async def approval_state(db: Database, approval: uuid.UUID) -> str:
    [(state,)] = await rows(db, "SELECT state FROM governance.approval WHERE id = %s", approval)
    return str(state)


async def let_lease_run_out(db: Database, key: bytes) -> None:
    """As if the holder had been silent for longer than its lease."""
    async with db.transaction() as conn:
        await conn.execute(
            "UPDATE governance.step SET lease_until = governance.clock() - interval '1 ms' "
            "WHERE key = %s",
            [key],
        )


async def let_limit_pass(db: Database, approval: uuid.UUID, limit: LiteralString) -> None:
    """As if `decide_by` or `execute_by` had passed a moment ago."""
    async with db.transaction() as conn:
        await conn.execute(
            f"UPDATE governance.approval SET {limit} = governance.clock() - interval '1 ms' "
            "WHERE id = %s",
            [approval],
        )


async def until_waiting(db: Database, sessions: int = 1) -> None:
    """Wait until so many sessions wait for an advisory lock in this database."""
    query: LiteralString = """
        SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    async with await db.connect() as conn, asyncio.timeout(5):  # the pool may be used up
        while True:
            [(waiting,)] = await (await conn.execute(query)).fetchall()
            if waiting >= sessions:
                return
            await asyncio.sleep(0.005)  # nothing in Postgres tells of a lock that is waited for


async def all_at_once(
    db: Database, work: Sequence[Coroutine[Any, Any, T]], *, gate: Sequence[str] = (OLGA,)
) -> list[T | BaseException]:
    """Start everything, hold it back where it locks roles of `gate`, let all of it go together."""
    async with await db.connect() as conn, conn.transaction():
        for actor in gate:
            shut = "SELECT pg_advisory_xact_lock(7173, governance.actor_bucket(%s, %s))"
            await conn.execute(shut, [REALM, actor])
        tasks = [asyncio.create_task(one) for one in work]
        await until_waiting(db, min(6, len(tasks)))
    return await asyncio.gather(*tasks, return_exceptions=True)


def sabotage(patch: pytest.MonkeyPatch, module: ModuleType, **statements: str) -> None:
    """Replace statements of a module's topic, as a careless change would."""
    queries: Queries = module._Q
    assert set(statements) <= set(queries)
    replaced = cast("dict[str, LiteralString]", {**queries, **statements})
    patch.setattr(module, "_Q", Queries("sabotaged", replaced))


@dataclass(frozen=True)
class Logins:
    """The test's database, through a login for each group role that services use."""

    worker: Database
    decider: Database
    admin: Database
    reader: Database


@asynccontextmanager
async def logged_in(role_dsn: Callable[[str], str]) -> AsyncGenerator[Logins]:
    """Four pools, each with no more rights than its group role."""
    async with AsyncExitStack() as stack:
        worker, decider, admin, reader = [
            await stack.enter_async_context(Database(role_dsn(group)))
            for group in ("worker", "decider", "admin", "reader")
        ]
        yield Logins(worker, decider, admin, reader)

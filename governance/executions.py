"""Executions: which run belongs to which, under which contract, for which actor.

A run is resolved from what the server says of it (see `RunFacts`). A run that belongs to no
earlier one opens an execution, which pins the active contract and the actor for good.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from psycopg import AsyncConnection

from governance import ids, outbox
from governance.chain.log import append_statement, find_stream
from governance.contracts import FlowContract, parse_canonical
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_all, fetch_one, pipelined, queued
from governance.errors import ActorMissing, ExecutionUnknown, FlowNotActive, StepRefused
from governance.names import ExecutionState
from governance.roles import lock_statement, read_statement, to_held

_Q = load("executions")


@dataclass(frozen=True, slots=True)
class Actor:
    """For whom an execution is started.

    Attributes:
        id: Opaque id of the person or service.
        source: How far that is proved; `attested` until the start carries a signed assertion.
    """

    id: str
    source: str = "attested"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the Temporal server says of a run.

    Attributes:
        realm: The trust domain.
        workflow_id: Workflow id.
        run_id: This run.
        flow: Workflow type.
        attempt: Workflow attempt, from 1; above 1 a retry of `continued_run_id`.
        original_run_id: Differs from `run_id` for a run made by a reset.
        continued_run_id: The run before, for a retry, a continue-as-new or a cron tick.
        continued_by_code: Whether our continue-as-new header names `continued_run_id`; without
            it a continued run with attempt 1 is a cron tick, which is an execution of its own.
    """

    realm: str
    workflow_id: str
    run_id: str
    flow: str
    attempt: int = 1
    original_run_id: str | None = None
    continued_run_id: str | None = None
    continued_by_code: bool = False

    def predecessor(self) -> tuple[str, str, int] | None:
        """The run whose execution this one belongs to: (run id, how, generations later)."""
        if self.original_run_id and self.original_run_id != self.run_id:
            return self.original_run_id, "reset", 0
        if self.continued_run_id and self.attempt > 1:
            return self.continued_run_id, "retry", 0
        if self.continued_run_id and self.continued_by_code:
            return self.continued_run_id, "continue_as_new", 1
        return None


@dataclass(frozen=True, slots=True)
class Run:
    """A run and the execution it belongs to. All but `state` never changes."""

    realm: str
    run_id: str
    workflow_id: str
    flow: str
    execution: uuid.UUID
    generation: int
    actor: str
    state: ExecutionState
    code: str | None
    contract_digest: bytes
    contract: FlowContract


async def find_run(conn: AsyncConnection[Any], realm: str, run_id: str) -> Run | None:
    """The run, if the database knows it."""
    row = await fetch_one(conn, _Q["fetch_run"], {"realm": realm, "run_id": run_id})
    return None if row is None else to_run(realm, row)


async def open_run(
    conn: AsyncConnection[Any], facts: RunFacts, actor: Actor | None
) -> Run | StepRefused:
    """Make a run known; the same answer however often it is asked.

    Args:
        conn: A transaction; commit it whatever comes back.
        facts: What the server says of the run.
        actor: Who starts it; only used when the run opens a new execution.

    Returns:
        The run, or why it must not start (`ActorMissing`, `FlowNotActive`), which is then on the
        record.

    Raises:
        ExecutionUnknown: The run before it is not known yet; open that one first.
    """
    await queued(conn, (_Q["lock_run"], {"realm": facts.realm, "run_id": facts.run_id}))
    known = await find_run(conn, facts.realm, facts.run_id)
    if known is not None:
        return known
    before = facts.predecessor()
    if before is not None:
        await _continue_execution(conn, facts, *before)
    elif refusal := await _open_execution(conn, facts, actor):
        await _record_refusal(conn, facts, refusal)
        return refusal
    run = await find_run(conn, facts.realm, facts.run_id)
    assert run is not None, "inserted above"
    return run


async def close_execution(
    conn: AsyncConnection[Any],
    execution: uuid.UUID,
    state: ExecutionState,
    *,
    code: str,
    run_id: str,
) -> bool:
    """End an execution as the server says its last run ended; nobody is asked for it any more.

    Args:
        conn: A transaction; commit it.
        execution: Which one.
        state: How it ended.
        code: The server's word where the state alone does not tell: `terminated`, `timed_out`.
        run_id: The run that ended.

    Returns:
        False if it had ended before; a denied execution stays denied.
    """
    [[current], pending] = await pipelined(
        conn,
        lock_execution(execution),
        (_Q["withdraw_pending"], {"execution": execution}),
    )
    await _record_withdrawn(conn, execution, pending, "execution ended")
    statements: list[Statement] = [outbox.finish_execution(execution)]
    is_open: bool = current["state"] == ExecutionState.OPEN
    if is_open:
        ended = {"execution": execution, "state": state, "code": code or None}
        payload = {"run_id": run_id, "code": code}
        statements.append((_Q["close_execution"], ended))
        statements.append(append_statement(execution, f"flow.{state}", payload))
    await queued(conn, *statements)
    return is_open


async def withdraw_pending(conn: AsyncConnection[Any], run: Run, why: str) -> None:
    """Withdraw the pending approvals of an execution whose row is locked."""
    [rows] = await pipelined(conn, (_Q["withdraw_pending"], {"execution": run.execution}))
    await _record_withdrawn(conn, run.execution, rows, why)


def lock_execution(execution: uuid.UUID) -> Statement:
    """The statement that takes the lock every change within an execution takes first."""
    return _Q["lock_execution"], {"execution": execution}


def lock_execution_of(approval: uuid.UUID) -> Statement:
    """The same lock, for whoever has only an approval."""
    return _Q["lock_execution_of"], {"approval": approval}


async def last_run(conn: AsyncConnection[Any], execution: uuid.UUID) -> str:
    """The run of an execution that was opened last."""
    row = await fetch_one(conn, _Q["fetch_last_run"], {"execution": execution})
    assert row is not None, "an execution is made with its first run"
    run_id: str = row["run_id"]
    return run_id


async def find_executions(conn: AsyncConnection[Any], realm: str, workflow_id: str) -> list[Row]:
    """The executions of a workflow id, newest first."""
    params = {"realm": realm, "workflow_id": workflow_id}
    return await fetch_all(conn, _Q["find_executions"], params)


async def fetch_timeline(conn: AsyncConnection[Any], execution: uuid.UUID) -> list[Row]:
    """All entries of an execution: seq, type, at, leaf, body, payload, idx (None: unsealed)."""
    return await fetch_all(conn, _Q["fetch_timeline"], {"execution": execution})


async def _open_execution(
    conn: AsyncConnection[Any], facts: RunFacts, actor: Actor | None
) -> StepRefused | None:
    if actor is None:
        return ActorMissing(
            f'Workflow "{facts.workflow_id}" ({facts.flow}) was started without an actor.',
            hint="Start it inside `acting_as(...)` with a client that has the GovernancePlugin.",
        )
    contracts, _, roles = await pipelined(
        conn,
        (_Q["fetch_active_contract"], {"realm": facts.realm, "flow": facts.flow}),
        lock_statement(facts.realm, actor.id),
        read_statement(facts.realm, actor.id),
    )
    if not contracts:
        return FlowNotActive(
            f'No contract is active for flow "{facts.flow}" in realm "{facts.realm}".',
            hint="Activate one: `governance contracts activate`.",
        )
    contract = contracts[0]
    held = to_held(actor.id, roles)
    execution = ids.new_id()
    payload = {
        "realm": facts.realm,
        "flow": facts.flow,
        "workflow_id": facts.workflow_id,
        "run_id": facts.run_id,
        "actor": actor.id,
        "actor_source": actor.source,
        "roles": held.record(),
        "contract": contract["digest"].hex(),
    }
    opened = {
        "id": execution,
        "realm": facts.realm,
        "workflow_id": facts.workflow_id,
        "flow": facts.flow,
        "contract": contract["digest"],
        "actor": actor.id,
    }
    observed = [contract["leaf"], *held.observed]
    await queued(
        conn,
        (_Q["open_execution"], opened),
        _insert_run(facts, execution, 0),
        append_statement(execution, "flow.started", payload, observed),
    )
    return None


async def _continue_execution(
    conn: AsyncConnection[Any], facts: RunFacts, before: str, how: str, later: int
) -> None:
    previous = await find_run(conn, facts.realm, before)
    if previous is None:
        raise ExecutionUnknown(f"Run {before}, which run {facts.run_id} follows, is not known.")
    execution = previous.execution
    payload = {
        "run_id": facts.run_id,
        "follows": before,
        "how": how,
        "generation": previous.generation + later,
    }
    await queued(
        conn,
        lock_execution(execution),
        _insert_run(facts, execution, previous.generation + later),
        (_Q["reopen_execution"], {"execution": execution}),
        append_statement(execution, "flow.continued", payload),
    )


async def _record_withdrawn(
    conn: AsyncConnection[Any], execution: uuid.UUID, rows: list[Row], why: str
) -> None:
    statements: list[Statement] = []
    for row in sorted(rows, key=lambda r: r["id"]):
        payload = {"approval": row["id"].hex, "step": row["step"], "why": why}
        statements.append(append_statement(execution, "approval.withdrawn", payload))
        statements.append(outbox.finish_topic(execution, row["id"].hex))
    if statements:
        await queued(conn, *statements)


async def _record_refusal(
    conn: AsyncConnection[Any], facts: RunFacts, refusal: StepRefused
) -> None:
    """A start that opens no execution is recorded on the stream of the flow's contracts."""
    payload = {
        "realm": facts.realm,
        "flow": facts.flow,
        "workflow_id": facts.workflow_id,
        "run_id": facts.run_id,
        "code": refusal.code,
    }
    stream = await find_stream(conn, "contract", facts.realm, facts.flow)
    await queued(conn, append_statement(stream, "flow.refused", payload))


def _insert_run(facts: RunFacts, execution: uuid.UUID, generation: int) -> Statement:
    return _Q["insert_run"], {
        "realm": facts.realm,
        "run_id": facts.run_id,
        "execution": execution,
        "generation": generation,
    }


def to_run(realm: str, row: Row) -> Run:
    """A run from a row with its execution and contract."""
    return Run(
        realm=realm,
        run_id=row["run_id"],
        workflow_id=row["workflow_id"],
        flow=row["flow"],
        execution=row["execution"],
        generation=row["generation"],
        actor=row["actor"],
        state=ExecutionState(row["state"]),
        code=row["code"],
        contract_digest=row["contract_digest"],
        contract=pinned(row["contract_digest"], row["contract_body"]),
    )


@lru_cache(maxsize=256)
def pinned(digest: bytes, body: bytes) -> FlowContract:
    """The contract of a stored body, parsed once a process."""
    del digest  # the cache's short key; the database checks that it is the body's digest
    return parse_canonical(body)

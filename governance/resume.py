"""The governed resume: after a decision, the original actor's roles are read again."""

from __future__ import annotations

import uuid
from typing import Any

from psycopg import AsyncConnection

from governance import outbox
from governance.approvals import settle
from governance.chain.log import append_statement
from governance.db.queries import load
from governance.db.statements import pipelined
from governance.denial import deny
from governance.executions import Run, lock_execution
from governance.names import ApprovalState, ExecutionState
from governance.roles import lock_statement, read_statements, to_held
from governance.rules.resume import admits

_Q = load("approvals")


async def resume(conn: AsyncConnection[Any], run: Run, approval: uuid.UUID) -> str:
    """Decide whether the run may go on after the decision on this approval.

    Args:
        conn: A transaction; commit it.
        run: The run that waits.
        approval: What it waits for.

    Returns:
        `admitted`, `denied` (then the execution has ended), or the state that keeps the run
        waiting or ends the hold: `pending`, `rejected`, `expired`, `withdrawn`, `revoked`.
    """
    _, [execution], rows, roles, head = await pipelined(
        conn,
        lock_statement(run.realm, run.actor),
        lock_execution(run.execution),
        (_Q["lock_approval"], {"id": approval}),
        *read_statements(run.realm, run.actor),
    )
    if execution["state"] == ExecutionState.DENIED:
        return ExecutionState.DENIED
    state = await settle(conn, run.execution, rows[0]) if rows else ApprovalState.WITHDRAWN
    if state is ApprovalState.PENDING:
        return state
    if state not in (ApprovalState.APPROVED, ApprovalState.USED):
        await pipelined(conn, outbox.finish_topic(run.execution, approval.hex))
        return state
    held = to_held(run.actor, roles, head)
    if not admits(run.contract.resume, held.roles):
        await deny(conn, run, held, "resume")
        return ExecutionState.DENIED
    payload = {
        "approval": approval.hex,
        "run_id": run.run_id,
        "actor": run.actor,
        "policy": list(run.contract.resume),
        "roles_held": held.record(),
    }
    await pipelined(
        conn,
        append_statement(run.execution, "resume.admitted", payload, held.observed),
        outbox.finish_topic(run.execution, approval.hex),
    )
    return "admitted"

"""The governed resume: after a decision, the original actor's roles are read again.

A step that the border claims is resumed by its own begin, which reads them in the transaction that
takes the claim. Everything else asks here.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from psycopg import AsyncConnection

from governance import outbox
from governance.approvals import settle
from governance.authority import admitted, deny
from governance.db.queries import load
from governance.db.statements import pipelined, queued
from governance.executions import Run, lock_execution
from governance.names import ApprovalState, ExecutionState
from governance.roles import lock_statement, read_statement, to_held
from governance.rules.resume import admits

_Q = load("approvals")

ADMITTED: Final = "admitted"


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
    _, [execution], rows, roles = await pipelined(
        conn,
        lock_statement(run.realm, run.actor),
        lock_execution(run.execution),
        (_Q["lock_approval"], {"id": approval}),
        read_statement(run.realm, run.actor),
    )
    if execution["state"] == ExecutionState.DENIED:
        return ExecutionState.DENIED
    state = await settle(conn, run.execution, rows[0]) if rows else ApprovalState.WITHDRAWN
    if state is ApprovalState.PENDING:
        return state
    await queued(conn, outbox.finish_topic(run.execution, approval.hex))
    if state not in (ApprovalState.APPROVED, ApprovalState.USED):
        return state
    held = to_held(run.actor, roles)
    if not admits(run.contract.resume, held.roles):
        await deny(conn, run, held, "resume")
        return ExecutionState.DENIED
    if rows[0]["admitted_run"] != run.run_id:
        await queued(conn, *admitted(run, approval, held))
    return ADMITTED

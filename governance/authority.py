"""What is recorded once the original actor's roles were read again: admitted, or denied."""

from __future__ import annotations

import uuid
from typing import Any

from psycopg import AsyncConnection

from governance import outbox, turns
from governance.chain.log import append_statement
from governance.db.queries import load
from governance.db.statements import Statement, pipelined, queued
from governance.errors import ResumeDenied
from governance.executions import Run, withdraw_pending
from governance.names import ExecutionState
from governance.roles import Held

_Q = load("executions")
_APPROVALS = load("approvals")


async def deny(conn: AsyncConnection[Any], run: Run, held: Held, where: str) -> None:
    """End an open execution whose row is locked with `resume_denied`; once is enough.

    Writes `resume.denied` and `flow.failed`, withdraws what is still asked, leaves a turn for the
    actor and wakes the workflow, whose handler ends the run even where its code swallows errors.

    Args:
        conn: A transaction; commit it.
        run: The run that was to go on.
        held: The actor's roles as read in this transaction.
        where: `resume`, or the step that was to begin.
    """
    execution = {"execution": run.execution, "state": ExecutionState.DENIED}
    payload = {
        "run_id": run.run_id,
        "actor": run.actor,
        "policy": list(run.contract.resume),
        "roles_held": held.record(),
        "where": where,
    }
    [ended] = await pipelined(
        conn, (_Q["close_execution"], {**execution, "code": ResumeDenied.code})
    )
    if not ended:
        return  # it had ended before, and as it ended it stays
    await withdraw_pending(conn, run, ResumeDenied.code)
    await queued(
        conn,
        append_statement(run.execution, "resume.denied", payload, held.observed),
        append_statement(
            run.execution, "flow.failed", {"run_id": run.run_id, "code": ResumeDenied.code}
        ),
        turns.add(run.realm, run.execution, ResumeDenied.code, run.actor),
        outbox.finish_execution(run.execution),
        outbox.enqueue(run.realm, run.execution, outbox.DENIED_TOPIC),
    )


def admitted(run: Run, approval: uuid.UUID, held: Held) -> list[Statement]:
    """The statements that record, once per run, that it may go on after this approval."""
    payload = {
        "approval": approval.hex,
        "run_id": run.run_id,
        "actor": run.actor,
        "policy": list(run.contract.resume),
        "roles_held": held.record(),
    }
    return [
        (_APPROVALS["admit_run"], {"id": approval, "run_id": run.run_id}),
        append_statement(run.execution, "resume.admitted", payload, held.observed),
    ]

"""Ending an execution because its actor may not go on: final for every run of it."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from governance import outbox, turns
from governance.chain.log import append_statement
from governance.db.queries import load
from governance.db.statements import pipelined
from governance.errors import ResumeDenied
from governance.executions import Run, withdraw_pending
from governance.names import ExecutionState
from governance.roles import Held

_Q = load("executions")


async def deny(conn: AsyncConnection[Any], run: Run, held: Held, where: str) -> None:
    """End an open execution whose row is locked with `resume_denied`.

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
    await withdraw_pending(conn, run, ResumeDenied.code)
    await pipelined(
        conn,
        (_Q["close_execution"], {**execution, "code": ResumeDenied.code}),
        append_statement(run.execution, "resume.denied", payload, held.observed),
        append_statement(
            run.execution, "flow.failed", {"run_id": run.run_id, "code": ResumeDenied.code}
        ),
        turns.add(run.realm, run.execution, ResumeDenied.code, run.actor),
        outbox.finish_execution(run.execution),
        *outbox.enqueue(run.realm, run.execution, outbox.DENIED_TOPIC),
    )

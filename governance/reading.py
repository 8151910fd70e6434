"""What a begin reads under its locks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from psycopg import AsyncConnection

from governance import approvals, freezes, recheck
from governance.attempts import Call
from governance.db.queries import load
from governance.db.statements import Row, pipelined
from governance.executions import Run, lock_execution
from governance.names import ApprovalState, ExecutionState
from governance.recheck import Rechecked
from governance.roles import Held, lock_all_statement, lock_statement, read_statement, to_held
from governance.rules.admission import ApprovalStanding, Standing

_Q = load("steps")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a begin has read under its locks."""

    row: Row
    standing: Standing
    held: Held
    approvers: Rechecked | None

    @property
    def observed(self) -> list[bytes]:
        """What an entry that rests on it names as observed."""
        return self.approvers.observed(self.held) if self.approvers else self.held.observed

    def record(self) -> dict[str, Any]:
        """Whose roles were read, as an entry says it."""
        return {"roles_held": self.held.record()} | (
            self.approvers.record() if self.approvers else {}
        )


async def read(conn: AsyncConnection[Any], run: Run, call: Call) -> Reading | None:
    """Take the locks a begin needs, then read; None if who approved is not who was locked.

    Locks: realm and flow (freezes), actor buckets ascending, execution, step; each in a statement
    before those that read what it protects. The caller appends while they are held.
    """
    step = call.row(run)
    rule = run.contract.approvals[call.approval] if call.approval else None
    again = rule is not None and rule.approver_recheck
    people = await recheck.find_approvers(conn, call.key) if again else []
    _, _, [execution], asked, _, [row], roles, frozen, *found = await pipelined(
        conn,
        freezes.lock_statement(run.realm, run.flow),
        lock_all_statement(run.realm, [run.actor, *people])
        if people
        else lock_statement(run.realm, run.actor),
        lock_execution(run.execution),
        approvals.fetch_for_step(run, call.name, call.n),
        (_Q["insert_step"], step),
        (_Q["lock_step"], step),
        read_statement(run.realm, run.actor),
        freezes.read_statement(run.realm, run.flow, call.key),
        *(recheck.statements(run.realm, call.key, people) if again else []),
    )
    approvers = None
    if rule is not None and again:
        approvers = recheck.judge(rule, run.actor, people, found)
        if approvers is None:
            return None
    held = to_held(run.actor, roles)
    standing = replace(
        _standing(run, call, execution, asked, row, held),
        freeze=freezes.to_standing(frozen),
        tally=approvers.tally if approvers else None,
    )
    return Reading(row, standing, held, approvers)


def _standing(
    run: Run,
    call: Call,
    execution: Row,
    asked: list[Row],
    row: Row,
    held: Held,
) -> Standing:
    return Standing(
        execution=ExecutionState(execution["state"]),
        needs_approval=call.approval is not None,
        key=call.key,
        approvals=[
            ApprovalStanding(
                id=a["id"],
                key=a["step_key"],
                state=ApprovalState(a["state"]),
                execute_by=a["execute_by"],
                admitted_run=a["admitted_run"],
            )
            for a in asked
        ],
        resume_roles=run.contract.resume,
        roles_held=held.roles,
        has_outcome=row["outcome"] is not None,
        has_failure=row["failure"] is not None,
        holder=row["holder"],
        live=bool(row["live"]),
        attempt=call.attempt,
        now=row["now"],
    )

"""Governed steps: begin (check and claim), renew, finish, fail.

An attempt is a uuid made in memory for one invocation, never derived from Temporal's attempt
number. It is in every statement, so an attempt whose COMMIT answer was lost asks again and learns
that the claim, or the outcome, is its own.

Locks: actor buckets, execution, approvals, step, stream head; each in a statement before those that
read what it protects.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import AsyncConnection

from governance import approvals, canonical, outbox, recheck
from governance.authority import admitted, deny
from governance.chain.log import append_statement, find_stream
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_one, pipelined, queued
from governance.errors import ResumeDenied, StepRefused
from governance.executions import Run, lock_execution
from governance.names import ApprovalState, ExecutionState
from governance.recheck import Reading
from governance.roles import Held, lock_all_statement, lock_statement, read_statement, to_held
from governance.rules.admission import Admission, ApprovalStanding, Standing, admit

_Q = load("steps")


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at a governed step.

    Attributes:
        key: Step key, 32 bytes.
        name: Step name in the contract.
        n: Which of equal calls, from 1.
        round: How often the workflow called this step, from 1.
        kind: Step kind.
        approval: Name of the approval the contract asks for, if any.
        input_digest: Digest of the whole input, 32 bytes.
        binds_digest: Digest of the bound fields, 32 bytes.
        attempt: Identity of this invocation.
        lease: Seconds until others may take over.
    """

    key: bytes
    name: str
    n: int
    round: int
    kind: str
    approval: str | None
    input_digest: bytes
    binds_digest: bytes
    attempt: uuid.UUID
    lease: float

    def row(self, run: Run) -> dict[str, Any]:
        """The step's row as this call would make it."""
        return {
            "key": self.key,
            "realm": run.realm,
            "execution": run.execution,
            "generation": run.generation,
            "name": self.name,
            "n": self.n,
            "round": self.round,
            "binds_digest": self.binds_digest,
            "input_digest": self.input_digest,
            "run_id": run.run_id,
        }


@dataclass(frozen=True, slots=True)
class Permit:
    """The step may run: finish or fail it with this token."""

    token: int
    approval: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Injected:
    """The step is done: this is what everybody gets, as stored by `finish` or `fail`."""

    outcome: bytes
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Busy:
    """Another attempt holds the step until `lease_until` (`seconds` from now) or renews it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Evicted:
    """Another attempt took the step over; nothing of this one was recorded."""


async def begin(
    conn: AsyncConnection[Any], run: Run, call: Call
) -> Permit | Injected | Busy | StepRefused:
    """Ask whether this attempt may run the step, and claim it.

    Args:
        conn: A transaction; commit it whatever comes back: refusals are on the record.
        run: The run that calls.
        call: The attempt.

    Returns:
        A permit, the recorded outcome, who is in the way, or why not. `ResumeDenied` has ended
        the execution.
    """
    read = await _read(conn, run, call)
    if read is None:
        return Busy(0)  # it was being approved: look again
    row, standing = read.row, read.standing
    try:
        admission = admit(standing)
    except StepRefused as refusal:
        await _record_refusal(conn, run, call, read, refusal)
        return refusal
    match admission:
        case Admission.INJECT | Admission.INJECT_FAILURE:
            failed = admission is Admission.INJECT_FAILURE
            outcome: bytes = row["failure"] if failed else row["outcome"]
            await queued(conn, _injected(run, call, outcome, failed))
            return Injected(outcome, failed)
        case Admission.BUSY:
            return Busy((row["lease_until"] - row["now"]).total_seconds())
        case Admission.SAME_CLAIM:
            again = [Lease(call.key, call.attempt, call.lease)]
            await queued(conn, renewal(again))
            used = _approval_used(standing)
            return Permit(row["token"], used.id if used else None)
        case Admission.CLAIM:
            return await _claim(conn, run, call, read)


async def finish(
    conn: AsyncConnection[Any], run: Run, call: Call, token: int, outcome: bytes
) -> Injected | Evicted | None:
    """Record the outcome of a step that succeeded.

    The lease is not asked: a late holder that nobody replaced knows its outcome.

    Returns:
        None when recorded (also by an earlier call whose answer was lost); the outcome somebody
        else recorded; or that another attempt holds the step.
    """
    mine = {"key": call.key, "attempt": call.attempt, "token": token, "outcome": outcome}
    _, done = await pipelined(conn, lock_execution(run.execution), (_Q["finish_step"], mine))
    if done:
        payload = _payload(run, call, token) | {"outcome_digest": canonical.digest_hex(outcome)}
        await queued(
            conn,
            approvals.use_approval(run.execution, call.key),
            append_statement(run.execution, "step.executed", payload),
        )
        return None
    row = await fetch_one(conn, _Q["fetch_step"], {"key": call.key})
    if row is not None and row["outcome"] is not None:
        if (row["done_by"], row["done_token"]) == (call.attempt, token):
            return None
        await queued(conn, _evicted(run, call, token), _injected(run, call, row["outcome"]))
        return Injected(row["outcome"])
    await queued(conn, _evicted(run, call, token))
    return Evicted()


async def fail(
    conn: AsyncConnection[Any],
    run: Run,
    call: Call,
    token: int,
    *,
    code: str,
    failure: bytes | None,
) -> bool:
    """Record that an attempt failed and give the claim back.

    Args:
        conn: A transaction; commit it.
        run: The run that called.
        call: The attempt.
        token: From its permit.
        code: Error type, never its message.
        failure: The failure as everybody who calls this round gets it; None while Temporal will
            try again.

    Returns:
        False if the attempt no longer holds the step; nothing was recorded then.
    """
    mine = {"key": call.key, "attempt": call.attempt, "token": token}
    _, released = await pipelined(conn, lock_execution(run.execution), (_Q["release_step"], mine))
    if not released:
        return False
    payload = _payload(run, call, token) | {"code": code, "terminal": failure is not None}
    statements = [append_statement(run.execution, "step.failed", payload)]
    if failure is not None:
        row = {"key": call.key, "round": call.round, "failure": failure}
        statements.append((_Q["insert_failure"], row))
    await queued(conn, *statements)
    return True


async def record_elsewhere(
    conn: AsyncConnection[Any], realm: str, flow: str, payload: Mapping[str, Any]
) -> None:
    """Record a refused call that belongs to no execution, on the stream of the flow's contracts."""
    stream = await find_stream(conn, "contract", realm, flow)
    await queued(conn, append_statement(stream, "step.refused", payload))


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim to renew: step key, attempt, and for how many seconds from now."""

    key: bytes
    attempt: uuid.UUID
    seconds: float


async def renew(conn: AsyncConnection[Any], leases: Sequence[Lease]) -> frozenset[bytes]:
    """Renew many leases in one statement.

    Args:
        conn: A transaction; commit it.
        leases: What to renew.

    Returns:
        The keys that these attempts still hold.
    """
    renew_all = renewal(leases)
    _, rows = await pipelined(conn, renew_all, (_Q["fetch_holders"], renew_all[1]))
    return frozenset(row["key"] for row in rows)


def renewal(leases: Sequence[Lease]) -> Statement:
    """The statement that renews leases which these attempts still hold."""
    return _Q["renew_leases"], {
        "keys": [lease.key for lease in leases],
        "attempts": [lease.attempt for lease in leases],
        "leases": [lease.seconds for lease in leases],
    }


async def _read(conn: AsyncConnection[Any], run: Run, call: Call) -> Reading | None:
    """Take the locks, then read; None if who approved is not who was locked."""
    step = call.row(run)
    rule = run.contract.approvals[call.approval] if call.approval else None
    again = rule is not None and rule.approver_recheck
    people = await recheck.find_approvers(conn, call.key) if again else []
    _, [execution], asked, _, [row], roles, *found = await pipelined(
        conn,
        lock_all_statement(run.realm, [run.actor, *people])
        if people
        else lock_statement(run.realm, run.actor),
        lock_execution(run.execution),
        approvals.fetch_for_step(run, call.name, call.n),
        (_Q["insert_step"], step),
        (_Q["lock_step"], step),
        read_statement(run.realm, run.actor),
        *(recheck.statements(run.realm, call.key, people) if again else []),
    )
    approvers = None
    if rule is not None and again:
        approvers = recheck.judge(rule, run.actor, people, found)
        if approvers is None:
            return None
    held = to_held(run.actor, roles)
    standing = _standing(run, call, execution, asked, row, held)
    if approvers is not None:
        standing = replace(standing, tally=approvers.tally)
    return Reading(row, standing, held, approvers)


async def _claim(conn: AsyncConnection[Any], run: Run, call: Call, read: Reading) -> Permit:
    row, standing, held = read.row, read.standing, read.held
    token: int = row["token"] + 1  # the row is locked
    approval = _approval_used(standing)
    kind = "step.claimed" if row["holder"] is None else "step.taken_over"
    payload = _payload(run, call, token) | {
        "actor": run.actor,
        "approval": approval.id.hex if approval else "",
        "lease_seconds": round(call.lease),
        "policy": list(run.contract.resume),
        **read.record(),
    }
    claim = {
        "key": call.key,
        "attempt": call.attempt,
        "round": call.round,
        "lease": call.lease,
    }
    if approval is not None:
        await queued(conn, outbox.finish_topic(run.execution, approval.id.hex))
        if approval.admitted_run != run.run_id:
            await queued(conn, *admitted(run, approval.id, held))
    await queued(
        conn,
        (_Q["claim_step"], claim),
        append_statement(run.execution, kind, payload, read.observed),
    )
    return Permit(token, approval.id if approval else None)


async def _record_refusal(
    conn: AsyncConnection[Any],
    run: Run,
    call: Call,
    read: Reading,
    refusal: StepRefused,
) -> None:
    payload = _payload(run, call, 0) | {"code": refusal.code} | read.record()
    await queued(conn, append_statement(run.execution, "step.refused", payload, read.observed))
    for approval in read.standing.approvals:
        # The call is answered: a wake-up for it would only hold up those behind it.
        if approval.key == call.key and approval.state is not ApprovalState.PENDING:
            await queued(conn, outbox.finish_topic(run.execution, approval.id.hex))
    if isinstance(refusal, ResumeDenied):
        await deny(conn, run, read.held, f"step {call.name}")


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


def _approval_used(standing: Standing) -> ApprovalStanding | None:
    if not standing.needs_approval:
        return None
    return next(a for a in standing.approvals if a.key == standing.key)


def _payload(run: Run, call: Call, token: int) -> dict[str, Any]:
    return {
        "step": call.name,
        "step_kind": call.kind,
        "step_key": call.key.hex(),
        "n": call.n,
        "round": call.round,
        "run_id": run.run_id,
        "attempt": call.attempt.hex,
        "token": token,
        "input_digest": call.input_digest.hex(),
    }


def _injected(run: Run, call: Call, outcome: bytes, failed: bool = False) -> Statement:
    payload = _payload(run, call, 0) | {
        "outcome_digest": canonical.digest_hex(outcome),
        "failed": failed,
    }
    return append_statement(run.execution, "step.injected", payload)


def _evicted(run: Run, call: Call, token: int) -> Statement:
    return append_statement(run.execution, "step.evicted", _payload(run, call, token))

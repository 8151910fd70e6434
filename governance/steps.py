"""Governed steps: begin (check and claim), renew, finish, fail.

An attempt is a uuid made in memory for one invocation, never derived from Temporal's attempt
number. It is in every statement, so an attempt whose COMMIT answer was lost asks again and learns
that the claim, or the outcome, is its own.

`governance.reading` says which locks a begin takes, and in which order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from governance import approvals, canonical, freezes, outbox
from governance.attempts import Busy, Call, Evicted, Injected, Lease, Permit
from governance.authority import admitted, deny
from governance.chain.log import append_statement, find_stream
from governance.db.queries import load
from governance.db.statements import Statement, fetch_one, pipelined, queued
from governance.errors import Frozen, ResumeDenied, StepRefused
from governance.executions import Run, lock_execution
from governance.names import ApprovalState
from governance.reading import Reading, read
from governance.rules.admission import Admission, ApprovalStanding, Standing, admit

__all__ = [
    "Busy",
    "Call",
    "Evicted",
    "Injected",
    "Lease",
    "Permit",
    "begin",
    "fail",
    "finish",
    "record_elsewhere",
    "renew",
]

_Q = load("steps")


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
        the execution; `Frozen` holds until somebody lifts the freeze.
    """
    found = await read(conn, run, call)
    if found is None:
        return Busy(0)  # it was being approved: look again
    row, standing = found.row, found.standing
    try:
        admission = admit(standing)
    except StepRefused as refusal:
        await _record_refusal(conn, run, call, found, refusal)
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
            return await _claim(conn, run, call, found)


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


async def _claim(conn: AsyncConnection[Any], run: Run, call: Call, found: Reading) -> Permit:
    row, standing, held = found.row, found.standing, found.held
    token: int = row["token"] + 1  # the row is locked
    approval = _approval_used(standing)
    kind = "step.claimed" if row["holder"] is None else "step.taken_over"
    payload = _payload(run, call, token) | {
        "actor": run.actor,
        "approval": approval.id.hex if approval else "",
        "lease_seconds": round(call.lease),
        "policy": list(run.contract.resume),
        **found.record(),
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
        append_statement(run.execution, kind, payload, found.observed),
    )
    return Permit(token, approval.id if approval else None)


async def _record_refusal(
    conn: AsyncConnection[Any], run: Run, call: Call, found: Reading, refusal: StepRefused
) -> None:
    payload = _payload(run, call, 0) | {"code": refusal.code} | found.record()
    observed = found.observed
    freeze = found.standing.freeze if isinstance(refusal, Frozen) else None
    if freeze is not None:
        payload["freeze"] = freeze.id.hex
        observed = [*observed, freeze.leaf]
    if freeze is None or not freeze.told:
        await queued(conn, append_statement(run.execution, "step.refused", payload, observed))
    if freeze is not None and not freeze.told:
        await queued(conn, freezes.told_statement(freeze, call.key))
    for approval in found.standing.approvals:
        # The call is answered: a wake-up for it would only hold up those behind it.
        if approval.key == call.key and approval.state is not ApprovalState.PENDING:
            await queued(conn, outbox.finish_topic(run.execution, approval.id.hex))
    if isinstance(refusal, ResumeDenied):
        await deny(conn, run, found.held, f"step {call.name}")


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

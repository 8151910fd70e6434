"""Approvals: asked by a worker, bound to one step key, waiting until somebody decides.

Every change takes the execution's lock first. `governance.decisions` has the deciding.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from psycopg import AsyncConnection

from governance import canonical, ids, outbox
from governance.chain.log import append_statement
from governance.contracts import ApprovalRule, FlowContract
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_all, fetch_one, pipelined, queued
from governance.errors import ApprovalUnknown
from governance.executions import Run, lock_execution, pinned
from governance.names import ApprovalState, ExecutionState, Verdict
from governance.roles import read_statement, to_held
from governance.rules.limits import limit
from governance.rules.quorum import Tally, tally

_Q = load("approvals")
_STEPS = load("steps")
_ALIVE = (ApprovalState.PENDING, ApprovalState.APPROVED, ApprovalState.USED)


@dataclass(frozen=True, slots=True)
class Request:
    """What a hold asks for.

    Attributes:
        key: Step key, 32 bytes.
        step: Step name.
        approval: Name of the approval in the contract.
        n: Which of equal calls, from 1.
        round: How often the workflow has called this step, from 1.
        input_digest: Digest of the whole input, 32 bytes.
        binds_digest: Digest of the bound fields, 32 bytes.
        title: One line for people, made from shown values only.
        shown: The values of the contract's `show`, by label.
    """

    key: bytes
    step: str
    approval: str
    n: int
    round: int
    input_digest: bytes
    binds_digest: bytes
    title: str
    shown: dict[str, str]


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval as people see it. `shown` has only what the contract lists in `show`.

    `name` is that of its rule in the contract, `now` the database clock when it was read.
    `roles_now` has the roles that those who approved hold now, where the contract asks for them
    again as the step begins.
    """

    id: uuid.UUID
    execution: uuid.UUID
    workflow_id: str
    flow: str
    state: ApprovalState
    title: str
    step: str
    requested_by: str
    roles: tuple[str, ...]
    shown: dict[str, str]
    input_digest: bytes
    requested_at: datetime
    decide_by: datetime | None
    execute_by: datetime | None
    used_at: datetime | None
    now: datetime
    name: str
    rule: ApprovalRule
    contract: FlowContract
    decisions: tuple[Row, ...] = field(default=())
    roles_now: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def tally(self) -> Tally:
        """Which votes to approve count, why or why not, and how many are missing."""
        votes = [
            (row["decided_by"], self.roles_now.get(row["decided_by"], row["roles_held"]))
            for row in self.decisions
            if row["verdict"] == Verdict.APPROVE
        ]
        return tally(self.rule, self.requested_by, votes)


async def request(
    conn: AsyncConnection[Any], run: Run, asked: Request
) -> tuple[str, uuid.UUID | None]:
    """Ask for an approval, or find what became of the one asked before.

    Returns:
        A state and the approval's id: `done` (the step has an outcome; nobody is asked), `denied`
        (the execution was), or the state of the approval, `pending` for a new one.
    """
    [execution], outcome, before = await pipelined(
        conn,
        lock_execution(run.execution),
        (_STEPS["fetch_outcome"], {"key": asked.key}),
        fetch_for_step(run, asked.step, asked.n),
    )
    if outcome and outcome[0]["done"]:
        return "done", None
    if execution["state"] == ExecutionState.DENIED:
        return ExecutionState.DENIED, None
    for row in before:
        if row["step_key"] == asked.key:
            state = await settle(conn, run.execution, row)
            if _answers(state, row, run, asked):
                if state not in _ALIVE:
                    await queued(conn, outbox.finish_topic(run.execution, row["id"].hex))
                return state, row["id"]
    return ApprovalState.PENDING, await _insert(conn, run, asked)


async def withdraw_step(conn: AsyncConnection[Any], run: Run, step: str, n: int, why: str) -> None:
    """Stop asking for a step whose call was cancelled. Decided approvals stay as they are."""
    _, asked = await pipelined(conn, lock_execution(run.execution), fetch_for_step(run, step, n))
    for row in asked:
        if row["state"] == ApprovalState.PENDING:
            await withdraw_locked(conn, run.execution, row["id"], why)
        else:  # nobody waits for the decision's wake-up, which would hold up those behind it
            await queued(conn, outbox.finish_topic(run.execution, row["id"].hex))


async def find_overdue(
    conn: AsyncConnection[Any], realm: str, limit: int = 100
) -> Sequence[tuple[uuid.UUID, uuid.UUID]]:
    """Approvals that nobody decided in time: (approval, execution), to `expire` one by one."""
    rows = await fetch_all(conn, _Q["fetch_overdue"], {"realm": realm, "limit": limit})
    return [(row["id"], row["execution"]) for row in rows]


async def expire(
    conn: AsyncConnection[Any], realm: str, approval: uuid.UUID, execution: uuid.UUID
) -> None:
    """Record that an approval's time ran out, if it did, and wake whoever waits for it."""
    _, [row] = await pipelined(
        conn, lock_execution(execution), (_Q["lock_approval"], {"id": approval})
    )
    was_pending = row["state"] == ApprovalState.PENDING
    if was_pending and await settle(conn, execution, row) is ApprovalState.EXPIRED:
        await queued(conn, outbox.enqueue(realm, execution, approval.hex))


async def get(conn: AsyncConnection[Any], realm: str, approval: uuid.UUID) -> Approval:
    """One approval with its decisions.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    row = await fetch(conn, realm, approval)
    contract = pinned(row["contract_digest"], row["contract_body"])
    rule = contract.approvals[row["name"]]
    decisions = await fetch_all(conn, _Q["fetch_decisions"], {"id": approval})
    return Approval(
        id=row["id"],
        execution=row["execution"],
        workflow_id=row["workflow_id"],
        flow=row["flow"],
        state=ApprovalState(row["state"]),
        title=row["title"],
        step=row["step"],
        requested_by=row["actor"],
        roles=tuple(row["roles"]),
        shown=cast("dict[str, str]", canonical.loads(row["shown"].encode(), any_keys=True)),
        input_digest=row["input_digest"],
        requested_at=row["requested_at"],
        decide_by=row["decide_by"],
        execute_by=row["execute_by"],
        used_at=row["used_at"],
        now=row["now"],
        name=row["name"],
        rule=rule,
        contract=contract,
        decisions=tuple(decisions),
        roles_now=await _roles_now(conn, realm, rule, row, decisions),
    )


async def _roles_now(
    conn: AsyncConnection[Any], realm: str, rule: ApprovalRule, row: Row, decisions: Sequence[Row]
) -> dict[str, frozenset[str]]:
    """The roles of those who approved, while a step that asks for them again may still begin."""
    if not rule.approver_recheck or row["state"] != ApprovalState.APPROVED:
        return {}
    people = [one["decided_by"] for one in decisions]
    found = await pipelined(conn, *(read_statement(realm, one) for one in people))
    return {one: to_held(one, rows).roles for one, rows in zip(people, found, strict=True)}


async def list_approvals(
    conn: AsyncConnection[Any],
    realm: str,
    *,
    state: ApprovalState | None = ApprovalState.PENDING,
    role: str | None = None,
    limit: int = 100,
) -> list[Row]:
    """Approvals of a realm, oldest first; those that wait, unless another state is asked for."""
    params = {"realm": realm, "state": state, "role": role, "limit": limit}
    return await fetch_all(conn, _Q["list_approvals"], params)


async def settle(conn: AsyncConnection[Any], execution: uuid.UUID, row: Row) -> ApprovalState:
    """The state of an approval now, its limits included; a passed limit is recorded.

    The execution's row is locked; `row` has id, state, decide_by, execute_by and now.
    """
    state = ApprovalState(row["state"])
    limit = {ApprovalState.PENDING: "decide_by", ApprovalState.APPROVED: "execute_by"}.get(state)
    if limit is None or row[limit] is None or row["now"] <= row[limit]:
        return state
    payload = {"approval": row["id"].hex, "limit": limit, "was": row[limit].isoformat()}
    await queued(
        conn,
        (_Q["change_state"], {"id": row["id"], "state": ApprovalState.EXPIRED, "was": state}),
        append_statement(execution, "approval.expired", payload),
        outbox.finish_topic(execution, row["id"].hex),
    )
    return ApprovalState.EXPIRED


def use_approval(execution: uuid.UUID, key: bytes) -> Statement:
    """The statement that marks the approval of a step that succeeded."""
    return _Q["use_approval"], {"execution": execution, "step_key": key}


def fetch_for_step(run: Run, step: str, n: int) -> Statement:
    """The approvals asked for a step of the run's generation, newest first."""
    return _Q["fetch_for_step"], {
        "execution": run.execution,
        "generation": run.generation,
        "step": step,
        "n": n,
    }


def _answers(state: ApprovalState, row: Row, run: Run, asked: Request) -> bool:
    """Whether an earlier approval of the same step key answers this request.

    A rejection stands for the whole execution. What ran out or was withdrawn answers only the call
    that saw it end; a later call, or a later run, may ask again.
    """
    if state in _ALIVE or state is ApprovalState.REJECTED:
        return True
    return bool(row["run_id"] == run.run_id and row["round"] == asked.round)


async def _insert(conn: AsyncConnection[Any], run: Run, asked: Request) -> uuid.UUID:
    rule = run.contract.approvals[asked.approval]
    now = await _clock(conn)
    approval = ids.new_id()
    decide_by = limit(now, rule.decide_by)
    shown = canonical.dumps(asked.shown, any_keys=True)
    row = {
        "id": approval,
        "realm": run.realm,
        "execution": run.execution,
        "step_key": asked.key,
        "step": asked.step,
        "name": asked.approval,
        "generation": run.generation,
        "n": asked.n,
        "round": asked.round,
        "run_id": run.run_id,
        "input_digest": asked.input_digest,
        "binds_digest": asked.binds_digest,
        "roles": list(rule.roles),
        "needed": rule.needed,
        "title": asked.title,
        "shown": shown.decode(),
        "requested_at": now,
        "decide_by": decide_by,
    }
    payload = {
        "approval": approval.hex,
        "name": asked.approval,
        "step": asked.step,
        "step_key": asked.key.hex(),
        "round": asked.round,
        "run_id": run.run_id,
        "input_digest": asked.input_digest.hex(),
        "binds_digest": asked.binds_digest.hex(),
        "title": asked.title,
        "shown_digest": canonical.digest_hex(shown),
        "roles": list(rule.roles),
        "duties": list(rule.duties),
        "decide_by": decide_by.isoformat() if decide_by else "",
        "requested_by": run.actor,
    }
    if rule.needed > 1:
        payload["needed"] = rule.needed
    await queued(
        conn,
        (_Q["insert_approval"], row),
        append_statement(run.execution, "approval.requested", payload),
    )
    return approval


async def withdraw_locked(
    conn: AsyncConnection[Any],
    execution: uuid.UUID,
    approval: uuid.UUID,
    why: str,
    *,
    by: str = "",
    submitted_by: str = "",
) -> bool:
    """Withdraw an approval of an execution whose row is locked; False if it is not pending."""
    change = {"id": approval, "state": ApprovalState.WITHDRAWN, "was": ApprovalState.PENDING}
    [changed] = await pipelined(conn, (_Q["change_state"], change))
    if not changed:
        return False
    payload = {
        "approval": approval.hex,
        "why": why,
        "by": by,
        "submitted_by": submitted_by,
    }
    await queued(
        conn,
        append_statement(execution, "approval.withdrawn", payload),
        outbox.finish_topic(execution, approval.hex),
    )
    return True


async def fetch(conn: AsyncConnection[Any], realm: str, approval: uuid.UUID) -> Row:
    """An approval's row with its execution, contract and newest decision.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    [found] = await pipelined(conn, fetch_statement(realm, approval))
    return known(found, realm, approval)


def fetch_statement(realm: str, approval: uuid.UUID) -> Statement:
    """The statement behind `fetch`; `known` reads its rows."""
    return _Q["fetch_approval"], {"realm": realm, "id": approval}


def known(found: list[Row], realm: str, approval: uuid.UUID) -> Row:
    """The one row of `fetch_statement`.

    Raises:
        ApprovalUnknown: There is none.
    """
    if not found:
        raise ApprovalUnknown(
            f'There is no approval {approval} in realm "{realm}".',
            hint="`governance approvals list` shows those that wait.",
        )
    return found[0]


async def _clock(conn: AsyncConnection[Any]) -> datetime:
    row = await fetch_one(conn, _Q["clock"], {})
    assert row is not None
    now: datetime = row["now"]
    return now

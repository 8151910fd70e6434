"""Deciding: one service behind every door.

Every decision takes the execution's lock first, so two clicks, two tabs and two approvers meet one
after the other, and the second one is told what the first did.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from governance import canonical, outbox
from governance.approvals import fetch, fetch_statement, known, settle, withdraw_locked
from governance.chain.log import append_statement
from governance.contracts import ApprovalRule
from governance.db.queries import load
from governance.db.statements import Row, pipelined, queued
from governance.errors import DecisionRefused, DigestMismatch
from governance.executions import lock_execution_of, pinned
from governance.names import ApprovalState, Verdict
from governance.roles import Held, lock_statement, read_statement, to_held
from governance.rules.decision import closed, may_decide
from governance.rules.limits import limit

_Q = load("approvals")


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides, and how far that is known.

    Attributes:
        id: The person, as the role directory knows them.
        method: The door: `cli`, `api`, …
        submitted_by: Who the door itself saw, e.g. `os:ana@host`; not always the same.
    """

    id: str
    method: str = "api"
    submitted_by: str = ""


async def withdraw_as(
    conn: AsyncConnection[Any], realm: str, approval: uuid.UUID, decider: Decider, reason: str
) -> DecisionRefused | None:
    """Withdraw as the person for whom the execution was started.

    Returns:
        Why not: it is decided already, or somebody else asked for it.
    """
    _, found = await pipelined(conn, lock_execution_of(approval), fetch_statement(realm, approval))
    row = known(found, realm, approval)
    if decider.id != row["actor"]:
        return DecisionRefused(
            f"Only {row['actor']}, who asked, can withdraw approval {approval}.",
            hint="To refuse it, reject it.",
        )
    if await withdraw_locked(
        conn, row["execution"], approval, reason, by=decider.id, submitted_by=decider.submitted_by
    ):
        await queued(conn, outbox.enqueue(realm, row["execution"], approval.hex))
        return None
    row = await fetch(conn, realm, approval)
    return closed(ApprovalState(row["state"]), row["decided_by"], row["verdict_at"])


async def decide(
    conn: AsyncConnection[Any],
    realm: str,
    approval: uuid.UUID,
    verdict: Verdict,
    decider: Decider,
    reason: str = "",
    digest: bytes | None = None,
) -> DecisionRefused | None:
    """Decide, as `decider`, whose roles are read here.

    Args:
        conn: A transaction; commit it whatever comes back: a refusal is on the record too.
        realm: The trust domain.
        approval: Which one.
        verdict: Approve or reject.
        decider: Who.
        reason: Why; required to reject.
        digest: If given, the input digest the decider saw; another one is refused.

    Returns:
        None when decided; else why not.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    _, _, found, roles = await pipelined(
        conn,
        lock_statement(realm, decider.id),
        lock_execution_of(approval),
        fetch_statement(realm, approval),
        read_statement(realm, decider.id),
    )
    row = known(found, realm, approval)
    asked = _Asked(
        row=row,
        rule=pinned(row["contract_digest"], row["contract_body"]).approvals[row["name"]],
        held=to_held(decider.id, roles),
        decider=decider,
        verdict=verdict,
        reason=reason,
    )
    try:
        _check(asked, digest)
    except DecisionRefused as refusal:
        await _record_refusal(conn, asked, refusal)
        return refusal
    await _record_decision(conn, asked)
    return None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A person's attempt to decide, with all that was read under its locks."""

    row: Row
    rule: ApprovalRule
    held: Held
    decider: Decider
    verdict: Verdict
    reason: str

    def record(self) -> dict[str, Any]:
        """What an entry says of it, decided or refused."""
        return {
            "approval": self.row["id"].hex,
            "verdict": self.verdict,
            "submitted_by": self.decider.submitted_by,
            "method": self.decider.method,
            "roles_held": self.held.record(),
            "roles_read_at": self.row["now"].isoformat(),
            "roles_read_from": "governance.role_grant",
        }


def _check(asked: _Asked, digest: bytes | None) -> None:
    if digest is not None and digest != asked.row["input_digest"]:
        raise DigestMismatch(
            f"The input of approval {asked.row['id']} is not the one you saw.",
            hint="Look at it again before deciding.",
        )
    may_decide(
        asked.rule,
        actor=asked.row["actor"],
        decider=asked.decider.id,
        roles_held=asked.held.roles,
        state=ApprovalState(asked.row["state"]),
        now=asked.row["now"],
        decide_by=asked.row["decide_by"],
        verdict=asked.verdict,
        reason=asked.reason,
        decided_by=asked.row["decided_by"],
        decided_at=asked.row["verdict_at"],
    )


async def _record_refusal(
    conn: AsyncConnection[Any], asked: _Asked, refusal: DecisionRefused
) -> None:
    execution = asked.row["execution"]
    await settle(conn, execution, asked.row)
    payload = asked.record() | {"code": refusal.code, "refused": asked.decider.id}
    await queued(
        conn, append_statement(execution, "approval.refused", payload, asked.held.observed)
    )


async def _record_decision(conn: AsyncConnection[Any], asked: _Asked) -> None:
    row, now, decider = asked.row, asked.row["now"], asked.decider
    approved = asked.verdict is Verdict.APPROVE
    execute_by = limit(now, asked.rule.execute_by) if approved else None
    state = ApprovalState.APPROVED if approved else ApprovalState.REJECTED
    change = {"id": row["id"], "state": state, "at": now, "execute_by": execute_by}
    decision = {
        "approval": row["id"],
        "execution": row["execution"],
        "verdict": asked.verdict,
        "decided_by": decider.id,
        "submitted_by": decider.submitted_by,
        "method": decider.method,
        "reason": asked.reason,
        "roles_held": sorted(asked.held.roles),
        "at": now,
    }
    payload = asked.record() | {
        "name": row["name"],
        "decided_by": decider.id,
        "reason": asked.reason,
        "input_digest": row["input_digest"].hex(),
        "shown_digest": canonical.digest_hex(row["shown"].encode()),
        "execute_by": execute_by.isoformat() if execute_by else "",
    }
    await queued(
        conn,
        (_Q["decide_approval"], change),
        append_statement(row["execution"], "approval.decided", payload, asked.held.observed),
        (_Q["insert_decision"], decision),
        outbox.enqueue(row["realm"], row["execution"], row["id"].hex),
    )

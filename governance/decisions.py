"""Deciding, and revoking before use: one service behind every door.

Every decision takes the execution's lock first, so two clicks, two tabs and two approvers meet one
after the other, and the second one is told what the first did.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from governance import canonical, outbox
from governance.approvals import fetch, fetch_statement, known, settle, withdraw_locked
from governance.chain.log import append_statement
from governance.contracts import ApprovalRule
from governance.db.queries import load
from governance.db.statements import Row, Statement, pipelined, queued
from governance.errors import DecisionRefused, DigestMismatch
from governance.executions import lock_execution_of, pinned
from governance.names import ApprovalState, Verdict
from governance.roles import Held, lock_statement, read_statement, to_held
from governance.rules.decision import Accepted, closed, may_decide, may_revoke
from governance.rules.limits import limit

_Q = load("approvals")
_REVOKE: Final = "revoke"  # beside the verdicts, in what is recorded of a refusal


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
    """Decide, as `decider`; as `vote`, which also tells how many approvers are missing.

    Returns:
        None when it counts; else why not.
    """
    told = await vote(conn, realm, approval, verdict, decider, reason, digest)
    return told if isinstance(told, DecisionRefused) else None


async def vote(
    conn: AsyncConnection[Any],
    realm: str,
    approval: uuid.UUID,
    verdict: Verdict,
    decider: Decider,
    reason: str = "",
    digest: bytes | None = None,
) -> DecisionRefused | Accepted:
    """Approve or reject, as `decider`, whose roles are read here.

    The approval is decided by the vote after which nobody is missing, and by any rejection.

    Args:
        conn: A transaction; commit it whatever comes back: a refusal is on the record too.
        realm: The trust domain.
        approval: Which one.
        verdict: Approve or reject.
        decider: Who.
        reason: Why; required to reject.
        digest: If given, the input digest the decider saw; another one is refused.

    Returns:
        With which roles it counts and how many are missing after it; else why not.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    asked = await _asked(conn, realm, approval, verdict, decider, reason)
    try:
        accepted = _check(asked, verdict, digest)
    except DecisionRefused as refusal:
        await _record_refusal(conn, asked, refusal)
        return refusal
    await _record_vote(conn, asked, verdict, accepted)
    return accepted


async def revoke(
    conn: AsyncConnection[Any], realm: str, approval: uuid.UUID, decider: Decider, reason: str
) -> DecisionRefused | None:
    """Take a decision back before it is used, as somebody who gave it or could have.

    Once this is committed, no step begins on the approval.

    Args:
        conn: A transaction; commit it whatever comes back: a refusal is on the record too.
        realm: The trust domain.
        approval: Which one.
        decider: Who revokes; their roles are read here.
        reason: Why; required.

    Returns:
        Why not: it is not approved, its step has begun, or not by this person.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    asked = await _asked(conn, realm, approval, _REVOKE, decider, reason)
    try:
        _check_revocation(asked)
    except DecisionRefused as refusal:
        await _record_refusal(conn, asked, refusal)
        return refusal
    execution = asked.row["execution"]
    payload = asked.record() | {
        "name": asked.row["name"],
        "revoked_by": decider.id,
        "reason": reason,
        "attempts_before": asked.use["attempts"],
        "woken": asked.use["unheard"],
    }
    change = {"id": approval, "state": ApprovalState.REVOKED, "was": ApprovalState.APPROVED}
    await queued(
        conn,
        (_Q["change_state"], change),
        append_statement(execution, "approval.revoked", payload, asked.held.observed),
    )
    if asked.use["unheard"]:  # else nobody waits any more, and the border is what refuses
        await queued(conn, outbox.enqueue(realm, execution, approval.hex))
    return None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A person's attempt to decide or revoke, with all that was read under its locks.

    `votes` are those before it; `use`, for a revocation, is what came of it so far.
    """

    row: Row
    rule: ApprovalRule
    held: Held
    decider: Decider
    verdict: str
    reason: str
    votes: list[Row]
    use: Row

    @property
    def voters(self) -> list[str]:
        """Who approved before."""
        return [row["decided_by"] for row in self.votes]

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


async def _asked(
    conn: AsyncConnection[Any],
    realm: str,
    approval: uuid.UUID,
    verdict: str,
    decider: Decider,
    reason: str,
) -> _Asked:
    """Take the locks, then read: of votes at once, each sees those before it."""
    uses: list[Statement] = [(_Q["fetch_use"], {"id": approval})] if verdict == _REVOKE else []
    _, _, found, votes, roles, *use = await pipelined(
        conn,
        lock_statement(realm, decider.id),
        lock_execution_of(approval),
        fetch_statement(realm, approval),
        (_Q["fetch_votes"], {"id": approval}),
        read_statement(realm, decider.id),
        *uses,
    )
    row = known(found, realm, approval)
    return _Asked(
        row=row,
        rule=pinned(row["contract_digest"], row["contract_body"]).approvals[row["name"]],
        held=to_held(decider.id, roles),
        decider=decider,
        verdict=verdict,
        reason=reason,
        votes=votes,
        use=use[0][0] if use else {},
    )


def _check(asked: _Asked, verdict: Verdict, digest: bytes | None) -> Accepted:
    if digest is not None and digest != asked.row["input_digest"]:
        raise DigestMismatch(
            f"The input of approval {asked.row['id']} is not the one you saw.",
            hint="Look at it again before deciding.",
        )
    return may_decide(
        asked.rule,
        actor=asked.row["actor"],
        decider=asked.decider.id,
        roles_held=asked.held.roles,
        state=ApprovalState(asked.row["state"]),
        now=asked.row["now"],
        decide_by=asked.row["decide_by"],
        verdict=verdict,
        reason=asked.reason,
        decided_by=asked.row["decided_by"],
        decided_at=asked.row["verdict_at"],
        voters=asked.voters,
    )


def _check_revocation(asked: _Asked) -> None:
    row = asked.row
    may_revoke(
        asked.rule,
        actor=row["actor"],
        decider=asked.decider.id,
        roles_held=asked.held.roles,
        voters=asked.voters,
        state=ApprovalState(row["state"]),
        begun=asked.use["begun"],
        now=row["now"],
        execute_by=row["execute_by"],
        reason=asked.reason,
        decided_by=row["decided_by"],
        decided_at=row["verdict_at"],
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


async def _record_vote(
    conn: AsyncConnection[Any], asked: _Asked, verdict: Verdict, accepted: Accepted
) -> None:
    """Record a vote; with nobody missing after it, it is the decision."""
    row, now, decider = asked.row, asked.row["now"], asked.decider
    approved = verdict is Verdict.APPROVE
    final = accepted.missing == 0
    execute_by = limit(now, asked.rule.execute_by) if approved and final else None
    decision = {
        "approval": row["id"],
        "execution": row["execution"],
        "verdict": verdict,
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
        **_of_several(asked, accepted),
    }
    if final:
        payload["execute_by"] = execute_by.isoformat() if execute_by else ""
        state = ApprovalState.APPROVED if approved else ApprovalState.REJECTED
        change = {"id": row["id"], "state": state, "at": now, "execute_by": execute_by}
        await queued(conn, (_Q["decide_approval"], change))
    kind = "approval.decided" if final else "approval.vote"
    await queued(
        conn,
        append_statement(row["execution"], kind, payload, asked.held.observed),
        (_Q["insert_decision"], decision),
    )
    if final:
        await queued(conn, outbox.enqueue(row["realm"], row["execution"], row["id"].hex))


def _of_several(asked: _Asked, accepted: Accepted) -> dict[str, Any]:
    """What an entry says where it takes several: all voters so far, and the entries before it."""
    if accepted.needed == 1:
        return {}
    return {
        "needed": accepted.needed,
        "missing": accepted.missing,
        "voters": [*asked.voters, asked.decider.id],
        "votes": [row["leaf"].hex() for row in asked.votes],
    }

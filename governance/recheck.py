"""The approvers' roles, read again as the step begins (`approver_recheck`).

Whose roles to lock is known only from the decisions, and those are read under a lock that comes
later. So they are read ahead without one, and once more behind it; who has decided in between is
not among the locked, and the attempt has to begin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from governance.contracts import ApprovalRule
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_all
from governance.roles import Held, read_statement, to_held
from governance.rules.quorum import Tally, tally

_Q = load("approvals")


@dataclass(frozen=True, slots=True)
class Rechecked:
    """The votes behind a step, by the roles that those who gave them hold now."""

    tally: Tally
    held: tuple[Held, ...] = ()

    def record(self) -> dict[str, Any]:
        """What an entry says of it; nothing where the contract does not ask."""
        if not self.held:
            return {}
        pairs = zip(self.tally.votes, self.held, strict=True)
        return {
            "approvers": [
                {
                    "approver": vote.by,
                    "counts": vote.counts,
                    "why": vote.why,
                    "roles_held": held.record(),
                }
                for vote, held in pairs
            ]
        }

    def observed(self, actor: Held) -> list[bytes]:
        """All heads that a reading of these people and the actor rests on, each once."""
        heads = [head for held in (actor, *self.held) for head in held.observed]
        return list(dict.fromkeys(heads))


async def find_approvers(conn: AsyncConnection[Any], step_key: bytes) -> list[str]:
    """Who approved this step, read before any lock."""
    return _names(await fetch_all(conn, *approvers_statement(step_key)))


def approvers_statement(step_key: bytes) -> Statement:
    """Who approved this step; `judge` reads its rows."""
    return _Q["fetch_approvers"], {"step_key": step_key}


def statements(realm: str, step_key: bytes, people: Sequence[str]) -> list[Statement]:
    """What is read behind the locks; `judge` reads the rows."""
    return [approvers_statement(step_key), *(read_statement(realm, one) for one in people)]


def judge(
    rule: ApprovalRule, actor: str, people: Sequence[str], found: Sequence[list[Row]]
) -> Rechecked | None:
    """Count the votes again.

    Args:
        rule: The approval in the pinned contract.
        actor: For whom the execution was started.
        people: Who was found ahead, and is locked.
        found: The rows of `statements`.

    Returns:
        None if others have approved since.
    """
    approvers, *roles = found
    if _names(approvers) != list(people):
        return None
    held = tuple(to_held(one, rows) for one, rows in zip(people, roles, strict=True))
    return Rechecked(tally(rule, actor, [(one.actor, one.roles) for one in held]), held)


def _names(rows: Sequence[Row]) -> list[str]:
    return [row["decided_by"] for row in rows]

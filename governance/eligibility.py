"""Telling people, before they decide, whether they may. Only a look: deciding reads all again."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from governance.approvals import get
from governance.db.statements import pipelined
from governance.errors import DecisionRefused
from governance.names import Verdict
from governance.roles import read_statement, to_held
from governance.rules.decision import may_decide


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Whether somebody could approve at the moment of looking.

    Attributes:
        person: Who.
        roles: The roles they hold that meet the barrier; empty if they could not.
        refusal: Why not; None if they could.
    """

    person: str
    roles: tuple[str, ...]
    refusal: DecisionRefused | None


async def eligibility(
    conn: AsyncConnection[Any], realm: str, approval: uuid.UUID, person: str
) -> Eligibility:
    """Tell whether this person could approve now; nothing is locked or recorded.

    Raises:
        ApprovalUnknown: There is no such approval in this realm.
    """
    found = await get(conn, realm, approval)
    [roles] = await pipelined(conn, read_statement(realm, person))
    last = found.decisions[-1] if found.decisions else None
    try:
        accepted = may_decide(
            found.rule,
            actor=found.requested_by,
            decider=person,
            roles_held=to_held(person, roles).roles,
            state=found.state,
            now=found.now,
            decide_by=found.decide_by,
            verdict=Verdict.APPROVE,
            reason="",
            decided_by=last["decided_by"] if last else None,
            decided_at=last["at"] if last else None,
            voters=[one["decided_by"] for one in found.decisions],
        )
    except DecisionRefused as refusal:
        return Eligibility(person, (), refusal)
    return Eligibility(person, accepted.roles, None)

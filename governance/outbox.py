"""Wake-ups for workflows: rows that commit with the change they tell of.

A wake-up is a hint to look again, never evidence. Its row is done when the database says that it
was used (a resume was recorded, the execution ended), not when Temporal answered.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from governance.db.queries import load
from governance.db.statements import Statement, fetch_all, fetch_one

_Q = load("outbox")

DENIED_TOPIC: Final = "denied"
"""The topic that tells a run to end because its execution was denied."""


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One wake-up to send now: `tries` counts this one."""

    id: int
    execution: uuid.UUID
    workflow_id: str
    topic: str
    tries: int


def enqueue(realm: str, execution: uuid.UUID, topic: str) -> tuple[Statement, Statement]:
    """The statements that add a wake-up and tell the dispatchers that listen."""
    row = {"realm": realm, "execution": execution, "topic": topic}
    return (_Q["enqueue"], row), (_Q["notify"], {"realm": realm})


def finish_topic(execution: uuid.UUID, topic: str) -> Statement:
    """The statement that marks wake-ups of this topic as used."""
    return _Q["finish_topic"], {"execution": execution, "topic": topic}


def finish_execution(execution: uuid.UUID) -> Statement:
    """The statement that marks all wake-ups of an ended execution as used."""
    return _Q["finish_execution"], {"execution": execution}


def listen() -> Statement:
    """The statement by which a session of its own is told of new wake-ups."""
    return _Q["listen"], {}


async def lease_due(conn: AsyncConnection[Any], realm: str, limit: int) -> list[WakeUp]:
    """Take the due wake-ups, the first of each execution only, and set when to try again.

    Commit before calling Temporal: no transaction stays open during a call.
    """
    rows = await fetch_all(conn, _Q["lease_due"], {"realm": realm, "limit": limit})
    return [WakeUp(r["id"], r["execution"], r["workflow_id"], r["topic"], r["tries"]) for r in rows]


async def seconds_until_due(conn: AsyncConnection[Any], realm: str) -> float | None:
    """Seconds until the next wake-up is due (may be negative); None if none waits."""
    row = await fetch_one(conn, _Q["next_due"], {"realm": realm})
    return None if row is None else row["seconds"]

"""Wake-ups for workflows: rows that commit with the change they tell of.

A wake-up is a hint to look again, never evidence. Its row is done when the database says that it
was used (the step began, the hold ended, the execution ended), not when Temporal answered.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from governance.db.queries import load
from governance.db.statements import Statement, fetch_all, fetch_one

_Q = load("outbox")


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One wake-up to send now.

    Attributes:
        row: Its row in the outbox.
        execution: Whose run is to be woken.
        workflow_id: Its workflow.
        topic: An approval's id, or `denied`.
        hint: Where that approval stands; empty for a denial.
        tries: How often it was sent, this time counted.
    """

    row: int
    execution: uuid.UUID
    workflow_id: str
    topic: str
    hint: str
    tries: int


DENIED_TOPIC: Final = "denied"
"""The topic that tells a run to end because its execution was denied."""


def enqueue(realm: str, execution: uuid.UUID, topic: str) -> Statement:
    """The statement that adds a wake-up and tells the dispatchers that listen."""
    return _Q["enqueue"], {"realm": realm, "execution": execution, "topic": topic}


def finish_topic(execution: uuid.UUID, topic: str) -> Statement:
    """The statement that marks wake-ups of this topic as used."""
    return _Q["finish_topic"], {"execution": execution, "topic": topic}


def finish_execution(execution: uuid.UUID) -> Statement:
    """The statement that marks all wake-ups of an ended execution as used."""
    return _Q["finish_execution"], {"execution": execution}


def listen() -> Statement:
    """The statement by which a session of its own is told of wake-ups, see `told`."""
    return _Q["listen"], {}


async def try_to_lead(conn: AsyncConnection[Any], realm: str) -> bool:
    """Whether this session is the one that sends what it is told of at once. Kept until it ends."""
    row = await fetch_one(conn, _Q["try_to_lead"], {"realm": realm})
    return bool(row and row["leads"])


def told(payload: str, realm: str) -> WakeUp | bool:
    """What a notification says.

    Returns:
        A wake-up that is to be sent for the first time; True if others may be due; False if it is
        about another realm.
    """
    said = json.loads(payload)
    if said["realm"] != realm:
        return False
    if "row" not in said:
        return True
    execution = uuid.UUID(said["execution"])
    return WakeUp(said["row"], execution, said["workflow_id"], said["topic"], said["hint"], tries=1)


async def find_due(conn: AsyncConnection[Any], realm: str, limit: int) -> Sequence[int]:
    """The rows that are due, the first of each execution only."""
    rows = await fetch_all(conn, _Q["find_due"], {"realm": realm, "limit": limit})
    return [row["id"] for row in rows]


async def lease(conn: AsyncConnection[Any], realm: str, row: int) -> WakeUp | None:
    """Take a row to send it once this is committed: no transaction stays open during a call.

    One statement; losing it in a crash costs a second signal. The row stays open until the workflow
    has used it, so a lost signal is sent again.

    Returns:
        What to send; None if it is not due, or another sends it.
    """
    found = await fetch_one(conn, _Q["lease"], {"id": row, "realm": realm})
    if found is None:
        return None
    return WakeUp(
        row,
        found["execution"],
        found["workflow_id"],
        found["topic"],
        found["hint"],
        found["tries"],
    )

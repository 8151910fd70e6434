"""Turns: what the actor is told outside any open connection. Fixed texts, never a model's."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection

from governance.db.queries import load
from governance.db.statements import Statement, fetch_all

_Q = load("turns")

TEXTS: Final[Mapping[str, str]] = {
    "resume_denied": (
        "Your request was stopped. It was waiting for a decision, and when it was to go on you no "
        "longer held a role that may carry it out. Nothing that needed the decision was run."
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: `seq` counts from 1 within its execution."""

    seq: int
    kind: str
    recipient: str
    body: str
    at: datetime


def add(realm: str, execution: uuid.UUID, kind: str, recipient: str) -> Statement:
    """The statement that writes the next turn of an execution, whose row is locked.

    Raises:
        KeyError: If there is no text of that kind.
    """
    return _Q["insert_turn"], {
        "realm": realm,
        "execution": execution,
        "kind": kind,
        "recipient": recipient,
        "body": TEXTS[kind],
    }


async def list_turns(conn: AsyncConnection[Any], execution: uuid.UUID) -> list[Turn]:
    """All turns of an execution, in order."""
    rows = await fetch_all(conn, _Q["list_turns"], {"execution": execution})
    return [Turn(r["seq"], r["kind"], r["recipient"], r["body"], r["at"]) for r in rows]

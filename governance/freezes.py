"""Freezes: an administrator stops a flow, or a whole realm; somebody else lets it go on.

Once a freeze is committed, no governed step of the flow begins. Recorded outcomes are still
injected, people still decide, and the workflows wait.

A begin sends `lock_statement` before all its other locks and `read_statement` in a later one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection

from governance import ids
from governance.chain.log import append_statement, find_stream
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_all, fetch_one, queued
from governance.errors import AdministrationRefused, FreezeUnknown
from governance.rules.admission import FreezeStanding
from governance.rules.duties import same_person

_Q = load("freezes")

REALM_STREAM: Final = "freeze"
"""Name of the stream of kind `log` that a realm's own freezes are on; a flow's are on the stream of
its contracts."""


async def freeze(
    conn: AsyncConnection[Any],
    realm: str,
    flow: str | None,
    by: str,
    reason: str,
    *,
    submitted_by: str = "",
) -> bool:
    """Let no step begin any more. It waits for those that are beginning.

    Args:
        conn: A transaction; once it is committed, nothing begins.
        realm: The trust domain.
        flow: Which workflow type; None for every flow of the realm.
        by: Who stops it.
        reason: Why; kept on the record.
        submitted_by: Whom the door itself saw.

    Returns:
        False if it is frozen already.

    Raises:
        AdministrationRefused: There is no reason.
    """
    if not reason.strip():
        raise AdministrationRefused("A freeze needs a reason.", hint="Say why it is set.")
    stream = await _locked_stream(conn, realm, flow)
    if await find_freeze(conn, realm, flow) is not None:
        return False
    new = ids.new_id()
    payload = _payload(new, realm, flow, by, reason, submitted_by)
    row = {
        "id": new,
        "realm": realm,
        "flow": flow,
        "by": by,
        "reason": reason,
        "stream": stream,
    }
    await queued(conn, append_statement(stream, "freeze.set", payload), (_Q["insert_freeze"], row))
    return True


async def unfreeze(
    conn: AsyncConnection[Any],
    realm: str,
    flow: str | None,
    by: str,
    reason: str = "",
    *,
    submitted_by: str = "",
) -> None:
    """Let steps begin again. A freeze of the realm and one of a flow are lifted each by itself.

    Raises:
        FreezeUnknown: It is not frozen.
        AdministrationRefused: `by` set the freeze.
    """
    stream = await _locked_stream(conn, realm, flow)
    standing = await find_freeze(conn, realm, flow)
    if standing is None:
        raise FreezeUnknown(
            f"{_named(realm, flow)} is not frozen.",
            hint="`governance frozen` shows what is.",
        )
    if same_person(standing["set_by"], by):
        raise AdministrationRefused(
            f"{by} set this freeze and cannot lift it too.", hint="Somebody else must lift it."
        )
    payload = _payload(standing["id"], realm, flow, by, reason, submitted_by)
    await queued(
        conn,
        (_Q["lift_freeze"], {"id": standing["id"], "by": by}),
        append_statement(stream, "freeze.lifted", payload, [standing["leaf"]]),
    )


async def find_freeze(conn: AsyncConnection[Any], realm: str, flow: str | None) -> Row | None:
    """The freeze of just this flow, or of just the realm, that stands."""
    return await fetch_one(conn, _Q["fetch_freeze"], {"realm": realm, "flow": flow})


async def list_freezes(conn: AsyncConnection[Any], realm: str) -> list[Row]:
    """What is frozen: id, flow (None: the whole realm), set_at, set_by, reason; oldest first."""
    return await fetch_all(conn, _Q["list_freezes"], {"realm": realm})


def lock_statement(realm: str, flow: str) -> Statement:
    """The shared locks that make a freeze of this flow or realm wait until commit."""
    return _Q["lock_shared"], {"realm": realm, "flow": flow}


def read_statement(realm: str, flow: str, key: bytes) -> Statement:
    """The read behind `to_standing`, for the step with this key, whose row is locked."""
    return _Q["fetch_for_step"], {"realm": realm, "flow": flow, "key": key}


def to_standing(rows: list[Row]) -> FreezeStanding | None:
    """What the rows of `read_statement` say."""
    if not rows:
        return None
    row = rows[0]
    return FreezeStanding(row["id"], row["flow"], row["leaf"], row["seconds"], row["told"])


def told_statement(standing: FreezeStanding, key: bytes) -> Statement:
    """The statement that notes that a step's refusal is on record."""
    return _Q["insert_told"], {"freeze": standing.id, "key": key}


async def _locked_stream(conn: AsyncConnection[Any], realm: str, flow: str | None) -> uuid.UUID:
    if flow is None:
        await queued(conn, (_Q["lock_realm"], {"realm": realm}))
        return await find_stream(conn, "log", realm, REALM_STREAM)
    await queued(conn, (_Q["lock_flow"], {"realm": realm, "flow": flow}))
    return await find_stream(conn, "contract", realm, flow)


def _payload(
    freeze: uuid.UUID, realm: str, flow: str | None, by: str, reason: str, submitted_by: str
) -> Mapping[str, Any]:
    return {
        "freeze": freeze.hex,
        "realm": realm,
        "flow": flow or "",
        "by": by,
        "reason": reason,
        "submitted_by": submitted_by,
    }


def _named(realm: str, flow: str | None) -> str:
    return f'Flow "{flow}"' if flow else f'Realm "{realm}" as a whole'

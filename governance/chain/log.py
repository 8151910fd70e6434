"""Appending entries, in the caller's transaction."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from governance import canonical
from governance.db.queries import load
from governance.db.statements import Statement, fetch_one, pipelined

_Q = load("chain")


def append_statement(
    stream: uuid.UUID, kind: str, payload: Mapping[str, Any], observed: Sequence[bytes] = ()
) -> Statement:
    """The statement that appends one entry; its row has the `leaf`, 32 bytes.

    Args:
        stream: The chain it goes to; an execution's id is the id of its stream.
        kind: Entry type, one of `governance.names.ENTRY_WRITERS`.
        payload: What happened, without floats; a random nonce is added so that the digest in the
            permanent entry tells nothing about the payload.
        observed: Leaves this entry rests on, read under a lock that is still held.

    Raises:
        CanonicalError: The payload is outside the canonical profile.
    """
    body = canonical.dumps({**payload, "nonce": secrets.token_hex(16)})
    params = {"stream": stream, "type": kind, "payload": body, "observed": list(observed)}
    return _Q["append"], params


async def append(
    conn: AsyncConnection[Any],
    stream: uuid.UUID,
    kind: str,
    payload: Mapping[str, Any],
    observed: Sequence[bytes] = (),
) -> bytes:
    """Append one entry and return its leaf (32 bytes). See `append_statement`."""
    [[row]] = await pipelined(conn, append_statement(stream, kind, payload, observed))
    leaf: bytes = row["leaf"]
    return leaf


async def find_stream(conn: AsyncConnection[Any], kind: str, realm: str, name: str) -> uuid.UUID:
    """The stream of an actor, a contract or the log, made on first use."""
    row = await fetch_one(conn, _Q["stream_of"], {"kind": kind, "realm": realm, "name": name})
    assert row is not None
    stream: uuid.UUID = row["id"]
    return stream

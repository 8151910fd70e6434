"""Several statements in one round trip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import dict_row

Row = dict[str, Any]
Statement = tuple[LiteralString, Mapping[str, Any]]


async def pipelined(conn: AsyncConnection[Any], *statements: Statement) -> list[list[Row]]:
    """Send statements in one round trip and return the rows of each, in order.

    Each statement has a snapshot of its own (READ COMMITTED), so one that takes a lock followed by
    one that reads what the lock protects reads what the last holder of the lock committed.

    Raises:
        psycopg.Error: From the first statement that fails; the transaction is then aborted.
    """
    cursors = []
    async with conn.pipeline():
        for query, params in statements:
            cursor = conn.cursor(row_factory=dict_row)
            await cursor.execute(query, params)
            cursors.append(cursor)
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def fetch_one(
    conn: AsyncConnection[Any], query: LiteralString, params: Mapping[str, Any]
) -> Row | None:
    """Run one statement and return its first row, or None."""
    cursor = conn.cursor(row_factory=dict_row)
    await cursor.execute(query, params)
    return await cursor.fetchone() if cursor.description else None


async def fetch_all(
    conn: AsyncConnection[Any], query: LiteralString, params: Mapping[str, Any]
) -> list[Row]:
    """Run one statement and return its rows."""
    cursor = conn.cursor(row_factory=dict_row)
    await cursor.execute(query, params)
    return await cursor.fetchall() if cursor.description else []

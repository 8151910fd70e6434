"""Several statements in one round trip."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline
from psycopg.rows import dict_row

Row = dict[str, Any]
Statement = tuple[LiteralString, Mapping[str, Any]]


# The pipelines of transactions that `Database.run` opened: BEGIN waits in them for company.
_OPEN: WeakKeyDictionary[AsyncConnection[Any], AsyncPipeline] = WeakKeyDictionary()


@asynccontextmanager
async def one_pipeline(conn: AsyncConnection[Any]) -> AsyncGenerator[None]:
    """Send nothing before it is needed: a whole transaction in as few round trips as it has waits.

    Inside, a statement's error is raised when its result is waited for, at the latest at the end.
    """
    async with conn.pipeline() as pipeline:
        _OPEN[conn] = pipeline
        try:
            yield
        finally:
            del _OPEN[conn]


async def pipelined(conn: AsyncConnection[Any], *statements: Statement) -> list[list[Row]]:
    """Send statements in one round trip and return the rows of each, in order.

    Each statement has a snapshot of its own (READ COMMITTED), so one that takes a lock followed by
    one that reads what the lock protects reads what the last holder of the lock committed.

    Raises:
        psycopg.Error: From the first statement that fails; the transaction is then aborted.
    """
    pipeline = _OPEN.get(conn)
    if pipeline is None:
        async with conn.pipeline():
            cursors = await _send(conn, statements)
    else:
        cursors = await _send(conn, statements)
        await pipeline.sync()
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def queued(conn: AsyncConnection[Any], *statements: Statement) -> None:
    """Send the last statements of a transaction, whose rows nobody needs, together with COMMIT.

    Outside of `one_pipeline` they are sent at once. An error is raised at the latest by COMMIT.
    """
    if _OPEN.get(conn) is None:
        await pipelined(conn, *statements)
    else:
        await _send(conn, statements)


async def _send(
    conn: AsyncConnection[Any], statements: Sequence[Statement]
) -> list[AsyncCursor[Row]]:
    cursors = [conn.cursor(row_factory=dict_row) for _ in statements]
    for cursor, (query, params) in zip(cursors, statements, strict=True):
        await cursor.execute(query, params)
    return cursors


async def fetch_one(
    conn: AsyncConnection[Any], query: LiteralString, params: Mapping[str, Any]
) -> Row | None:
    """Run one statement and return its first row, or None."""
    [rows] = await pipelined(conn, (query, params))
    return rows[0] if rows else None


async def fetch_all(
    conn: AsyncConnection[Any], query: LiteralString, params: Mapping[str, Any]
) -> list[Row]:
    """Run one statement and return its rows."""
    [rows] = await pipelined(conn, (query, params))
    return rows

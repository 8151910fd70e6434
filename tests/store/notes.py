"""A table that is no part of the product, for tests of the database layer alone."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql

from governance.db import Connection, Database

TABLE = sql.SQL("CREATE TABLE note (key text PRIMARY KEY)")


async def write(conn: Connection, key: str) -> None:
    await conn.execute("INSERT INTO note VALUES (%s) ON CONFLICT DO NOTHING", [key])


async def interrupted(db: Database, interrupt: Callable[[], None]) -> None:
    """A transaction with something in the middle that it should not survive."""
    async with db.transaction() as conn:
        await write(conn, "lost")
        interrupt()
        await write(conn, "lost too")


def notes_in(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        return [key for (key,) in conn.execute("SELECT key FROM note ORDER BY key")]


async def value(conn: Connection, setting: str) -> str:
    cursor = await conn.execute("SELECT current_setting(%s)", [setting])
    row = await cursor.fetchone()
    assert row is not None
    return str(row[0])

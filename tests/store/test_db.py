"""Transactions and their settings, on a real Postgres."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from psycopg import sql

from governance.db import Connection, Database
from governance.db.queries import load, topics
from governance.errors import (
    ConfigurationError,
    ConnectionLost,
    DatabaseBusy,
    GovernanceError,
)
from tests import servers
from tests.store.notes import TABLE, notes_in, value, write


@pytest.fixture(autouse=True)
def notes(dsn: str) -> None:
    """The table of notes in the test's database."""
    servers.administer(dsn, TABLE)


# ------------------------------------------------------------------------ statements


def test_every_named_statement_is_one_that_this_schema_understands(dsn: str) -> None:
    failures: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as conn:
        for topic in topics():
            for name, statement in load(topic).items():
                places: dict[str, str] = {}

                def numbered(match: re.Match[str], places: dict[str, str] = places) -> str:
                    return places.setdefault(match[1], f"${len(places) + 1}")

                text = re.sub(r"%\((\w+)\)s", numbered, statement).replace("%%", "%")
                result = conn.pgconn.prepare(b"", text.encode())
                if result.error_message:
                    failures.append(f"{topic}.{name}: {result.error_message.decode()}")
    assert failures == []


# ------------------------------------------------------------------------ one transaction


async def test_a_block_that_ends_is_committed_and_one_that_raises_is_not(
    db: Database, dsn: str
) -> None:
    async with db.transaction() as conn:
        await write(conn, "kept")

    async def raises() -> None:
        async with db.transaction() as conn:
            await write(conn, "dropped")
            raise LookupError

    with pytest.raises(LookupError):
        await raises()
    assert notes_in(dsn) == ["kept"]


async def test_settings_hold_whatever_the_server_says_and_end_with_the_transaction(
    dsn: str,
) -> None:
    name = sql.Identifier(servers.dbname(dsn))
    alter = sql.SQL("ALTER DATABASE {} SET {} = {}")
    for setting, wrong in {
        "synchronous_commit": "off",
        "default_transaction_isolation": "serializable",
        "lock_timeout": "0",
    }.items():
        servers.administer(dsn, alter.format(name, sql.Identifier(setting), sql.Literal(wrong)))
    async with Database(dsn, max_size=1) as db:
        async with db.transaction() as conn:
            assert await value(conn, "transaction_isolation") == "read committed"
            assert await value(conn, "synchronous_commit") == "on"
            assert await value(conn, "lock_timeout") == "2s"
            assert await value(conn, "statement_timeout") == "5s"
            assert await value(conn, "idle_in_transaction_session_timeout") == "1500ms"
            if conn.info.server_version >= 170000:
                assert await value(conn, "transaction_timeout") == "5s"
        assert await value(conn, "synchronous_commit") == "off"
        assert await value(conn, "lock_timeout") == "0"
        async with db.snapshot() as conn:
            assert await value(conn, "transaction_isolation") == "repeatable read"
            assert await value(conn, "synchronous_commit") == "on"
        async with db.reading() as conn:
            assert await value(conn, "transaction_isolation") == "read committed"
            assert await value(conn, "transaction_read_only") == "on"


async def test_beginning_a_snapshot_does_not_take_it(db: Database, dsn: str) -> None:
    async with db.snapshot() as conn:
        with psycopg.connect(dsn) as other:
            other.execute("INSERT INTO note VALUES ('before the first statement')")
        cursor = await conn.execute("SELECT count(*) FROM note")
        assert await cursor.fetchone() == (1,)


async def test_a_swallowed_failure_is_not_taken_for_a_commit(db: Database, dsn: str) -> None:
    async def swallows() -> None:
        async with db.transaction() as conn:
            await write(conn, "lost")
            with suppress(psycopg.errors.UndefinedTable):
                await conn.execute("SELECT * FROM nowhere")

    with pytest.raises(GovernanceError, match="INERROR"):
        await swallows()
    with pytest.raises(GovernanceError, match="IDLE"):
        async with db.transaction() as conn:
            await conn.rollback()
    async with db.transaction() as conn:
        await write(conn, "next")
    assert notes_in(dsn) == ["next"]


async def test_a_cancelled_transaction_leaves_nothing(db: Database, dsn: str) -> None:
    asleep = asyncio.Event()

    async def slow() -> None:
        async with db.transaction() as conn:
            conn.add_notice_handler(lambda _: asleep.set())
            await write(conn, "never")
            await conn.execute("DO $$ BEGIN RAISE NOTICE 'asleep'; PERFORM pg_sleep(60); END $$")

    task = asyncio.create_task(slow())
    await asleep.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with db.transaction() as conn:
        await write(conn, "next")
    assert notes_in(dsn) == ["next"]


async def test_errors_that_are_not_about_the_connection_stay_what_they_are(db: Database) -> None:
    await db.run(lambda conn: write(conn, "once"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        async with db.transaction() as conn:
            await conn.execute("INSERT INTO note VALUES ('once')")


async def test_a_login_without_the_right_is_told_so(role_dsn: Callable[[str], str]) -> None:
    async with Database(role_dsn("reader")) as db:
        with pytest.raises(ConfigurationError, match="permission denied for table outbox"):
            async with db.transaction() as conn:
                await conn.execute("DELETE FROM governance.outbox")


# ------------------------------------------------------------------------ waiting


async def test_who_waits_for_a_lock_gives_up(db: Database, dsn: str) -> None:
    with psycopg.connect(dsn) as other:
        other.execute("SELECT pg_advisory_xact_lock(1)")
        began = time.monotonic()
        with pytest.raises(DatabaseBusy, match="lock timeout"):
            async with db.transaction() as conn:
                await conn.execute("SELECT pg_advisory_xact_lock(1)")
        assert 1.9 < time.monotonic() - began < 4


async def test_who_stands_still_in_a_transaction_loses_it_before_the_others_give_up(
    db: Database, dsn: str
) -> None:
    held, over = asyncio.Event(), asyncio.Event()

    async def stand_still() -> None:
        async with db.transaction() as conn:
            await conn.execute("SELECT pg_advisory_xact_lock(1)")
            await write(conn, "lost")
            held.set()
            await over.wait()
            await write(conn, "too late")

    task = asyncio.create_task(stand_still())
    await held.wait()
    async with db.transaction() as conn:
        await conn.execute("SELECT pg_advisory_xact_lock(1)")
        await write(conn, "next")
    over.set()
    with pytest.raises(ConnectionLost, match="nothing was recorded"):
        await task
    assert notes_in(dsn) == ["next"]


async def test_when_all_connections_are_in_use_that_is_said(dsn: str) -> None:
    async with Database(dsn, max_size=1, wait=0.2) as db, db.transaction():
        with pytest.raises(DatabaseBusy, match="all 1 are in use"):
            async with db.transaction():
                pass


async def test_a_deadlock_is_run_again(db: Database, dsn: str) -> None:
    both = asyncio.Barrier(2)
    runs: list[str] = []

    async def work(first: int, second: int, key: str, conn: Connection) -> None:
        runs.append(key)
        await (await conn.execute("SELECT pg_advisory_xact_lock(%s)", [first])).fetchone()
        if len(runs) <= 2:
            await both.wait()
        await conn.execute("SELECT pg_advisory_xact_lock(%s)", [second])
        await write(conn, key)

    await asyncio.gather(
        db.run(lambda conn: work(1, 2, "a", conn)), db.run(lambda conn: work(2, 1, "b", conn))
    )
    assert len(runs) == 3
    assert notes_in(dsn) == ["a", "b"]

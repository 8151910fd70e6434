"""Lost connections, lost answers and servers that are not there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from governance.db import Connection, Database
from governance.db import transaction as kinds
from governance.errors import (
    ConfigurationError,
    ConnectionLost,
    DatabaseUnavailable,
)
from governance.testing import EmbeddedPostgres
from tests import servers
from tests.proxy import Loss, Proxy
from tests.store.notes import TABLE, interrupted, notes_in, value, write


@pytest.fixture(autouse=True)
def notes(dsn: str) -> None:
    """The table of notes in the test's database."""
    servers.administer(dsn, TABLE)


# ------------------------------------------------------------------------ losing the connection


async def test_a_lost_answer_to_commit_is_said_to_be_unknown(proxy: Proxy, dsn: str) -> None:
    async with Database(proxy.dsn) as db:
        proxy.lose(Loss.ANSWER)
        with pytest.raises(ConnectionLost, match="not known whether it was committed"):
            async with db.transaction() as conn:
                await write(conn, "committed")
        assert notes_in(dsn) == ["committed"]


@pytest.mark.parametrize("what", list(Loss))
async def test_after_a_lost_commit_the_same_work_is_run_again(
    proxy: Proxy, dsn: str, what: Loss
) -> None:
    seen: list[bool] = []

    async def work(conn: Connection) -> str:
        cursor = await conn.execute("SELECT FROM note WHERE key = 'attempt'")
        seen.append(await cursor.fetchone() is not None)
        await write(conn, "attempt")
        return "done"

    async with Database(proxy.dsn) as db:
        proxy.lose(what, times=2)
        assert await db.run(work) == "done"
    assert proxy.lost == 2
    assert seen == ([False, True, True] if what is Loss.ANSWER else [False, False, False])
    assert notes_in(dsn) == ["attempt"]


async def test_tries_end(proxy: Proxy, dsn: str) -> None:
    async with Database(proxy.dsn) as db:
        proxy.lose(Loss.QUESTION, times=2)
        with pytest.raises(ConnectionLost):
            await db.run(lambda conn: write(conn, "never"), tries=2)
    assert notes_in(dsn) == []


async def test_a_commit_in_the_extended_protocol_is_lost_too(proxy: Proxy, dsn: str) -> None:
    proxy.lose(Loss.ANSWER)
    conn = await psycopg.AsyncConnection.connect(proxy.dsn)

    async def piped() -> None:
        async with conn, conn.pipeline():
            await conn.execute("INSERT INTO note VALUES (%s)", ["piped"])
            await conn.commit()

    with pytest.raises(psycopg.OperationalError):
        await piped()
    assert notes_in(dsn) == ["piped"]


async def test_a_connection_that_breaks_in_the_middle(proxy: Proxy, dsn: str) -> None:
    async with Database(proxy.dsn) as db:
        with pytest.raises(ConnectionLost, match="nothing was recorded"):
            await interrupted(db, proxy.cut)
    assert notes_in(dsn) == []


async def test_connections_that_died_idle_are_not_noticed(proxy: Proxy, dsn: str) -> None:
    async with Database(proxy.dsn, min_size=3, max_size=3) as db:
        await asyncio.gather(*(db.run(lambda conn: write(conn, "x")) for _ in range(3)))
        proxy.cut()
        async with db.transaction() as conn:
            await write(conn, "y")
    assert notes_in(dsn) == ["x", "y"]


async def test_a_server_that_goes_away_is_reported_and_found_again(proxy: Proxy) -> None:
    async with Database(proxy.dsn, wait=0.3) as db:
        await db.run(lambda conn: write(conn, "before"))
        proxy.refuse()
        with pytest.raises(DatabaseUnavailable, match=r"No connection to database '\w+' as"):
            await db.run(lambda conn: write(conn, "meanwhile"))
        proxy.refuse(False)
        async with asyncio.timeout(30):
            while True:
                try:
                    await db.run(lambda conn: write(conn, "after"))
                    break
                except DatabaseUnavailable:
                    continue


async def test_a_silent_server_is_given_up(
    proxy: Proxy, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("governance.db.pool.WRITE", replace(kinds.WRITE, patience=0.3))
    async with Database(proxy.dsn) as db:
        with pytest.raises(ConnectionLost):
            await interrupted(db, proxy.freeze)
        proxy.thaw()
        async with db.transaction() as conn:
            await write(conn, "next")
    assert notes_in(dsn) == ["next"]


# ------------------------------------------------------------------------ opening and closing


def test_a_password_is_never_shown() -> None:
    db = Database("host=db.example user=u password=hunter2 dbname=d port=5433")
    assert repr(db) == "<Database database 'd' as 'u' on db.example:5433>"
    assert "hunter2" not in repr(vars(db)["_target"])
    with pytest.raises(ConfigurationError) as refused:
        Database("postgresql://u:hunter2@h:port:port/d x")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


async def test_an_unreachable_database_is_named_at_once() -> None:
    began = time.monotonic()
    async with Database("postgresql://u:hunter2@127.0.0.1:1/d") as db:
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match=r"'d' as 'u' on 127\.0\.0\.1:1") as e:
                await db.run(lambda conn: write(conn, "x"))
            assert "hunter2" not in str(e.value)
    assert time.monotonic() - began < 2


async def test_nothing_is_opened_before_the_first_use_and_nothing_left_after_close(
    proxy: Proxy,
) -> None:
    db = Database(proxy.dsn)
    await db.close()
    assert proxy.connections == 0
    async with Database(proxy.dsn) as db, db.reading():
        assert proxy.connections >= 1
    with pytest.raises(DatabaseUnavailable, match="was closed"):
        async with db.reading():
            pass


# ------------------------------------------------------------------------ a server of one's own


@pytest.fixture(scope="module")
def own_server() -> Generator[EmbeddedPostgres]:
    """A server that a test may kill, with passwords asked of everybody but its superuser."""
    server = EmbeddedPostgres()
    try:
        access = "local all postgres trust\nlocal all all scram-sha-256\n"
        (server.folder / "pg_hba.conf").write_text(access)
        server.restart()
        yield server
    finally:
        server.close()


@pytest.fixture
async def own_dsn(own_server: EmbeddedPostgres) -> AsyncGenerator[str]:
    with servers.database(own_server) as dsn:
        await servers.migrated(dsn)
        servers.administer(dsn, TABLE)
        yield dsn


async def test_a_killed_server_has_what_it_acknowledged(
    own_server: EmbeddedPostgres, own_dsn: str
) -> None:
    async with Database(own_dsn) as db:
        async with db.transaction() as conn:
            await write(conn, "acknowledged")
        with pytest.raises(ConnectionLost):
            await interrupted(db, own_server.kill)
        own_server.restart()
        await db.run(lambda conn: write(conn, "after"))
    assert notes_in(own_dsn) == ["acknowledged", "after"]


async def test_a_password_is_asked_for_each_connection(
    own_server: EmbeddedPostgres, own_dsn: str
) -> None:
    given = ["wrong", servers.PASSWORD, servers.PASSWORD, "one too many"]

    async def slow_secret() -> str:
        await asyncio.sleep(0)
        return given.pop(0)

    user = servers.login(own_server, "worker")["user"]
    async with Database(make_conninfo(own_dsn, user=user), password=slow_secret) as db:
        with pytest.raises(DatabaseUnavailable, match="password authentication failed"):
            async with db.reading():
                pass
        async with db.reading():
            pass
    assert given == ["one too many"], "one was refused, one found the schema, one is in the pool"
    db = Database(make_conninfo(own_dsn, user=user), password=lambda: servers.PASSWORD)
    async with db, db.reading():
        pass


async def test_a_server_in_recovery_is_refused_for_writing(
    own_server: EmbeddedPostgres, own_dsn: str
) -> None:
    signal = own_server.folder / "standby.signal"
    signal.touch()
    own_server.restart()
    try:
        async with Database(own_dsn) as db:
            with pytest.raises(DatabaseUnavailable, match="standby in recovery"):
                async with db.transaction():
                    pass
            async with db.reading() as conn:
                assert await value(conn, "in_hot_standby") == "on"
    finally:
        signal.unlink()
        own_server.restart()

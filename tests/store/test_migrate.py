"""Migrations on a real Postgres."""

from __future__ import annotations

import asyncio
import re
import secrets

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from governance.db import Database, versions
from governance.db.connection import Target
from governance.db.migrate import ROLES, checked_origin, migrate, pending, render_sql
from governance.db.queries import read_sql, sql_folder
from governance.errors import (
    ConfigurationError,
    DatabaseBusy,
    DatabaseUnavailable,
    SchemaMissing,
    SchemaNewer,
    SchemaOutdated,
)
from governance.testing import EmbeddedPostgres, PostgresServer
from tests import servers
from tests.store.catalog import catalog


async def origin_of(dsn: str) -> str:
    async with Database(dsn) as db, db.reading() as conn:
        cursor = await conn.execute("SELECT origin FROM governance.log")
        row = await cursor.fetchone()
    assert row is not None
    return str(row[0])


async def apply(dsn: str, log_origin: str | None = None) -> list[int]:
    """Migrate; returns the versions that were applied."""
    async with await Target(dsn).connect() as conn:
        return [step.version for step in await migrate(conn, log_origin=log_origin)]


async def test_an_empty_database_is_brought_forward_once(empty_dsn: str) -> None:
    everything = [step.version for step in versions.migrations()]
    assert await apply(empty_dsn, "payments.example/log") == everything
    before = catalog(empty_dsn)
    assert await apply(empty_dsn) == []
    assert await apply(empty_dsn, "payments.example/log") == []
    assert catalog(empty_dsn) == before
    assert await origin_of(empty_dsn) == "payments.example/log"


async def test_a_log_that_nobody_names_gets_a_name(empty_dsn: str) -> None:
    await apply(empty_dsn)
    assert re.fullmatch(r"localhost/governance/[0-9a-f]{8}", await origin_of(empty_dsn))


async def test_a_log_keeps_its_name(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match=r"named 'test\.example/governance', and"):
        await apply(dsn, "other.example/log")
    assert await origin_of(dsn) == servers.LOG_ORIGIN


@pytest.mark.parametrize("origin", ["", "a", "with space/x", "Upper/x", "x\ny/z", "a" * 201, "a+b"])
def test_what_cannot_name_a_log_is_refused(origin: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a log"):
        checked_origin(origin)


def test_the_schema_file_is_what_the_migrations_make(dsn: str, empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as conn:
        for file in ("roles.sql", "schema.sql"):
            conn.execute(read_sql(sql_folder() / file))
        conn.execute("SET LOCAL ROLE governance_owner")
        for file in ("ledger.sql", "grants.sql"):
            conn.execute(read_sql(sql_folder() / file))
    assert catalog(empty_dsn) == catalog(dsn)


async def test_what_a_dba_is_given_does_the_same(dsn: str, empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(render_sql("dba.example/log").encode())
    assert catalog(empty_dsn) == catalog(dsn)
    assert await apply(empty_dsn) == []
    assert await origin_of(empty_dsn) == "dba.example/log"


async def test_of_two_at_once_one_is_told_so(empty_dsn: str) -> None:
    results = await asyncio.gather(*(apply(empty_dsn) for _ in range(4)), return_exceptions=True)
    done = [result for result in results if isinstance(result, list)]
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(done) >= 1
    assert [1 in versions_applied for versions_applied in done].count(True) == 1
    for refusal in refused:
        assert isinstance(refusal, DatabaseBusy)
        assert "Another migration" in str(refusal)


async def test_the_lock_is_given_back(empty_dsn: str) -> None:
    async with await Target(empty_dsn).connect() as conn:
        with pytest.raises(ConfigurationError):
            await migrate(conn, log_origin="not valid")
        await migrate(conn)
        await apply(empty_dsn)


async def test_a_changed_migration_is_named(dsn: str) -> None:
    servers.administer(dsn, sql.SQL("UPDATE governance.migration SET sha256 = repeat('0', 64)"))
    async with await Target(dsn).connect() as conn:
        with pytest.raises(ConfigurationError, match=r"0001_initial\.sql"):
            await pending(conn)
        with pytest.raises(ConfigurationError, match="applied with other contents"):
            await migrate(conn)


async def test_a_newer_schema_is_refused(dsn: str) -> None:
    newer = len(versions.migrations()) + 1
    servers.administer(
        dsn,
        sql.SQL(
            "INSERT INTO governance.migration (version, name, sha256) "
            "VALUES ({}, 'future', repeat('0', 64))"
        ).format(newer),
    )
    async with await Target(dsn).connect() as conn:
        with pytest.raises(SchemaNewer, match=f"schema version {newer}"):
            await migrate(conn)
    async with Database(dsn) as db:
        with pytest.raises(SchemaNewer, match=f"version {newer}.*needs {newer - 1}"):
            async with db.transaction():
                pass


async def test_an_older_or_missing_schema_is_refused_with_what_to_do(
    dsn: str, empty_dsn: str
) -> None:
    servers.administer(dsn, sql.SQL("DELETE FROM governance.migration"))
    async with Database(dsn) as db:
        with pytest.raises(SchemaOutdated, match="governance migrate"):
            async with db.transaction():
                pass
    async with Database(empty_dsn) as db:
        with pytest.raises(SchemaMissing, match="governance migrate"):
            async with db.reading():
                pass


async def test_a_failed_migration_leaves_nothing(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = versions.migrations()[0]
    broken = versions.Migration(2, "broken", "CREATE TABLE governance.half (x int); SELECT 1/0;")
    monkeypatch.setattr("governance.db.migrate.migrations", lambda: (first, broken))
    with pytest.raises(psycopg.errors.DivisionByZero):
        await apply(empty_dsn)
    with psycopg.connect(empty_dsn) as conn:
        assert conn.execute("SELECT to_regclass('governance.half')").fetchone() == (None,)
        assert conn.execute("SELECT max(version) FROM governance.migration").fetchone() == (1,)
    monkeypatch.undo()
    assert await apply(empty_dsn, "after.example/log") == [
        step.version for step in versions.migrations()[1:]
    ]
    assert await origin_of(empty_dsn) == "after.example/log"


async def test_a_database_that_cannot_be_reached() -> None:
    target = Target("postgresql://someone:hunter2@127.0.0.1:1/nowhere")
    with pytest.raises(DatabaseUnavailable, match=r"'nowhere' as 'someone' on 127\.0\.0\.1:1") as e:
        await target.connect()
    assert "hunter2" not in str(e.value)


# -------------------------------------------------------------------- without a superuser


@pytest.fixture
def bare_server(postgres: PostgresServer) -> EmbeddedPostgres:
    """The session's server, if it is ours: roles belong to the whole server."""
    if not isinstance(postgres, EmbeddedPostgres):
        pytest.skip("changes roles of the whole server")
    return postgres


def make_login(dsn: str, options: sql.SQL) -> str:
    """A login with these options that may create a schema in the database; returns its DSN."""
    name = f"governance_test_{secrets.token_hex(4)}"
    user = sql.Identifier(name)
    servers.administer(
        dsn,
        sql.SQL("CREATE ROLE {} LOGIN {}").format(user, options),
        sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
            sql.Identifier(servers.dbname(dsn)), user
        ),
    )
    return make_conninfo(dsn, user=name)


async def test_a_login_without_rights_is_told_what_a_dba_can_run(
    template: str, empty_dsn: str, bare_server: EmbeddedPostgres
) -> None:
    plain = make_login(empty_dsn, sql.SQL("NOCREATEROLE"))
    user = str(conninfo_to_dict(plain)["user"])
    with pytest.raises(ConfigurationError) as refused:
        await apply(plain)
    grant = f'GRANT governance_owner TO "{user}";'
    assert str(refused.value).splitlines()[1:] == [grant], "the roles are there already"
    servers.administer(
        empty_dsn, sql.SQL("GRANT governance_owner TO {}").format(sql.Identifier(user))
    )
    assert await apply(plain) == [step.version for step in versions.migrations()]


@pytest.mark.slow
async def test_roles_are_made_by_whoever_may(bare_server: EmbeddedPostgres) -> None:
    server = EmbeddedPostgres()
    try:
        with servers.database(server) as dsn:
            plain = make_login(dsn, sql.SQL("NOCREATEROLE"))
            with pytest.raises(ConfigurationError) as refused:
                await apply(plain)
            lines = str(refused.value).splitlines()[1:]
            assert lines[:-1] == [f"CREATE ROLE {role} NOLOGIN;" for role in ROLES]
            able = make_login(dsn, sql.SQL("CREATEROLE"))
            assert await apply(able) == [step.version for step in versions.migrations()]
            with psycopg.connect(dsn) as conn:
                owner = conn.execute(
                    "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class "
                    "WHERE relnamespace = 'governance'::regnamespace"
                ).fetchall()
            assert owner == [("governance_owner",)]
    finally:
        server.close()

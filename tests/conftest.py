"""Real servers for the tests: one Postgres and one Temporal a session, one database a test."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TypeAlias

import pytest
from psycopg.conninfo import make_conninfo

from governance.db import Database
from governance.testing import PostgresServer, embedded_postgres
from temporal_integration.testing import DevServer
from tests import servers
from tests.proxy import Proxy, proxied

RoleDsn: TypeAlias = Callable[[str], str]


def pytest_report_header() -> str:
    """Name the servers under test."""
    return servers.versions()


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    """The Postgres server of this session; a test that kills it starts one of its own."""
    with embedded_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres: PostgresServer) -> Generator[str]:
    """Name of a database with the current schema, copied for each test."""
    with servers.database(postgres) as dsn:
        servers.run_apart(servers.migrated(dsn))
        yield servers.dbname(dsn)
    servers.forget_logins(postgres)


@pytest.fixture
def empty_dsn(postgres: PostgresServer) -> Generator[str]:
    """A database with nothing in it, for a superuser."""
    with servers.database(postgres) as dsn:
        yield dsn


@pytest.fixture
def dsn(postgres: PostgresServer, template: str) -> Generator[str]:
    """A migrated database of the test's own, for a superuser, who may play every role."""
    with servers.database(postgres, template) as own:
        yield own


@pytest.fixture
def role_dsn(postgres: PostgresServer, dsn: str) -> RoleDsn:
    """`role_dsn("worker")`: the same database, for a login in that group role alone."""
    return lambda group: make_conninfo(dsn, **servers.login(postgres, group))


@pytest.fixture
async def db(dsn: str) -> AsyncGenerator[Database]:
    """The test's database, opened by its first use."""
    async with Database(dsn) as opened:
        yield opened


@pytest.fixture
async def proxy(dsn: str) -> AsyncGenerator[Proxy]:
    """A proxy in front of the test's database that can lose answers; `proxy.dsn` leads there."""
    async with proxied(dsn) as started:
        yield started


@pytest.fixture(scope="session")
def temporal_server() -> Generator[DevServer]:
    """The Temporal dev server of this session; a test that kills it starts one of its own."""
    server = DevServer(os.environ.get("TEMPORAL_ADDRESS") or None)
    try:
        servers.run_apart(server.start())
        yield server
    finally:
        server.close()


@pytest.fixture
def temporal_address(temporal_server: DevServer) -> str:
    """Where the session's Temporal is."""
    return temporal_server.address

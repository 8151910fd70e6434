"""Where a database is and how to log in, without ever showing the password."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from governance.db.failures import text_of
from governance.errors import ConfigurationError, DatabaseUnavailable

Connection: TypeAlias = psycopg.AsyncConnection[TupleRow]
"""What services take: the caller's connection, inside the caller's transaction."""

PasswordSource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Asked for each new connection, so that short-lived tokens work."""

OLDEST_SERVER: Final = 150000
"""Postgres 15, as `server_version_num`."""

_DEFAULTS: Final = {
    "connect_timeout": "5",
    # Notice within about half a minute that the other end is gone, also on an idle connection.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "fallback_application_name": "governance",
}


class Target:
    """One database and one login.

    Args:
        dsn: A libpq connection string or URI; libpq's environment variables fill what it leaves
            out.
        password: Called for each new connection instead of a password in `dsn`.
        prepare_threshold: After how many executions a statement is prepared on a connection;
            None never prepares, for poolers that do not keep prepared statements.

    Raises:
        ConfigurationError: `dsn` is not a connection string. The message does not repeat it.
    """

    def __init__(
        self,
        dsn: str,
        *,
        password: PasswordSource | None = None,
        prepare_threshold: int | None = 5,
    ) -> None:
        """Read the connection string; nothing is opened."""
        self._parameters: Final = _parse(dsn)
        self._password: Final = password
        self._prepare_threshold: Final = prepare_threshold
        self.label: Final = _label(self._parameters)

    def __repr__(self) -> str:
        """Database, user and host; never a password."""
        return f"<{type(self).__name__} {self.label}>"

    async def parameters(self) -> dict[str, Any]:
        """The arguments of `psycopg.AsyncConnection.connect`, with a fresh password.

        Raises:
            DatabaseUnavailable: The password source failed to give one.
        """
        found: dict[str, Any] = {**_DEFAULTS, **self._parameters}
        if self._password is not None:
            found["password"] = await self._fresh_password(self._password)
        return found | {"autocommit": True, "prepare_threshold": self._prepare_threshold}

    async def connect(self) -> Connection:
        """Open a connection of its own, in autocommit mode, outside any pool.

        Raises:
            DatabaseUnavailable: No connection; the message has the server's reason.
            ConfigurationError: The server is older than Postgres 15.
        """
        parameters = await self.parameters()
        try:
            conn = await psycopg.AsyncConnection.connect(**parameters)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(
                f"No connection to {self.label}: {text_of(error)}",
                hint="Check that the server runs and that host, user and database are right.",
            ) from error
        if conn.info.server_version < OLDEST_SERVER:
            version = conn.info.server_version // 10000
            await conn.close()
            raise ConfigurationError(
                f"{self.label} runs on Postgres {version}.", hint="Use Postgres 15 or newer."
            )
        return conn

    async def _fresh_password(self, source: PasswordSource) -> str:
        given = source()
        return await given if inspect.isawaitable(given) else given


def _parse(dsn: str) -> dict[str, str]:
    """The parameters in a connection string."""
    try:
        found = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq's message quotes parts of the string, which may be the password.
        raise ConfigurationError(
            "The database address is not a connection string.",
            hint="Write it as postgresql://user@host:5432/database or host=… dbname=… user=….",
        ) from None
    return {name: str(value) for name, value in found.items() if value is not None}


def _label(parameters: dict[str, str]) -> str:
    """How messages name the database: database, user, host and port."""

    def known(name: str, variable: str) -> str:
        return parameters.get(name) or os.environ.get(variable, "")

    user = known("user", "PGUSER")
    place = known("host", "PGHOST") or parameters.get("hostaddr") or "the local socket"
    port = known("port", "PGPORT")
    database = known("dbname", "PGDATABASE") or user
    return (
        (f"database {database!r}" if database else "the default database")
        + (f" as {user!r}" if user else "")
        + f" on {place}"
        + (f":{port}" if port else "")
    )

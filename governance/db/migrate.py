"""Bringing a database to the schema of this release: forward only, one file a transaction.

A direct connection is needed: behind a pooler in transaction mode the lock below would be held by
somebody else's session.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from psycopg import errors, sql

from governance.db.connection import Connection
from governance.db.failures import text_of, translated
from governance.db.queries import load, read_sql, sql_folder
from governance.db.versions import Migration, migrations
from governance.errors import ConfigurationError, DatabaseBusy, SchemaNewer

ROLES: Final = tuple(
    f"governance_{group}" for group in ("owner", "worker", "decider", "admin", "sealer", "reader")
)
"""The group roles; login roles are members of them."""

_SQL: Final = load("migration")
_ORIGIN: Final = re.compile(r"[a-z0-9][a-z0-9._/-]{2,199}\Z")


async def pending(conn: Connection) -> tuple[Migration, ...]:
    """The migrations that this database still needs, in order.

    Args:
        conn: In autocommit mode.

    Raises:
        ConfigurationError: An applied migration's file was changed since; the message names it.
        SchemaNewer: The database has migrations that this release does not know.
    """
    known = migrations()
    applied = await _applied(conn)
    for (version, name, checksum), migration in zip(applied, known, strict=False):
        if (version, checksum) != (migration.version, migration.sha256):
            raise ConfigurationError(
                f"Migration {version:04}_{name} was applied with other contents than "
                f"{migration.file} of this release has.",
                hint="Install the release that applied it; an applied migration never changes.",
            )
    if len(applied) > len(known):
        raise SchemaNewer(
            f"The database has schema version {applied[-1][0]}, this release knows {len(known)}.",
            hint="Install the release that migrated it, or a newer one.",
        )
    return known[len(applied) :]


async def migrate(conn: Connection, *, log_origin: str | None = None) -> tuple[Migration, ...]:
    """Apply what is pending, then the grants; safe to repeat.

    Makes the group roles where they are missing, and on the first run names the log.

    Args:
        conn: A direct connection in autocommit mode, see `Database.connect`. Its login must be
            allowed to create roles, or they must be there and it must be a member of
            governance_owner; and it must be allowed to create a schema in this database.
        log_origin: The log's name for ever, see `checked_origin`; made up if not given.

    Returns:
        What was applied.

    Raises:
        ConfigurationError: The login may not do this (the message lists what a DBA can run), a
            migration's file was changed, or the log has another origin already.
        DatabaseBusy: Another migration is running, or a table is in use for too long.
        SchemaNewer: A newer release migrated this database.
    """
    origin = checked_origin(log_origin) if log_origin is not None else None
    label = f"database {conn.info.dbname!r}"
    with translated(label):
        async with _alone(conn, label):
            todo = await pending(conn)
            await _make_roles(conn, label)
            for migration in todo:
                await _apply(conn, migration, label)
            await _finish(conn, origin, label)
            return todo


def render_sql(log_origin: str | None = None) -> str:
    """Everything that `migrate` does to an empty database, for a DBA to read and run with psql.

    Args:
        log_origin: As in `migrate`.

    Raises:
        ConfigurationError: `log_origin` is malformed.
    """
    origin = checked_origin(log_origin or made_up_origin())
    parts = ["BEGIN;", read_sql(sql_folder() / "roles.sql"), "COMMIT;"]
    for migration in migrations():
        record = _filled(
            _SQL["insert_migration"],
            version=migration.version,
            name=migration.name,
            sha256=migration.sha256,
        )
        parts += [f"-- {migration.file}", "BEGIN;", migration.sql, f"{_SQL['as_owner']};"]
        parts += [read_sql(sql_folder() / "ledger.sql"), f"{record};", "COMMIT;"]
    parts += ["BEGIN;", f"{_SQL['as_owner']};", read_sql(sql_folder() / "grants.sql")]
    parts += [f"{_filled(_SQL['insert_log'], origin=origin)};", "COMMIT;"]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def checked_origin(origin: str) -> str:
    """The origin, if it can name a log: the first line of a checkpoint (C2SP tlog-checkpoint).

    Raises:
        ConfigurationError: It cannot.
    """
    if not _ORIGIN.match(origin):
        raise ConfigurationError(
            f"{origin!r} cannot name a log.",
            hint="Use 3 to 200 of a-z, 0-9, dot, dash, underscore and slash, such as "
            "payments.example/governance.",
        )
    return origin


def made_up_origin() -> str:
    """A name for a log that nobody has named."""
    return f"localhost/governance/{secrets.token_hex(4)}"


async def _applied(conn: Connection) -> list[tuple[int, str, str]]:
    """Version, name and checksum of what was applied, in order."""
    cursor = await conn.execute(_SQL["has_ledger"])
    if await cursor.fetchone() != (True,):
        return []
    cursor = await conn.execute(_SQL["fetch_applied"])
    return [(int(version), str(name), str(sha)) for version, name, sha in await cursor.fetchall()]


@asynccontextmanager
async def _alone(conn: Connection, label: str) -> AsyncGenerator[None]:
    """Hold the migration lock of this database, or fail at once."""
    cursor = await conn.execute(_SQL["try_lock"])
    if await cursor.fetchone() != (True,):
        raise DatabaseBusy(
            f"Another migration of {label} is running.", hint="Wait until it ends, then run again."
        )
    try:
        yield
    finally:
        if not conn.closed:
            await conn.execute(_SQL["unlock"])


async def _make_roles(conn: Connection, label: str) -> None:
    """See to the group roles and to this login's right to act as the owner."""
    try:
        await conn.execute(read_sql(sql_folder() / "roles.sql"))
    except errors.InsufficientPrivilege as error:
        cursor = await conn.execute(_SQL["fetch_missing_roles"], {"roles": list(ROLES)})
        missing = [str(role) for (role,) in await cursor.fetchall()]
        needed = [f"CREATE ROLE {role} NOLOGIN;" for role in missing]
        needed.append(_filled_grant(conn))
        raise ConfigurationError(
            f"This login may not create the roles that {label} needs. A DBA can run:\n"
            + "\n".join(needed)
        ) from error


def _filled_grant(conn: Connection) -> str:
    login = sql.Identifier(conn.info.user)
    return sql.SQL("GRANT governance_owner TO {};").format(login).as_string()


async def _apply(conn: Connection, migration: Migration, label: str) -> None:
    """Run one file and record it, in one transaction."""
    values = {
        "version": migration.version,
        "name": migration.name,
        "sha256": migration.sha256,
    }
    try:
        async with conn.transaction():
            await conn.execute(_SQL["lock_timeout"])
            await conn.execute(migration.sql)
            await conn.execute(_SQL["as_owner"])
            await conn.execute(read_sql(sql_folder() / "ledger.sql"))
            await conn.execute(_SQL["insert_migration"], values)
    except (errors.InsufficientPrivilege, errors.DuplicateSchema) as error:
        raise ConfigurationError(
            f"Migration {migration.file} cannot be applied to {label}: {text_of(error)}.",
            hint="The login needs CREATE on the database, and the schema must not be there yet.",
        ) from error


async def _finish(conn: Connection, origin: str | None, label: str) -> None:
    """Apply the grants and name the log, in one transaction."""
    async with conn.transaction():
        await conn.execute(_SQL["lock_timeout"])
        await conn.execute(_SQL["as_owner"])
        await conn.execute(read_sql(sql_folder() / "grants.sql"))
        cursor = await conn.execute(_SQL["fetch_origin"])
        row = await cursor.fetchone()
        if row is None:
            await conn.execute(_SQL["insert_log"], {"origin": origin or made_up_origin()})
        elif origin is not None and row[0] != origin:
            raise ConfigurationError(
                f"The log in {label} is named {row[0]!r}, and a log keeps its name.",
                hint="Leave the origin out, or give the one it has.",
            )


def _filled(statement: str, **values: str | int) -> str:
    """A statement with its parameters written as literals, for a person to run."""
    for name, value in values.items():
        statement = statement.replace(f"%({name})s", sql.Literal(value).as_string())
    return statement

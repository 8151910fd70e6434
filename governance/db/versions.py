"""Which schema this code was written for, and which one a database has."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Final, LiteralString

from governance.db.connection import Connection
from governance.db.failures import translated
from governance.db.queries import load, read_sql, sql_folder
from governance.errors import SchemaMissing, SchemaNewer, SchemaOutdated

_SQL: Final = load("migration")
_FILE: Final = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z][a-z0-9_]*)\.sql\Z")


@dataclass(frozen=True)
class Migration:
    """One step from a schema version to the next.

    Attributes:
        version: Counts from 1 without gaps.
        name: Says what it does.
        sql: What is run, in one transaction.
    """

    version: int
    name: str
    sql: LiteralString = field(repr=False)

    @property
    def file(self) -> str:
        """The file's name in `governance/sql/migrations`."""
        return f"{self.version:04}_{self.name}.sql"

    @property
    def sha256(self) -> str:
        """The checksum of the file, in hex: an applied migration never changes."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration of this release, in order.

    Raises:
        ValueError: The files are not numbered from 1 without gaps.
    """
    found = [
        Migration(int(match["version"]), match["name"], read_sql(file))
        for file in (sql_folder() / "migrations").iterdir()
        if (match := _FILE.match(file.name))
    ]
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations are not 1 to {len(found)}: {[m.file for m in found]}")
    return tuple(found)


async def check_schema(conn: Connection, label: str) -> None:
    """Refuse a database whose schema is not the one this code was written for.

    Args:
        conn: In autocommit mode; two statements are run.
        label: Names the database in messages.

    Raises:
        SchemaMissing: There is no governance schema.
        SchemaOutdated: Migrations of this release are missing.
        SchemaNewer: A newer release migrated it.
    """
    wanted = len(migrations())
    found = await schema_version(conn, label)
    if found is None:
        raise SchemaMissing(
            f"There is no governance schema in {label}.",
            hint="Run `governance migrate`, or check the database's name.",
        )
    versions = f"{label} has schema version {found}, this release needs {wanted}."
    if found < wanted:
        raise SchemaOutdated(versions, hint="Run `governance migrate`.")
    if found > wanted:
        raise SchemaNewer(versions, hint="Install the release that migrated it, or a newer one.")


async def schema_version(conn: Connection, label: str) -> int | None:
    """The last applied migration's number, or None without a governance schema."""
    with translated(label):
        cursor = await conn.execute(_SQL["has_ledger"])
        if await cursor.fetchone() != (True,):
            return None
        cursor = await conn.execute(_SQL["fetch_version"])
        row = await cursor.fetchone()
    return int(row[0]) if row else 0

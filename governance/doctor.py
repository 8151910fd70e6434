"""Is the database set up as it must be? Looks at catalogs and settings; changes nothing.

What is compared with is what a fresh database of this release has. A finding here is no verdict
on the log: that is what verifying is for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from governance.db import expected
from governance.db.expected import Privilege
from governance.db.failures import translated
from governance.db.migrate import ROLES
from governance.db.queries import load
from governance.db.statements import Row, pipelined
from governance.db.versions import migrations, schema_version

_Q = load("doctor")

OWNER: Final = "governance_owner"
CLOCKS_APART: Final = 5.0
"""Seconds that the clocks of client and server may differ."""

_DURABLE: Final = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        problems: What is wrong with it, each in one line; none if all is well.
    """

    name: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not self.problems


async def examine(
    conn: AsyncConnection[Any], label: str, *, clock: Callable[[], float] = time.time
) -> list[Check]:
    """Look at everything.

    Args:
        conn: In autocommit mode and with the login's own settings, see `Database.connect`.
        label: Names the database in errors.
        clock: The client's clock, in seconds since 1970.

    Returns:
        Every check that could be made. Without a schema those of the server alone.

    Raises:
        ConfigurationError: The login may not even look.
        DatabaseUnavailable: The connection is gone.
    """
    version = await schema_version(conn, label)
    with translated(label):
        before = clock()
        [[server], prepared] = await pipelined(
            conn, (_Q["fetch_server"], {}), (_Q["fetch_prepared"], {})
        )
        here = (before + clock()) / 2
        checks = [
            Check("schema version", tuple(_version(version))),
            Check("durability", tuple(_durability(server))),
            Check("primary", ("the server is a standby in recovery",) * server["in_recovery"]),
            Check("prepared transactions", tuple(_prepared(prepared))),
            Check("clocks", tuple(_clocks(here - server["clock"]))),
        ]
        if version is not None:
            checks += await _schema(conn)
    return checks


async def _schema(conn: AsyncConnection[Any]) -> list[Check]:
    roles, tables, triggers, privileges = await pipelined(
        conn,
        (_Q["fetch_roles"], {"roles": list(ROLES)}),
        (_Q["fetch_tables"], {}),
        (_Q["fetch_triggers"], {}),
        (_Q["fetch_privileges"], {}),
    )
    return [
        Check("group roles", tuple(_roles(roles))),
        Check("tables", tuple(_tables(tables))),
        Check("triggers", tuple(_triggers(triggers))),
        Check("grants", tuple(_grants(privileges, [row["name"] for row in tables]))),
    ]


def _version(found: int | None) -> Iterator[str]:
    wanted = len(migrations())
    if found is None:
        yield "there is no governance schema; run `governance migrate`"
    elif found != wanted:
        yield f"the schema has version {found}, this release needs {wanted}"


def _durability(server: Row) -> Iterator[str]:
    for setting, good in _DURABLE.items():
        if server[setting] not in good:
            yield f"{setting} is {server[setting]}; set it to {good[0]}"


def _prepared(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield f"transaction {row['gid']!r} was prepared over an hour ago; commit or roll it back"


def _clocks(apart: float) -> Iterator[str]:
    if abs(apart) > CLOCKS_APART:
        ahead = "ahead of" if apart > 0 else "behind"
        yield f"this machine's clock is {abs(apart):.0f} s {ahead} the server's"


def _roles(rows: Sequence[Row]) -> Iterator[str]:
    found = {row["role"]: row for row in rows}
    for role in ROLES:
        if role not in found:
            yield f"{role} does not exist"
            continue
        if found[role]["login"]:
            yield f"{role} may log in"
        if found[role]["unbounded"]:
            yield f"{role} is a superuser or bypasses row security"


def _tables(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        name = f"governance.{row['name']}"
        if row["owner"] != OWNER:
            yield f"{name} belongs to {row['owner']}"
        if row["row_security"]:
            yield f"{name} has row security, which can hide or refuse rows"
        for rule in row["rules"]:
            yield f"{name} has the rule {rule}, which can swallow rows"


def _triggers(rows: Sequence[Row]) -> Iterator[str]:
    found = {(row["on_table"], row["name"]): row["always"] for row in rows}
    wanted = expected.triggers()
    for table, name in sorted(wanted - set(found)):
        yield f"governance.{table} lacks the trigger {name}"
    for table, name in sorted(set(found) - wanted):
        yield f"governance.{table} has a trigger that is not of this release: {name}"
    for table, name in sorted(wanted & set(found)):
        if not found[table, name]:
            yield f"the trigger {name} of governance.{table} is not ENABLE ALWAYS"


def _grants(rows: Sequence[Row], tables: Sequence[str]) -> Iterator[str]:
    found = {Privilege(r["grantee"], r["privilege"], r["object"], r["field"]) for r in rows}
    wanted = expected.privileges(tables)
    for one in sorted(found - wanted):
        yield f"too much: {one}"
    for one in sorted(wanted - found):
        yield f"missing: {one}"

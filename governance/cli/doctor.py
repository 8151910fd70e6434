"""`governance doctor`: whether the database is set up as it must be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from governance.cli import exits, output
from governance.cli.connecting import named
from governance.cli.options import DatabaseUrl, Json

if TYPE_CHECKING:
    from governance.doctor import Check


def doctor(as_json: Json = False, database_url: DatabaseUrl = None) -> None:
    """See whether the database is set up as it must be.

    Looks at roles, grants, triggers, settings and clocks, and changes nothing.
    """
    checks = asyncio.run(_examine(named(database_url)))
    if as_json:
        output.as_json([{"check": c.name, "ok": c.ok, "problems": c.problems} for c in checks])
    else:
        for check in checks:
            for problem in check.problems:
                output.say(f"PROBLEM  {check.name}: {problem}")
            if check.ok:
                output.say(f"ok       {check.name}")
    if not all(check.ok for check in checks):
        raise typer.Exit(exits.NEGATIVE)


async def _examine(url: str) -> list[Check]:
    from governance.db import Database
    from governance.doctor import examine

    async with Database(url) as database, await database.connect() as conn:
        return await examine(conn, database.label)

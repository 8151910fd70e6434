"""`governance migrate`: bring the database to the schema of this release."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from governance.cli import output
from governance.cli.connecting import named
from governance.cli.options import DatabaseUrl, Json, one_line


def migrate(
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="NAME",
            callback=one_line,
            help="The log's name for ever, as in payments.example/governance; made up if missing.",
        ),
    ] = None,
    sql: Annotated[
        bool,
        typer.Option("--sql", help="Print the SQL for an empty database and connect to none."),
    ] = False,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database to this release.

    Applies what is missing of the schema, then the grants; safe to repeat.
    """
    from governance.db.migrate import render_sql

    if sql:
        output.say(render_sql(log).rstrip("\n"))
        return
    applied, name, version = asyncio.run(_migrate(named(database_url), log))
    if as_json:
        output.as_json({"applied": applied, "version": version, "log": name})
        return
    for file in applied:
        output.say(f"Applied {file}.")
    output.say(f"The schema has version {version}; the log is named {name}.")


async def _migrate(url: str, log: str | None) -> tuple[list[str], str, int]:
    """Applied files, the log's name, the schema's version."""
    from governance.db import Database, load
    from governance.db.migrate import migrate as bring_forward
    from governance.db.versions import migrations

    async with Database(url) as database, await database.connect() as conn:
        applied = await bring_forward(conn, log_origin=log)
        row = await (await conn.execute(load("migration")["fetch_origin"])).fetchone()
    name = str(row[0]) if row else ""
    return [one.file for one in applied], name, len(migrations())

"""`governance roles`: who may do what, and who said so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from governance.cli import output
from governance.cli.connecting import ask
from governance.cli.identity import person, submitted_by
from governance.cli.options import DatabaseUrl, Json, Person, Realm, Reason, one_line
from governance.cli.text import clock

if TYPE_CHECKING:
    from governance.client import GovernanceClient

app = typer.Typer(no_args_is_help=True, help="Who holds which role.")

Actor = Annotated[
    str, typer.Argument(metavar="ACTOR", callback=one_line, help="A person or service.")
]
Role = Annotated[str, typer.Argument(metavar="ROLE", callback=one_line, help="The role's name.")]


@app.command("grant")
def grant(
    actor: Actor,
    role: Role,
    reason: Reason = None,
    new: Annotated[
        bool, typer.Option("--new", help="The role is new: no contract names it yet.")
    ] = False,
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Grant a role; nobody grants one to themselves."""
    by = person(claimed)

    async def work(client: GovernanceClient) -> bool:
        if not new:
            await client.check_role(role)
        return await client.grant_role(actor, role, by, reason or "", submitted_by=submitted_by())

    if ask(database_url, realm, work):
        output.say(f'{actor} holds the role "{role}" now, granted by {by}.')
    else:
        output.say(f'{actor} holds the role "{role}" already; nothing was changed.')


@app.command("revoke")
def revoke(
    actor: Actor,
    role: Role,
    reason: Reason = None,
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Revoke a role: once this returns, no step of that actor begins on it."""
    by = person(claimed)

    async def work(client: GovernanceClient) -> None:
        await client.revoke_role(actor, role, by, reason or "", submitted_by=submitted_by())

    ask(database_url, realm, work)
    output.say(f'{actor} does not hold the role "{role}" any more, revoked by {by}.')


@app.command("ls", hidden=True)
@app.command("list")
def list_roles(
    actor: Annotated[
        str | None,
        typer.Argument(metavar="[ACTOR]", callback=one_line, help="Only theirs."),
    ] = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """List who holds which role, since when and by whose grant."""

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        return await client.list_roles(actor)

    rows = ask(database_url, realm, work)
    if as_json:
        output.as_json(rows)
    elif rows:
        output.table(
            ("ACTOR", "ROLE", "SINCE", "GRANTED BY", "REASON"),
            [
                (r["actor"], r["role"], clock(r["granted_at"]), r["granted_by"], r["reason"])
                for r in rows
            ],
        )
    else:
        output.say(f'{actor or "Nobody"} holds {"no" if actor else "a"} role in realm "{realm}".')

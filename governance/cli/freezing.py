"""`governance freeze` and `unfreeze`: stop a flow or a realm, and let it go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from governance.cli import output
from governance.cli.connecting import ask
from governance.cli.identity import person, submitted_by
from governance.cli.options import DatabaseUrl, Json, Person, Realm, Reason, one_line, prose
from governance.cli.text import clock

if TYPE_CHECKING:
    from governance.client import GovernanceClient

Flow = Annotated[
    str | None, typer.Argument(metavar="[FLOW]", callback=one_line, help="A workflow type.")
]
Whole = Annotated[
    bool, typer.Option("--whole-realm", help="Every flow of the realm, in place of FLOW.")
]


def freeze(
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", callback=prose, help="Why. Kept on the record."),
    ],
    flow: Flow = None,
    whole: Whole = False,
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Stop a flow: once this returns, no governed step of it begins."""
    _check_one(flow, whole)
    by = person(claimed)

    async def work(client: GovernanceClient) -> bool:
        return await client.freeze(flow, by, reason, submitted_by=submitted_by())

    if ask(database_url, realm, work):
        output.say(f"{_named(flow, realm)} is frozen now, by {by}. Somebody else can lift it.")
    else:
        output.say(f"{_named(flow, realm)} is frozen already; nothing was changed.")


def unfreeze(
    flow: Flow = None,
    whole: Whole = False,
    reason: Reason = None,
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Let a frozen flow go on; not by the person who froze it."""
    _check_one(flow, whole)
    by = person(claimed)

    async def work(client: GovernanceClient) -> None:
        await client.unfreeze(flow, by, reason or "", submitted_by=submitted_by())

    ask(database_url, realm, work)
    output.say(f"{_named(flow, realm)} is not frozen any more, lifted by {by}.")


def frozen(
    as_json: Json = False, database_url: DatabaseUrl = None, realm: Realm = "default"
) -> None:
    """List what is frozen, by whom and why."""

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        return await client.list_freezes()

    rows = ask(database_url, realm, work)
    if as_json:
        output.as_json(rows)
    elif rows:
        output.table(
            ("FLOW", "SINCE", "BY", "REASON"),
            [
                (row["flow"] or "(every flow)", clock(row["set_at"]), row["set_by"], row["reason"])
                for row in rows
            ],
        )
    else:
        output.say(f'Nothing is frozen in realm "{realm}".')


def _check_one(flow: str | None, whole: bool) -> None:
    if (flow is None) != whole:
        raise typer.BadParameter("give either a FLOW or --whole-realm.")


def _named(flow: str | None, realm: str) -> str:
    return f'Flow "{flow}"' if flow else f'Realm "{realm}"'

"""`governance contracts`: which version of a flow's contract is known, and which is active."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from governance.cli import output
from governance.cli.connecting import ask
from governance.cli.identity import person, submitted_by
from governance.cli.options import DatabaseUrl, Json, Person, Realm, one_line
from governance.cli.text import SHORT, clock

if TYPE_CHECKING:
    from governance.client import GovernanceClient

app = typer.Typer(no_args_is_help=True, help="Contracts: registered by one, activated by another.")


@app.command("register")
def register(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The contract, in TOML.")],
    claimed: Person = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Check a contract and make it known; runs take it once somebody else activates it."""
    from governance.contracts import load_toml

    contract = load_toml(file)
    by = person(claimed)

    async def work(client: GovernanceClient) -> bool:
        return await client.register_contract(contract, by, submitted_by=submitted_by())

    new = ask(database_url, realm, work)
    digest = contract.digest.hex()
    if as_json:
        output.as_json({"flow": contract.flow, "digest": digest, "registered": new, "by": by})
        return
    output.say(
        f"{contract.flow}: {digest}\n"
        + (f"Registered by {by}." if new else "Registered before; nothing was changed.")
    )
    if new:
        output.say(f"Somebody else activates it: governance contracts activate {digest[:SHORT]}")


@app.command("activate")
def activate(
    contract: Annotated[
        str,
        typer.Argument(metavar="DIGEST|FILE", help="Its digest, at least 8 digits, or its file."),
    ],
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Make a registered version the one that new executions take; runs keep theirs."""
    by = person(claimed)
    file = Path(contract)
    given: bytes | None = None
    if file.is_file() or file.suffix == ".toml":
        from governance.contracts import load_toml

        given = load_toml(file).digest

    async def work(client: GovernanceClient) -> dict[str, Any]:
        digest = given or await client.find_contract(contract)
        changed = await client.activate_contract(digest, by, submitted_by=submitted_by())
        return await client.show_contract(digest) | {"changed": changed}

    row = ask(database_url, realm, work)
    what = (
        f"Active now, by {by}." if row["changed"] else "It is active already; nothing was changed."
    )
    output.say(f"{row['flow']}: {row['digest'].hex()}\n{what}")


@app.command("ls", hidden=True)
@app.command("list")
def list_contracts(
    flow: Annotated[
        str | None, typer.Option("--flow", callback=one_line, help="Only those of this flow.")
    ] = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """List the registered versions, by flow and age."""

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        return await client.list_contracts(flow)

    rows = ask(database_url, realm, work)
    if as_json:
        output.as_json(rows)
    elif rows:
        output.table(
            ("FLOW", "DIGEST", "STATE", "REGISTERED", "BY", "ACTIVATED BY"),
            [
                (
                    row["flow"],
                    row["digest"].hex()[:SHORT],
                    row["state"],
                    clock(row["registered_at"]),
                    row["registered_by"],
                    row["activated_by"] or "-",
                )
                for row in rows
            ],
        )
    else:
        output.say(f'No contract is registered in realm "{realm}".')


@app.command("show")
def show(
    contract: Annotated[
        str, typer.Argument(metavar="DIGEST", help="Its digest, or at least 8 digits.")
    ],
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Show a registered version, every field as it is pinned."""

    async def work(client: GovernanceClient) -> dict[str, Any]:
        return await client.show_contract(await client.find_contract(contract))

    row = ask(database_url, realm, work)
    fields = json.loads(row.pop("body"))
    if as_json:
        output.as_json(row | {"contract": fields})
        return
    output.title(f"{row['flow']} {fields.get('version', '')}".rstrip())
    activated = row["activated_at"]
    output.fields(
        [
            ("Digest", row["digest"].hex()),
            ("State", row["state"]),
            ("Registered", f"{clock(row['registered_at'])} by {row['registered_by']}"),
            ("Activated", f"{clock(activated)} by {row['activated_by']}" if activated else "no"),
            ("Contract", json.dumps(fields, indent=2, ensure_ascii=False)),
        ]
    )

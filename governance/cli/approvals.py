"""`governance approvals`: what waits, what one of them is about."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from governance.cli import output
from governance.cli.connecting import ask
from governance.cli.identity import person
from governance.cli.options import DatabaseUrl, Json, Person, Realm, one_line
from governance.cli.text import SHORT, moment, one_of, span

app = typer.Typer(no_args_is_help=True, help="What waits for a decision, and deciding it.")


class State(StrEnum):
    """The states to choose from: those of an approval, or all."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    REVOKED = "revoked"
    USED = "used"
    ALL = "all"


@app.command("ls", hidden=True)
@app.command("list")
def list_approvals(
    state: Annotated[State, typer.Option("--state", help="Only those in this state.")] = (
        State.PENDING
    ),
    role: Annotated[
        str | None,
        typer.Option("--role", callback=one_line, help="Only those that this role can decide."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="At most so many, oldest first.")
    ] = 100,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """List approvals, oldest first.

    Without options, those that wait. The ID is the beginning of the approval's id; every
    command takes it.
    """
    from governance.client import GovernanceClient
    from governance.names import ApprovalState

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        if role is not None:
            await client.check_role(role)
        wanted = None if state is State.ALL else ApprovalState(state)
        return await client.list_approvals(state=wanted, role=role, limit=limit)

    rows = ask(database_url, realm, work)
    if as_json:
        output.as_json([_data(row) for row in rows])
    elif rows:
        output.table(
            ("ID", "STATE", "TITLE", "REQUESTED BY", "NEEDS", "DECIDE BY", "AGE"),
            [_cells(row) for row in rows],
        )
    else:
        kind = "in any state" if state is State.ALL else state
        output.say(f'No approval in realm "{realm}" is {kind}.')
    if len(rows) == limit:
        output.note(f"Only the first {limit} are listed; --limit shows more.")


@app.command("show")
def show_approval(
    approval: Annotated[str, typer.Argument(metavar="ID", help="Its id, or at least 8 digits.")],
    as_json: Json = False,
    claimed: Person = None,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Show one, and whether you can decide it."""
    from governance.cli import card
    from governance.cli.deciding import look

    found, reader = ask(database_url, realm, look(approval, person(claimed)))
    if as_json:
        output.as_json(card.as_data(found, reader))
        return
    output.title(found.title)
    output.fields(card.as_fields(found, reader))


def _data(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "approval_id": row["id"],
        "state": row["state"],
        "title": row["title"],
        "requested_by": row["actor"],
        "needs": {
            "approvers": row["needed"],
            "missing": _missing(row),
            "roles": row["roles"],
        },
        "step": row["step"],
        "requested_at": row["requested_at"],
        "decide_by": row["decide_by"],
        "workflow_id": row["workflow_id"],
        "flow": row["flow"],
    }


def _cells(row: dict[str, Any]) -> list[str]:
    now: datetime = row["now"]
    return [
        row["id"].hex[:SHORT],
        row["state"],
        row["title"],
        row["actor"],
        _needs(row),
        moment(row["decide_by"], now),
        span(now - row["requested_at"]),
    ]


def _missing(row: dict[str, Any]) -> int:
    """How many more have to approve; none once it is decided."""
    waits = row["state"] == State.PENDING
    return max(0, row["needed"] - row["voted"]) if waits else 0


def _needs(row: dict[str, Any]) -> str:
    """`1 finance-approver`; of several, how many are missing: `1 of 2 finance-approver`."""
    if row["needed"] > 1 and row["state"] == State.PENDING:
        from governance.rules.quorum import what_is_missing

        return what_is_missing(_missing(row), row["needed"], row["roles"])
    return f"{row['needed']} {one_of(tuple(row['roles']))}"

"""`governance timeline` and `governance turns`: what happened, and what the actor was told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from governance.cli import output
from governance.cli.connecting import ask
from governance.cli.options import DatabaseUrl, Json, Realm, one_line
from governance.cli.text import SHORT, clock

if TYPE_CHECKING:
    from governance.client import GovernanceClient

WorkflowId = Annotated[
    str, typer.Argument(metavar="WORKFLOW_ID", callback=one_line, help="As in Temporal.")
]


def timeline(
    workflow_id: WorkflowId,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Tell what happened in a workflow.

    Who, what, when, and the entry that says so.
    """

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        found = await _executions(client, workflow_id)
        return [row | {"entries": await client.timeline(row["id"])} for row in found]

    executions = ask(database_url, realm, work)
    if as_json:
        output.as_json([_execution(row) for row in executions])
        return
    for row in executions:
        _heading(row)
        output.table(
            ("WHEN", "WHAT", "ENTRY", "SEALED"),
            [
                (
                    clock(entry["at"]),
                    said["sentence"],
                    entry["leaf"].hex()[:SHORT],
                    "not yet" if entry["idx"] is None else f"#{entry['idx']}",
                )
                for entry in row["entries"]
                for said in [_entry(entry)]
            ],
        )


def turns(
    workflow_id: WorkflowId,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Show what the actor of a workflow was told."""

    async def work(client: GovernanceClient) -> list[dict[str, Any]]:
        found = await _executions(client, workflow_id)
        return [row | {"turns": await client.turns(row["id"])} for row in found]

    told = [
        {
            "execution_id": row["id"],
            "seq": turn.seq,
            "kind": turn.kind,
            "recipient": turn.recipient,
            "body": turn.body,
            "at": turn.at,
        }
        for row in ask(database_url, realm, work)
        for turn in row["turns"]
    ]
    if as_json:
        output.as_json(told)
    elif told:
        for turn in told:
            output.title(f"{clock(turn['at'])} to {turn['recipient']} ({turn['kind']})")
            output.say(f"  {turn['body']}")
    else:
        output.say(f'Nobody was told anything of workflow "{workflow_id}".')


async def _executions(client: GovernanceClient, workflow_id: str) -> list[dict[str, Any]]:
    """The executions of a workflow, oldest first.

    Raises:
        ExecutionUnknown: There is none.
    """
    from governance.errors import ExecutionUnknown

    found = await client.executions(workflow_id)
    if not found:
        raise ExecutionUnknown(
            f'No execution of workflow "{workflow_id}" is on record in realm "{client.realm}".',
            hint="Only workflows that a contract governs are; check the id and --realm.",
        )
    return found[::-1]


def _heading(row: dict[str, Any]) -> None:
    code = f" ({row['code']})" if row["code"] else ""
    output.title(f"{row['workflow_id']}: {row['flow']} for {row['actor']}, {row['state']}{code}")


def _execution(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "execution_id": row["id"],
        "workflow_id": row["workflow_id"],
        "flow": row["flow"],
        "actor": row["actor"],
        "state": row["state"],
        "code": row["code"],
        "opened_at": row["opened_at"],
        "closed_at": row["closed_at"],
        "entries": [_entry(entry) for entry in row["entries"]],
    }


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    from governance.cli.sentences import sentence

    payload = None if entry["payload"] is None else json.loads(entry["payload"])
    return {
        "seq": entry["seq"],
        "type": entry["type"],
        "at": entry["at"],
        "sentence": sentence(entry["type"], payload),
        "entry": entry["leaf"],
        "index": entry["idx"],
        "payload": payload,
    }

"""What the command line tells of a workflow."""

from __future__ import annotations

import uuid

from governance import turns
from governance.cli.sentences import known_kinds, sentence
from governance.client import GovernanceClient
from governance.names import ENTRY_WRITERS
from tests.cli.commands import Command, one_error
from tests.cli.payments import ask, with_client


def test_the_timeline_is_a_story(cli: Command, prepared: str, waiting: str) -> None:
    cli("approvals", "approve", waiting, "--as", "ana", "--yes")
    cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--reason", "as agreed")
    heading, head, *rows = cli("timeline", "pay-1").out.splitlines()
    assert heading == "pay-1: PayInvoice for ana, open"
    assert head.split() == ["WHEN", "WHAT", "ENTRY", "SEALED"]
    told = [row.split("  ")[1] for row in rows]
    assert told[0].startswith("ana started PayInvoice, holding finance-approver, operator, under")
    assert told[1] == (
        'Step "pay" waits for a decision: Pay 4200.00 to ACME (takes one of: finance-approver, cfo)'
    )
    assert told[2].startswith("ana tried to approve, holding finance-approver, operator, and was")
    assert told[2].endswith("refused: actor_must_not_decide")
    assert told[3].startswith('bruno approved "finance", holding finance-approver (cli, os:')
    assert told[3].endswith(": as agreed")
    assert all(row.endswith("not yet") for row in rows)


def test_the_timeline_as_data_with_every_execution(
    cli: Command, prepared: str, waiting: str
) -> None:
    with_client(prepared, lambda client: ask(client, payee="second"))
    first, second = cli("timeline", "pay-1", "--json").data
    assert first["opened_at"] < second["opened_at"]
    started, asked = first["entries"]
    assert (started["type"], started["seq"], started["index"]) == ("flow.started", 1, None)
    assert asked["payload"]["approval"] == waiting
    assert len(asked["entry"]) == 64


def test_an_unknown_workflow(cli: Command, prepared: str) -> None:
    for command in ("timeline", "turns"):
        message = one_error(cli(command, "nobody"), "execution_unknown")
        assert '"nobody"' in message


def test_what_the_actor_was_told(cli: Command, prepared: str, waiting: str) -> None:
    assert cli("turns", "pay-1").out == 'Nobody was told anything of workflow "pay-1".\n'
    assert cli("turns", "pay-1", "--json").data == []

    async def tell(client: GovernanceClient) -> uuid.UUID:
        [execution] = await client.executions("pay-1")
        query, params = turns.add(client.realm, execution["id"], "resume_denied", "ana")
        async with client.database.transaction() as conn:
            await conn.execute(query, params)
        found: uuid.UUID = execution["id"]
        return found

    execution = with_client(prepared, tell)
    heading, body = cli("turns", "pay-1").out.splitlines()
    assert heading.endswith(" to ana (resume_denied)")
    assert body.strip() == turns.TEXTS["resume_denied"]
    [turn] = cli("turns", "pay-1", "--json").data
    assert (turn["execution_id"], turn["seq"]) == (execution.hex, 1)


def test_each_kind_of_entry_has_a_sentence() -> None:
    assert known_kinds() == set(ENTRY_WRITERS)
    for kind in ENTRY_WRITERS:
        assert "?" in sentence(kind, {}) or kind in (
            "flow.completed",
            "flow.failed",
            "flow.cancelled",
            "approval.withdrawn",
            "log.opened",
        )
        assert "erased" in sentence(kind, None)
    assert sentence("from.tomorrow", {}) == "from.tomorrow"

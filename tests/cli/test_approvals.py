"""Listing approvals and showing one."""

from __future__ import annotations

import pytest

from governance.client import GovernanceClient
from governance.decisions import Decider
from tests.cli.commands import Command, one_error
from tests.cli.payments import DIGEST, ask, with_client

HOSTILE = "[bold red]ACME[/] :smile: \\[x] {0}"


def test_the_list_has_what_people_look_for(cli: Command, waiting: str) -> None:
    result = cli("approvals", "list")
    assert (result.code, result.err) == (0, "")
    head, row = result.out.splitlines()
    assert " ".join(head.split()) == "ID STATE TITLE REQUESTED BY NEEDS DECIDE BY AGE"
    assert row.startswith(f"{waiting[:12]}  pending  Pay 4200.00 to ACME  ana")
    assert "1 finance-approver or cfo" in row
    assert "(in 3 d)" in row


def test_the_list_as_data(cli: Command, waiting: str) -> None:
    [row] = cli("approvals", "list", "--json").data
    assert row["approval_id"] == waiting
    assert row["state"] == "pending"
    assert row["needs"] == {"approvers": 1, "missing": 1, "roles": ["finance-approver", "cfo"]}
    assert row["decide_by"].endswith("Z")
    assert set(row) == {
        *("approval_id", "state", "title", "requested_by", "needs", "step"),
        *("requested_at", "decide_by", "workflow_id", "flow"),
    }


def test_ls_is_list(cli: Command, waiting: str) -> None:
    assert cli("approvals", "ls", "--json").data == cli("approvals", "list", "--json").data


def test_nothing_waits(cli: Command, prepared: str) -> None:
    assert cli("approvals", "list").out == 'No approval in realm "payments" is pending.\n'
    assert cli("approvals", "list", "--json").data == []


def test_by_state_and_role(cli: Command, prepared: str, waiting: str) -> None:
    cli("approvals", "reject", waiting, "--as", "bruno", "--reason", "no", "--yes")
    assert cli("approvals", "list", "--json").data == []
    assert len(cli("approvals", "list", "--state", "rejected", "--json").data) == 1
    assert len(cli("approvals", "list", "--state", "all", "--role", "cfo", "--json").data) == 1
    assert cli("approvals", "list", "--state", "all", "--role", "operator", "--json").data == []


def test_a_role_that_is_not_there(cli: Command, waiting: str) -> None:
    message = one_error(cli("approvals", "list", "--role", "finance-aprover"), "role_unknown")
    assert 'Did you mean "finance-approver"?' in message


def test_a_limit_says_that_there_may_be_more(cli: Command, prepared: str, waiting: str) -> None:
    with_client(prepared, lambda client: ask(client, "pay-2"))
    result = cli("approvals", "list", "--limit", "1", "--json")
    assert [row["approval_id"] for row in result.data] == [waiting]
    assert "first 1" in result.err


def test_another_realm_is_another_list(cli: Command, waiting: str) -> None:
    assert cli("approvals", "list", "--realm", "other", "--json").data == []
    one_error(cli("approvals", "show", waiting, "--realm", "other"), "approval_unknown")


def test_the_card_comes_in_its_order(cli: Command, waiting: str) -> None:
    result = cli("approvals", "show", waiting, "--as", "bruno")
    assert result.code == 0
    title, *rest = result.out.splitlines()
    assert title == "Pay 4200.00 to ACME"
    labels = [line.split("  ")[0] for line in rest if line[0] != " "]
    assert labels == [
        *("State", "Requested by", "Why it stopped", "Instructions", "What will run", "Input"),
        *("Links", "Input digest", "Approve →", "Reject →", "Decisions", "You", "Decide by"),
        *("Run by", "Waiting since", "Workflow", "Execution", "Approval"),
    ]
    assert DIGEST in result.out
    assert "bruno can decide, holding finance-approver." in result.out
    assert "12 h after the approval" in result.out


def test_the_card_as_data(cli: Command, waiting: str) -> None:
    card = cli("approvals", "show", waiting, "--json", "--as", "ana").data
    assert card["input"] == {"payee": "ACME", "amount": "4200.00"}
    assert list(card["input"]) == ["payee", "amount"]
    assert card["input_digest"] == DIGEST
    assert card["links"] == {"Invoice": "https://erp.example/ACME"}
    assert card["decisions"] == []
    assert card["eligibility"]["may_decide"] is False
    assert card["eligibility"]["code"] == "actor_must_not_decide"


def test_a_decided_card_says_who_and_why(cli: Command, waiting: str) -> None:
    cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--reason", "as agreed")
    card = cli("approvals", "show", waiting, "--as", "carla").out
    assert "bruno approved at" in card
    assert "holding finance-approver (cli, os:" in card
    assert "as agreed" in card
    assert "carla cannot decide: The approval was approved already by bruno" in card


@pytest.mark.parametrize("length", [8, 12, 32])
def test_the_beginning_of_an_id_is_enough(cli: Command, waiting: str, length: int) -> None:
    card = cli("approvals", "show", waiting[:length].upper(), "--json").data
    assert card["approval_id"] == waiting


@pytest.mark.parametrize("text", ["1234567", "not-an-id", "0" * 33, "%", "x" * 500])
def test_what_is_no_id(cli: Command, waiting: str, text: str) -> None:
    assert "is not the id of an approval" in one_error(
        cli("approvals", "show", text), "approval_unknown"
    )


def test_an_unknown_id(cli: Command, waiting: str) -> None:
    unknown = "0" * 32 if waiting[0] != "0" else "f" * 32
    message = one_error(cli("approvals", "show", unknown), "approval_unknown")
    assert f'There is no approval {unknown} in realm "payments".' in message


def test_markup_and_escapes_in_values_are_only_text(cli: Command, prepared: str) -> None:
    approval = with_client(prepared, lambda client: ask(client, "pay-1", HOSTILE))
    for command in (("list",), ("show", approval.hex)):
        result = cli("approvals", *command)
        assert f"Pay 4200.00 to {HOSTILE}" in result.out
    assert cli("approvals", "show", approval.hex, "--json").data["input"]["payee"] == HOSTILE


def test_a_reason_with_escapes_reaches_no_terminal(
    cli: Command, prepared: str, waiting: str
) -> None:
    evil = "fine\x1b]0;owned\x07\u202eenif"

    async def approve(client: GovernanceClient) -> None:
        approval = await client.find_approval(waiting)
        await client.approve(approval, Decider("bruno", "api", "x\x1b[2J"), evil)

    with_client(prepared, approve)
    for arguments in (("approvals", "show", waiting), ("timeline", "pay-1")):
        text = cli(*arguments).out
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "fine\\x1b]0;owned\\x07\\u202eenif" in text
        assert cli(*arguments, "--json").out.isascii()
    card = cli("approvals", "show", waiting, "--json").data
    assert card["decisions"][0]["reason"] == evil

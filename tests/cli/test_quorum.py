"""Several approvers, and taking an approval back, at the command line."""

from __future__ import annotations

import pytest

from governance.cli.identity import submitted_by
from governance.client import GovernanceClient
from governance.contracts import from_toml
from tests.cli.commands import Command, one_error
from tests.cli.payments import CONTRACT, ask, with_client


@pytest.fixture
def two(prepared: str) -> str:
    """A payment that takes two approvers; its approval."""
    contract = from_toml(CONTRACT.replace("roles = [", "needed = 2\nroles = [", 1))

    async def work(client: GovernanceClient) -> str:
        await client.register_contract(contract, "adam")
        await client.activate_contract(contract.digest, "eve")
        return (await ask(client)).hex

    return with_client(prepared, work)


def test_each_vote_says_what_is_missing(cli: Command, two: str) -> None:
    assert "2 of 2 finance-approver or cfo" in cli("approvals", "list").out
    first = cli("approvals", "approve", two, "--as", "bruno", "--yes")
    assert (first.code, first.out.splitlines()[-1]) == (
        0, "Still needed: 1 of 2 finance-approver or cfo.",
    )  # fmt: skip
    assert "1 of 2 finance-approver or cfo" in cli("approvals", "list").out
    [row] = cli("approvals", "list", "--json").data
    assert row["needs"] == {
        "approvers": 2, "missing": 1, "roles": ["finance-approver", "cfo"],
    }  # fmt: skip
    card = cli("approvals", "show", two, "--as", "carla").out
    assert "takes 2 different people, each finance-approver or cfo" in card
    assert "bruno counts: holding finance-approver" in card
    assert "still needed: 1 of 2 finance-approver or cfo" in card
    assert "carla can decide" in card
    again = cli("approvals", "approve", two, "--as", "Bruno", "--yes")
    one_error(again, "barrier_not_met", 1)
    again = cli("approvals", "approve", two, "--as", "bruno", "--yes")
    assert "still needed: 1 of 2" in one_error(again, "already_voted")
    last = cli("approvals", "approve", two, "--as", "carla", "--yes", "--json").data
    assert (last["state"], last["needs"]["missing"]) == ("approved", 0)
    assert [(one["by"], one["counts"]) for one in last["votes"]] == [
        ("bruno", True), ("carla", True),
    ]  # fmt: skip
    assert "1 of 2 still missing" in cli("timeline", "pay-1").out


def test_revoking(cli: Command, waiting: str) -> None:
    revoking = ("approvals", "revoke", waiting, "--as", "carla")
    assert "--reason" in one_error(cli(*revoking), "reason_required")
    one_error(cli(*revoking, "--reason", "wrong invoice"), "cannot_revoke", 1)
    cli("approvals", "approve", waiting, "--as", "bruno", "--yes")
    denied = cli("approvals", "revoke", waiting, "--as", "dora", "--reason", "x")
    one_error(denied, "barrier_not_met", 1)
    result = cli(*revoking, "--reason", "wrong invoice")
    assert (result.code, result.out.splitlines()) == (
        0,
        [
            "Revoked: Pay 4200.00 to ACME",
            f"On record: carla, through the command line ({submitted_by()}).",
        ],
    )
    assert cli("approvals", "show", waiting, "--json").data["state"] == "revoked"
    story = cli("timeline", "pay-1").out
    assert 'carla took the approval of "finance" back, holding cfo' in story
    assert "dora tried to revoke, holding no role, and was refused: barrier_not_met" in story

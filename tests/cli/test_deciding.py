"""Approving, rejecting and withdrawing at the command line."""

from __future__ import annotations

import uuid

import pytest

from governance.cli.identity import submitted_by, system_user
from tests.cli.commands import Command, one_error
from tests.cli.payments import DIGEST

# ------------------------------------------------------------------------ without a terminal


def test_approving_is_recorded_with_both_names(cli: Command, waiting: str) -> None:
    result = cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--reason", "as agreed")
    assert result.code == 0, result
    assert result.out.splitlines() == [
        "Approved: Pay 4200.00 to ACME",
        f"On record: bruno, through the command line ({submitted_by()}).",
    ]
    card = cli("approvals", "show", waiting, "--json").data
    [decision] = card["decisions"]
    assert card["state"] == "approved"
    assert decision["decided_by"] == "bruno"
    assert decision["submitted_by"] == submitted_by()
    assert submitted_by().startswith(f"os:{system_user()}@")
    assert decision["method"] == "cli"
    assert decision["reason"] == "as agreed"


def test_without_as_the_system_user_decides(cli: Command, waiting: str) -> None:
    cli("roles", "grant", system_user(), "cfo", "--as", "adam")
    card = cli("approvals", "approve", waiting, "--yes", "--json").data
    assert card["decisions"][0]["decided_by"] == system_user()


def test_the_environment_can_name_the_person(
    cli: Command, waiting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOVERNANCE_USER", "carla")
    card = cli("approvals", "approve", waiting, "--yes", "--json").data
    assert card["decisions"][0]["decided_by"] == "carla"


def test_rejecting(cli: Command, waiting: str) -> None:
    result = cli("approvals", "reject", waiting, "--as", "carla", "--yes", "--reason", "twice")
    assert result.code == 0
    assert result.out.startswith("Rejected: Pay 4200.00 to ACME\n")
    assert cli("approvals", "show", waiting, "--json").data["state"] == "rejected"


def test_withdrawing(cli: Command, waiting: str) -> None:
    message = one_error(
        cli("approvals", "withdraw", waiting, "--as", "bruno"), "decision_refused", 1
    )
    assert message.startswith("Only ana, who asked, can withdraw")
    result = cli("approvals", "withdraw", waiting, "--as", "ana", "--reason", "a mistake")
    assert (result.code, result.out.splitlines()[0]) == (0, "Withdrawn: Pay 4200.00 to ACME")
    refused = cli("approvals", "approve", waiting, "--as", "bruno", "--yes")
    one_error(refused, "approval_withdrawn")
    assert "The request was withdrawn by ana: a mistake" in cli("timeline", "pay-1").out


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_who_may_not_decide_is_told_and_recorded(cli: Command, waiting: str, verb: str) -> None:
    deciding = ("approvals", verb, waiting, "--yes", "--reason", "x")
    one_error(cli(*deciding, "--as", "ana"), "actor_must_not_decide", 1)
    one_error(cli(*deciding, "--as", "dora"), "barrier_not_met", 1)
    story = cli("timeline", "pay-1").out
    assert f"ana tried to {verb}" in story
    assert f"dora tried to {verb}, holding no role, and was refused: barrier_not_met" in story
    assert cli("approvals", "show", waiting, "--json").data["state"] == "pending"


@pytest.mark.parametrize("verb", ["approve", "reject", "withdraw"])
def test_already_decided_says_by_whom(cli: Command, waiting: str, verb: str) -> None:
    cli("approvals", "approve", waiting, "--as", "bruno", "--yes")
    more = () if verb == "withdraw" else ("--yes",)
    who = "ana" if verb == "withdraw" else "carla"
    result = cli("approvals", verb, waiting, "--as", who, "--reason", "x", *more)
    assert "approved already by bruno on 20" in one_error(result, "already_decided")


@pytest.mark.parametrize("verb", ["approve", "reject", "withdraw"])
def test_an_unknown_approval(cli: Command, prepared: str, verb: str) -> None:
    more = () if verb == "withdraw" else ("--yes",)
    result = cli("approvals", verb, uuid.uuid4().hex, "--as", "bruno", "--reason", "x", *more)
    one_error(result, "approval_unknown")


def test_nobody_can_be_asked_without_a_terminal(cli: Command, waiting: str) -> None:
    for verb in ("approve", "reject"):
        result = cli("approvals", verb, waiting, "--as", "bruno", "--reason", "x")
        assert "Give --yes" in one_error(result, "configuration_invalid")
    assert cli("approvals", "show", waiting, "--json").data["state"] == "pending"


@pytest.mark.parametrize("reason", [(), ("--reason", ""), ("--reason", "  ")])
def test_a_rejection_needs_a_reason(cli: Command, waiting: str, reason: tuple[str, ...]) -> None:
    result = cli("approvals", "reject", waiting, "--as", "bruno", "--yes", *reason)
    assert "--reason" in one_error(result, "reason_required")


@pytest.mark.parametrize("digest", [DIGEST, DIGEST[:12], DIGEST.upper()[:20]])
def test_the_digest_that_was_seen(cli: Command, waiting: str, digest: str) -> None:
    result = cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--digest", digest)
    assert result.code == 0, result


@pytest.mark.parametrize("digest", ["cd" * 32, "cd" * 6, DIGEST[:62] + "cd"])
def test_another_digest(cli: Command, waiting: str, digest: str) -> None:
    result = cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--digest", digest)
    assert DIGEST in one_error(result, "digest_mismatch", 1)
    assert cli("approvals", "show", waiting, "--json").data["state"] == "pending"


@pytest.mark.parametrize("digest", [DIGEST[:11], "zz" * 32, DIGEST + "ab", ""])
def test_what_is_no_digest(cli: Command, waiting: str, digest: str) -> None:
    result = cli("approvals", "approve", waiting, "--as", "bruno", "--yes", "--digest", digest)
    one_error(result, "configuration_invalid")


def test_people_reject_the_system_denies(cli: Command, waiting: str) -> None:
    result = cli("approvals", "deny", waiting, "--reason", "no")
    assert "Did you mean reject?" in one_error(result, "configuration_invalid")

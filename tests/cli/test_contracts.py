"""Contracts at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from governance.contracts import from_toml
from tests.cli.commands import Command, one_error
from tests.cli.payments import CONTRACT

CHANGED = CONTRACT.replace("2026-11", "2026-12")


@pytest.fixture
def file(tmp_path: Path, settings: None) -> str:
    """The contract's next version, in a file."""
    path = tmp_path / "pay.toml"
    path.write_text(CHANGED)
    return str(path)


def test_one_registers_another_activates(cli: Command, prepared: str, file: str) -> None:
    registered = cli("contracts", "register", file, "--as", "adam")
    digest = registered.out.split()[1]
    assert registered.code == 0
    assert f"governance contracts activate {digest[:12]}" in registered.out
    assert "nothing was changed" in cli("contracts", "register", file, "--as", "eve").out
    own = cli("contracts", "activate", digest[:12], "--as", "Adam")
    assert "Somebody else must activate it." in one_error(own, "administration_refused", 1)
    assert cli("contracts", "activate", digest[:12], "--as", "eve").code == 0
    states = {row["digest"]: row["state"] for row in cli("contracts", "list", "--json").data}
    assert states[digest] == "active"
    assert sorted(states.values()) == ["active", "retired"]
    again = cli("contracts", "activate", file, "--as", "eve")
    assert again.code == 0
    assert "active already; nothing was changed" in again.out


def test_activating_a_file(cli: Command, prepared: str, file: str) -> None:
    unknown = cli("contracts", "activate", file, "--as", "eve")
    assert "contracts register FILE" in one_error(unknown, "contract_unknown")
    cli("contracts", "register", file, "--as", "adam", "--json")
    assert "Active now, by eve." in cli("contracts", "activate", file, "--as", "eve").out


def test_registering_as_data(cli: Command, dsn: str, file: str) -> None:
    result = cli("contracts", "register", file, "--as", "adam", "--json").data
    digest = from_toml(CHANGED).digest.hex()
    assert result == {"flow": "PayInvoice", "digest": digest, "registered": True, "by": "adam"}


def test_the_list_of_contracts(cli: Command, prepared: str) -> None:
    head, row = cli("contracts", "list").out.splitlines()
    assert " ".join(head.split()) == "FLOW DIGEST STATE REGISTERED BY ACTIVATED BY"
    assert row.split()[:3] == ["PayInvoice", from_toml(CONTRACT).digest.hex()[:12], "active"]
    assert cli("contracts", "list", "--flow", "Other", "--json").data == []
    empty = cli("contracts", "ls", "--realm", "empty")
    assert empty.out == 'No contract is registered in realm "empty".\n'


def test_showing_a_contract(cli: Command, prepared: str) -> None:
    contract = from_toml(CONTRACT)
    shown = cli("contracts", "show", contract.digest.hex()[:8])
    assert shown.out.startswith("PayInvoice 2026-11\n")
    assert '"finance-approver"' in shown.out
    data = cli("contracts", "show", contract.digest.hex(), "--json").data
    assert data["contract"] == json.loads(contract.canonical())
    assert (data["registered_by"], data["activated_by"]) == ("adam", "eve")


@pytest.mark.parametrize("digest", ["0" * 64, "0" * 8])
def test_an_unknown_contract(cli: Command, prepared: str, digest: str) -> None:
    one_error(cli("contracts", "show", digest), "contract_unknown")
    one_error(cli("contracts", "activate", digest, "--as", "eve"), "contract_unknown")


def test_what_is_no_digest(cli: Command, prepared: str) -> None:
    message = one_error(cli("contracts", "activate", "pay.tml", "--as", "eve"), "contract_unknown")
    assert "'pay.tml' is not the digest of a contract" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flow = 'x'\n", "steps: found nothing; allowed: this key is required"),
        ("flow = \n", "not TOML"),
        (CONTRACT.replace("roles =", "role ="), "approvals.finance.role: found an unknown key"),
        (CONTRACT.replace('"4d"', '"soon"'), "approvals.finance.decide_by: found 'soon'"),
        ("\x00", "not TOML"),
    ],
)
def test_a_malformed_contract(cli: Command, dsn: str, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = cli("contracts", "register", str(path), "--as", "adam")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("governance: contract_invalid: ")
    assert says in result.err
    assert str(path) in result.err
    assert "Traceback" not in result.err


def test_a_contract_that_is_not_there(cli: Command, dsn: str, tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        for verb in ("register", "activate"):
            if verb == "activate" and path is tmp_path:
                continue
            result = cli("contracts", verb, str(path), "--as", "adam")
            assert "cannot be read" in one_error(result, "contract_invalid")

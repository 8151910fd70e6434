"""Freezes at the command line."""

from __future__ import annotations

import pytest

from tests.cli.commands import Command, one_error

FLOW, REALM = ("PayInvoice",), ("--whole-realm",)
BOTH = pytest.mark.parametrize("what", [FLOW, REALM], ids=["flow", "realm"])


@BOTH
def test_one_freezes_another_lifts(cli: Command, prepared: str, what: tuple[str, ...]) -> None:
    freezing = ("freeze", *what, "--reason", "an incident")
    frozen = cli(*freezing, "--as", "adam")
    assert (frozen.code, "is frozen now, by adam." in frozen.out) == (0, True)
    again = cli(*freezing, "--as", "eve")
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    own = cli("unfreeze", *what, "--as", "Adam")
    assert "Somebody else must lift it." in one_error(own, "administration_refused", 1)
    lifted = cli("unfreeze", *what, "--as", "eve")
    assert (lifted.code, "not frozen any more, lifted by eve." in lifted.out) == (0, True)
    gone = one_error(cli("unfreeze", *what, "--as", "eve"), "freeze_unknown")
    assert "governance frozen" in gone


def test_what_is_frozen(cli: Command, prepared: str) -> None:
    assert cli("frozen").out == 'Nothing is frozen in realm "payments".\n'
    cli("freeze", *FLOW, "--reason", "an incident", "--as", "adam")
    cli("freeze", *REALM, "--reason", "all of it", "--as", "eve")
    head, *rows = cli("frozen").out.splitlines()
    assert head.split() == ["FLOW", "SINCE", "BY", "REASON"]
    assert rows[0].startswith("PayInvoice ")
    assert rows[0].endswith("an incident")
    assert rows[1].startswith("(every flow) ")
    flow, realm = cli("frozen", "--json").data
    assert (flow["flow"], flow["set_by"]) == ("PayInvoice", "adam")
    assert (realm["flow"], realm["reason"]) == (None, "all of it")


def test_what_cannot_be_meant(cli: Command, prepared: str) -> None:
    for given in ((), (*FLOW, *REALM)):
        both = cli("freeze", *given, "--reason", "why")
        assert "either a FLOW or --whole-realm" in one_error(both, "usage")
        one_error(cli("unfreeze", *given), "usage")
    one_error(cli("freeze", *FLOW), "usage")
    one_error(cli("freeze", *FLOW, "--reason", " "), "administration_refused", 1)
    assert cli("frozen", "--json").data == []

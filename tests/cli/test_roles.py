"""Roles at the command line."""

from __future__ import annotations

import json

import pytest

from governance.cli.identity import submitted_by
from tests.cli.commands import Command, one_error


def test_granting_and_revoking(cli: Command, prepared: str) -> None:
    granted = cli("roles", "grant", "dora", "cfo", "--as", "adam", "--reason", "promoted")
    assert (granted.code, granted.out) == (0, 'dora holds the role "cfo" now, granted by adam.\n')
    again = cli("roles", "grant", "dora", "cfo", "--as", "adam")
    assert (again.code, "already" in again.out) == (0, True)
    [row] = cli("roles", "list", "dora", "--json").data
    assert (row["role"], row["granted_by"], row["reason"]) == ("cfo", "adam", "promoted")
    revoked = cli("roles", "revoke", "dora", "cfo", "--as", "adam", "--reason", "left")
    assert (revoked.code, "any more" in revoked.out) == (0, True)
    assert cli("roles", "list", "dora").out == 'dora holds no role in realm "payments".\n'


def test_the_list_of_roles(cli: Command, prepared: str) -> None:
    head, *rows = cli("roles", "list").out.splitlines()
    assert " ".join(head.split()) == "ACTOR ROLE SINCE GRANTED BY REASON"
    assert [row.split()[:2] for row in rows] == [
        ["ana", "finance-approver"],
        ["ana", "operator"],
        ["bruno", "finance-approver"],
        ["carla", "cfo"],
    ]
    assert cli("roles", "ls", "--json").data == cli("roles", "list", "--json").data
    assert cli("roles", "list", "--realm", "empty").out == 'Nobody holds a role in realm "empty".\n'


@pytest.mark.parametrize("by", ["dora", "DORA", "\uff44ora"])
def test_nobody_grants_to_themselves(cli: Command, prepared: str, by: str) -> None:
    result = cli("roles", "grant", "dora", "cfo", "--as", by)
    assert "to themselves" in one_error(result, "administration_refused", 1)
    assert cli("roles", "list", "dora", "--json").data == []


def test_a_role_that_nobody_named(cli: Command, prepared: str) -> None:
    granting = ("roles", "grant", "dora", "finance-aprover", "--as", "adam")
    assert 'Did you mean "finance-approver"?' in one_error(cli(*granting), "role_unknown")
    far = one_error(cli("roles", "grant", "dora", "zzz", "--as", "adam"), "role_unknown")
    assert "There are: cfo, finance-approver, operator." in far
    assert cli(*granting, "--new").code == 0


def test_no_such_role(cli: Command, prepared: str) -> None:
    result = cli("roles", "revoke", "bruno", "cfo", "--as", "adam")
    assert 'bruno does not hold the role "cfo"' in one_error(result, "role_unknown")


@pytest.mark.parametrize(
    "name", ["", "  ", " dora", "do\nra", "do\x1bra", "do\u202era", "x" * 2001]
)
def test_what_is_no_name(cli: Command, prepared: str, name: str) -> None:
    one_error(cli("roles", "grant", name, "cfo", "--as", "adam"), "usage")
    one_error(cli("roles", "list", name), "usage")
    one_error(cli("roles", "grant", "dora", "cfo", "--as", name), "usage")


def test_the_record_names_the_system_user_beside_the_person(cli: Command, prepared: str) -> None:
    import psycopg

    cli("roles", "grant", "dora", "cfo", "--as", "adam")
    cli("roles", "revoke", "dora", "cfo", "--as", "adam", "--reason", "left")
    with psycopg.connect(prepared) as conn:
        bodies = conn.execute(
            "SELECT body FROM governance.payload ORDER BY entry DESC LIMIT 2"
        ).fetchall()
    for (body,) in bodies:
        said = json.loads(body)
        assert (said["by"], said["submitted_by"]) == ("adam", submitted_by())

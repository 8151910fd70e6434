"""The doctor at the command line."""

from __future__ import annotations

import psycopg

from tests.cli.commands import Command
from tests.cli.payments import REALM


def test_all_is_well(cli: Command, dsn: str) -> None:
    done = cli("doctor")
    assert (done.code, done.err) == (0, "")
    assert {line.split()[0] for line in done.out.splitlines()} == {"ok"}
    assert all(check["ok"] for check in cli("doctor", "--json").data)
    assert REALM not in done.out


def test_each_problem_has_a_line(cli: Command, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("GRANT DELETE ON governance.entry, governance.leaf TO governance_admin")
    done = cli("doctor")
    assert done.code == 1
    lines = done.out.splitlines()
    assert [line for line in lines if not line.startswith("ok ")] == [
        f"PROBLEM  grants: too much: DELETE on governance.{table} for governance_admin"
        for table in ("entry", "leaf")
    ]
    assert "ok       triggers" in lines
    told = cli("doctor", "--json")
    assert told.code == 1
    [grants] = [check for check in told.data if not check["ok"]]
    assert (grants["check"], len(grants["problems"])) == ("grants", 2)


def test_an_empty_database(cli: Command, empty_dsn: str) -> None:
    done = cli("doctor", "--database-url", empty_dsn)
    assert done.code == 1
    assert "PROBLEM  schema version: there is no governance schema" in done.out

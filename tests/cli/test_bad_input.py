"""Servers that cannot be used: one clear error and exit code 2, never a traceback."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.cli.commands import NOWHERE, Command, one_error
from tests.conftest import RoleDsn

ASKING: list[tuple[str, ...]] = [
    ("approvals", "list"),
    ("approvals", "show", "0" * 32),
    ("approvals", "approve", "0" * 32, "--yes"),
    ("approvals", "reject", "0" * 32, "--yes", "--reason", "x"),
    ("approvals", "withdraw", "0" * 32),
    ("approvals", "revoke", "0" * 32, "--reason", "x"),
    ("roles", "grant", "dora", "cfo"),
    ("roles", "revoke", "dora", "cfo"),
    ("roles", "list"),
    ("contracts", "list"),
    ("contracts", "show", "0" * 64),
    ("contracts", "activate", "0" * 64),
    ("freeze", "PayInvoice", "--reason", "x"),
    ("unfreeze", "--whole-realm"),
    ("frozen",),
    ("timeline", "pay-1"),
    ("turns", "pay-1"),
    ("verify", "--log", "test.example/x", "--key", "x.pub"),
    ("seal", "--checkpoints", "kept", "--key", "x.key"),
]
"""Every command that needs a migrated database."""


@pytest.fixture
def keyed(bare: Command) -> Command:
    """The command line beside a key pair x."""
    bare("keys", "new", "x")
    return bare


@pytest.mark.parametrize("arguments", [*ASKING, ("migrate",), ("doctor",)], ids=" ".join)
def test_the_database_is_down(keyed: Command, arguments: tuple[str, ...]) -> None:
    result = keyed(*arguments, "--database-url", NOWHERE)
    message = one_error(result, "database_unavailable")
    assert "127.0.0.1:1" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_the_schema_is_missing(keyed: Command, empty_dsn: str, arguments: tuple[str, ...]) -> None:
    message = one_error(keyed(*arguments, "--database-url", empty_dsn), "schema_missing")
    assert "governance migrate" in message


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_the_schema_is_newer(keyed: Command, dsn: str, arguments: tuple[str, ...]) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(
            "INSERT INTO governance.migration (version, name, sha256) "
            "SELECT max(version) + 1, 'tomorrow', repeat('0', 64) FROM governance.migration"
        )
    message = one_error(keyed(*arguments, "--database-url", dsn), "schema_newer")
    assert "has schema version" in message


def test_migrating_a_newer_schema(bare: Command, dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(
            "INSERT INTO governance.migration (version, name, sha256) "
            "SELECT max(version) + 1, 'tomorrow', repeat('0', 64) FROM governance.migration"
        )
    one_error(bare("migrate", "--database-url", dsn), "schema_newer")


def test_no_database_is_named(bare: Command) -> None:
    for arguments in (("approvals", "list"), ("migrate",)):
        message = one_error(bare(*arguments), "configuration_invalid")
        assert "--database-url" in message
        assert "GOVERNANCE_DATABASE_URL" in message


def test_an_address_that_is_none(bare: Command) -> None:
    message = one_error(
        bare("approvals", "list", "--database-url", "hunter2 is no address"),
        "configuration_invalid",
    )
    assert "hunter2" not in message


def test_a_database_that_takes_no_writes(cli: Command, waiting: str, dsn: str) -> None:
    frozen = make_conninfo(dsn, options="-c default_transaction_read_only=on")
    assert cli("approvals", "list", "--database-url", frozen).code == 0
    result = cli("roles", "grant", "dora", "cfo", "--database-url", frozen)
    assert "takes no writes" in one_error(result, "database_unavailable")


@pytest.mark.parametrize(
    ("group", "arguments"),
    [
        ("worker", ("approvals", "approve", "{id}", "--as", "bruno", "--yes")),
        ("reader", ("approvals", "reject", "{id}", "--as", "bruno", "--yes", "--reason", "x")),
        ("decider", ("roles", "grant", "dora", "cfo")),
        ("worker", ("roles", "revoke", "bruno", "finance-approver")),
    ],
)
def test_a_login_without_the_right(
    cli: Command, waiting: str, role_dsn: RoleDsn, group: str, arguments: tuple[str, ...]
) -> None:
    asked = [waiting if part == "{id}" else part for part in arguments]
    message = one_error(cli(*asked, "--database-url", role_dsn(group)), "configuration_invalid")
    assert "does not allow this" in message


@pytest.mark.parametrize(
    ("group", "arguments"),
    [
        ("reader", ("approvals", "list")),
        ("reader", ("approvals", "show", "{id}")),
        ("reader", ("timeline", "pay-1")),
        ("decider", ("approvals", "approve", "{id}", "--as", "bruno", "--yes", "--json")),
        ("decider", ("approvals", "withdraw", "{id}", "--as", "ana")),
        ("admin", ("roles", "grant", "dora", "cfo")),
        ("admin", ("roles", "revoke", "bruno", "finance-approver")),
    ],
)
def test_a_login_with_just_the_right(
    cli: Command, waiting: str, role_dsn: RoleDsn, group: str, arguments: tuple[str, ...]
) -> None:
    asked = [waiting if part == "{id}" else part for part in arguments]
    result = cli(*asked, "--database-url", role_dsn(group))
    assert (result.code, result.err) == (0, ""), result


def test_a_decider_who_comes_too_late(
    cli: Command, waiting: str, role_dsn: RoleDsn, dsn: str
) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("UPDATE governance.approval SET decide_by = now() - interval '1 hour'")
    assert "(1 h ago)" in cli("approvals", "list").out
    deciding = ("approvals", "approve", waiting, "--as", "bruno", "--yes")
    for _ in range(2):
        result = cli(*deciding, "--database-url", role_dsn("decider"))
        one_error(result, "approval_expired")
    assert cli("approvals", "list", "--state", "expired", "--json").data[0]["state"] == "expired"
    assert "The time to decide ran out" in cli("timeline", "pay-1").out

"""Command lines that are none, help, and the command as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from tests.cli.commands import COMMAND, NOWHERE, ROOT, Command, apart, finished, one_error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("aprovals",), "No such command 'aprovals'"),
        (("approvals", "shw"), "No such command 'shw'"),
        (("approvals", "show"), "Missing argument"),
        (("approvals", "list", "--stat", "all"), "No such option"),
        (("approvals", "list", "--state", "open"), "'open' is not one of 'pending'"),
        (("approvals", "list", "--limit", "0"), "--limit"),
        (("approvals", "list", "--limit", "x"), "--limit"),
        (("approvals", "list", "--realm", ""), "must not be empty"),
        (("approvals", "reject", "0" * 8, "--reason", "a\x1bb"), "U+001B is not allowed"),
        (("approvals", "reject", "0" * 8, "--reason", "\udcff"), "U+DCFF is not allowed"),
        (("approvals", "reject", "0" * 8, "--reason", "x" * 2001), "2001 characters"),
    ],
)
def test_a_command_line_that_is_none(bare: Command, arguments: tuple[str, ...], says: str) -> None:
    message = one_error(bare(*arguments), "usage")
    assert says in message
    assert "--help` shows what it takes." in message


@pytest.mark.parametrize("group", [(), ("approvals",), ("keys",)])
def test_a_group_without_a_command_shows_its_help(bare: Command, group: tuple[str, ...]) -> None:
    result = bare(*group)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"Usage: {' '.join(('governance', *group))}")


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("approvals", "approve", "--help")])
def test_help(bare: Command, arguments: tuple[str, ...]) -> None:
    result = bare(*arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: governance")


def test_version(bare: Command) -> None:
    from governance import __version__

    assert bare("--version").out == f"temporal-governance {__version__}\n"


# ------------------------------------------------------------------------ as processes


def test_as_a_process(prepared: str, waiting: str) -> None:
    refused = finished(apart("approvals", "approve", waiting, "--as", "ana", "--yes", url=prepared))
    one_error(refused, "actor_must_not_decide", 1)
    shown = finished(apart("approvals", "show", waiting, "--json", url=prepared))
    assert (shown.code, shown.err, shown.data["state"]) == (0, "", "pending")
    one_error(finished(apart("approvals", "list", url=NOWHERE)), "database_unavailable")


def test_text_that_the_terminal_cannot_encode(prepared: str) -> None:
    granting = ("roles", "grant", "zoë", "cfo", "--as", "adam")
    result = finished(apart(*granting, url=prepared, PYTHONIOENCODING="ascii"))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("zo\\xeb holds")


def test_a_reader_that_went_away(prepared: str, waiting: str) -> None:
    # The shell's right side ends at once; the left side finds out when it writes.
    script = f"{{ \"$0\" -c '{COMMAND}' approvals list; echo $? >&2; }} | true"
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable],
        env=os.environ | {"GOVERNANCE_DATABASE_URL": prepared, "GOVERNANCE_REALM": "payments"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "141\n"


def test_ctrl_c(prepared: str) -> None:
    with psycopg.connect(prepared) as conn:
        conn.execute("LOCK TABLE governance.role_grant IN ACCESS EXCLUSIVE MODE")
        process = apart("roles", "list", url=prepared)
        deadline = time.monotonic() + 30
        while not _waits(prepared):
            assert time.monotonic() < deadline
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        result = finished(process)
    assert (result.code, result.out, "Traceback" in result.err) == (130, "", False)


def _waits(dsn: str) -> bool:
    """Whether somebody waits for a lock in this database."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND datname = current_database()"
        ).fetchone()
    return row != (0,)


def test_help_loads_no_driver_no_keys_and_no_engine() -> None:
    probe = (
        "import sys; from governance.cli import main; code = main(['--help']); "
        "heavy = {'psycopg', 'psycopg_pool', 'cryptography', 'temporalio', 'pydantic'}; "
        "sys.exit(code or repr(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "[]"
    assert "approvals" in done.stdout

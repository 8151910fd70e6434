"""Keys and migrating at the command line."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from governance.signing import load_verifier
from tests.cli.commands import Command, one_error
from tests.servers import LOG_ORIGIN

NAME = LOG_ORIGIN.replace("/", "_")

# ------------------------------------------------------------------------ keys


def test_a_new_key(bare: Command, tmp_path: Path) -> None:
    made = bare("keys", "new", LOG_ORIGIN, "--json").data
    private, public = tmp_path / f"{NAME}.key", tmp_path / f"{NAME}.pub"
    assert (made["private_file"], made["public_file"]) == (private.name, public.name)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert load_verifier(public).text == made["public_key"]
    assert private.read_text().strip() not in str(made)
    before = private.read_bytes()
    assert "File exists" in one_error(bare("keys", "new", LOG_ORIGIN), "key_invalid")
    assert private.read_bytes() == before


def test_a_key_stays_in_its_folder(bare: Command, tmp_path: Path) -> None:
    assert bare("keys", "new", "../../etc/x").code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"_.._etc_x.key", "_.._etc_x.pub"}


@pytest.mark.parametrize("name", ["a+b", "a b"])
def test_what_cannot_name_a_key(bare: Command, name: str) -> None:
    assert "cannot name a key" in one_error(bare("keys", "new", name), "key_invalid")


def test_a_missing_folder_is_made(bare: Command, tmp_path: Path) -> None:
    assert bare("keys", "new", "x", "--out", "a/b").code == 0
    assert (tmp_path / "a" / "b" / "x.key").is_file()
    (tmp_path / "file").touch()
    blocked = bare("keys", "new", "x", "--out", "file/b")
    assert "cannot be made" in one_error(blocked, "key_invalid")


# ------------------------------------------------------------------------ migrate


def test_migrating_names_the_log(
    bare: Command, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", empty_dsn)
    assert "governance migrate" in one_error(bare("approvals", "list"), "schema_missing")
    first = bare("migrate", "--log", "payments.example/log", "--json").data
    assert first["applied"][0] == "0001_initial.sql"
    assert first["log"] == "payments.example/log"
    again = bare("migrate")
    assert again.out == "The schema has version 1; the log is named payments.example/log.\n"
    other = bare("migrate", "--log", "other.example/log")
    assert "keeps its name" in one_error(other, "configuration_invalid")
    assert bare("approvals", "list").code == 0


def test_printing_the_sql_needs_no_database(bare: Command) -> None:
    result = bare("migrate", "--sql", "--log", "payments.example/log")
    assert (result.code, result.err) == (0, "")
    assert "CREATE TABLE governance.entry" in result.out
    assert "'payments.example/log'" in result.out


def test_what_cannot_name_a_log(bare: Command) -> None:
    one_error(bare("migrate", "--sql", "--log", "NO"), "configuration_invalid")

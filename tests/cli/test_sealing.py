"""Sealing and verifying at the command line."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from tests.cli.commands import Command, apart, finished, one_error
from tests.cli.payments import ask, with_client
from tests.servers import LOG_ORIGIN

NAME = LOG_ORIGIN.replace("/", "_")


@pytest.fixture
def key(bare: Command, tmp_path: Path) -> Path:
    """A signing key for the test's log, its public half beside it."""
    assert bare("keys", "new", LOG_ORIGIN, "--out", str(tmp_path)).code == 0
    return tmp_path / f"{NAME}.key"


@pytest.fixture
def sealing(key: Path, tmp_path: Path) -> tuple[str, ...]:
    """The command that seals, with its key and folder."""
    return ("seal", "--key", str(key), "--checkpoints", str(tmp_path / "kept"))


@pytest.fixture
def verifying(key: Path) -> tuple[str, ...]:
    """The command that verifies, with name and key."""
    return ("verify", "--log", LOG_ORIGIN, "--key", str(key.with_suffix(".pub")))


def test_what_was_sealed_verifies(
    cli: Command, waiting: str, sealing: tuple[str, ...], verifying: tuple[str, ...], tmp_path: Path
) -> None:
    assert cli("verify", *verifying[1:]).code == 0  # nothing is sealed yet
    sealed = cli(*sealing, "--json").data
    assert sealed["entries"] == sealed["checkpoint"] > 5
    assert cli(*sealing).out == "Nothing to seal.\n"
    with_client_ask(cli, waiting)
    text = cli(*verifying).out
    assert text.startswith(f"The log {LOG_ORIGIN} holds.\n")
    assert "anything of the last 2 entries: no checkpoint covers them." in text
    assert "for that, give --checkpoint." in text
    latest = str(tmp_path / "kept" / "latest")
    data = cli(*verifying, "--checkpoint", latest, "--json").data
    assert (data["ok"], data["unsealed"], data["first_problem"]) == (True, 2, None)
    assert data["checkpoint"]["size"] == sealed["checkpoint"]


def with_client_ask(cli: Command, waiting: str) -> None:
    """Two more entries: a refusal and a decision."""
    assert cli("approvals", "approve", waiting, "--as", "dora", "--yes").code == 1
    assert cli("approvals", "approve", waiting, "--as", "bruno", "--yes").code == 0


def test_a_change_is_found(
    cli: Command, waiting: str, sealing: tuple[str, ...], verifying: tuple[str, ...], dsn: str
) -> None:
    cli(*sealing)
    with psycopg.connect(dsn) as conn:
        conn.execute("ALTER TABLE governance.payload DISABLE TRIGGER ALL")
        conn.execute(
            "UPDATE governance.payload SET body = replace(convert_from(body, 'UTF8'), 'bruno', "
            "'dora ')::bytea WHERE convert_from(body, 'UTF8') LIKE '%bruno%'"
        )
    result = cli(*verifying)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith(f"The log {LOG_ORIGIN} does NOT hold.\nFirst difference: ")
    problem = cli(*verifying, "--json").data["first_problem"]
    assert problem["entry"] is not None
    assert f"entry {problem['entry']}" in result.out


def test_a_kept_checkpoint_shows_that_the_end_is_gone(
    cli: Command, waiting: str, sealing: tuple[str, ...], verifying: tuple[str, ...], tmp_path: Path
) -> None:
    cli(*sealing)
    other = tmp_path / "other.note"
    other.write_bytes((tmp_path / "kept" / "latest").read_bytes().replace(b"\n", b"\n1", 1))
    assert cli(*verifying, "--checkpoint", str(other)).code == 1
    missing = cli(*verifying, "--checkpoint", str(tmp_path / "none"))
    assert "cannot be read" in one_error(missing, "configuration_invalid")


def test_verifying_takes_keys_as_text_too(
    cli: Command, waiting: str, sealing: tuple[str, ...], key: Path
) -> None:
    cli(*sealing)
    text = key.with_suffix(".pub").read_text().strip()
    assert cli("verify", "--log", LOG_ORIGIN, "--key", text).code == 0


def test_verifying_needs_a_key_that_is_one(cli: Command, dsn: str, tmp_path: Path) -> None:
    asking = ("verify", "--log", LOG_ORIGIN)
    assert "--key" in one_error(cli(*asking), "key_invalid")
    one_error(cli(*asking, "--key", "none.pub"), "key_invalid")
    one_error(cli(*asking, "--key", "a+b+c"), "key_invalid")
    one_error(cli("verify"), "usage")


def test_another_key_or_name_is_a_negative_verdict(
    cli: Command, waiting: str, sealing: tuple[str, ...], verifying: tuple[str, ...], tmp_path: Path
) -> None:
    cli(*sealing)
    cli("keys", "new", "other.example/log", "--out", str(tmp_path))
    other = str(tmp_path / "other.example_log.pub")
    assert cli("verify", "--log", LOG_ORIGIN, "--key", other).code == 1
    assert cli("verify", "--log", "other.example/log", *verifying[3:]).code == 1


def test_sealing_needs_key_and_folder(cli: Command, waiting: str, key: Path) -> None:
    assert "--checkpoints" in one_error(cli("seal", "--key", str(key)), "configuration_invalid")
    kept = ("seal", "--checkpoints", "kept")
    one_error(cli(*kept), "key_invalid")
    one_error(cli(*kept, "--key", "none"), "key_invalid")
    key.chmod(0o644)
    assert "chmod 600" in one_error(cli(*kept, "--key", str(key)), "key_invalid")


def test_an_empty_folder_is_refused_unless_it_is_said_to_be_new(
    cli: Command, waiting: str, sealing: tuple[str, ...], tmp_path: Path
) -> None:
    cli(*sealing)
    elsewhere = (*sealing[:3], "--checkpoints", str(tmp_path / "elsewhere"))
    one_error(cli(*elsewhere), "chain_broken", 1)
    assert cli(*elsewhere, "--new-folder").code == 0


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_following_seals_what_comes_until_it_is_stopped(
    prepared: str, sealing: tuple[str, ...], how: signal.Signals, code: int
) -> None:
    process = apart(*sealing, "--follow", "--interval", "0.05", url=prepared)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("Sealed ")
        with_client(prepared, ask)
        assert process.stdout.readline().startswith("Sealed 2 entries; signed a checkpoint of")
        second = finished(apart(*sealing, url=prepared))
        one_error(second, "sealer_running")
    finally:
        process.send_signal(how)
    result = finished(process)
    assert (result.code, result.err) == (code, "")

"""The command line over a database of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from governance.cli import main
from tests.cli.commands import Command, Result
from tests.cli.payments import REALM, ask, prepare, with_client


@pytest.fixture
def prepared(dsn: str) -> str:
    """The DSN of a database with contract and people."""
    with_client(dsn, prepare)
    return dsn


@pytest.fixture
def waiting(prepared: str) -> str:
    """A payment of ana's that waits: the approval's id."""
    return with_client(prepared, ask).hex


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without settings of its own, in an empty folder."""
    for name in list(os.environ):
        if name.startswith("GOVERNANCE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bare(settings: None, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process, without a database; stdin is no terminal."""

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def cli(bare: Command, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process, with the test's database and realm."""
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", dsn)
    monkeypatch.setenv("GOVERNANCE_REALM", REALM)
    return bare

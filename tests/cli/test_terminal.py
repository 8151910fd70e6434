"""Deciding on a terminal: the card, then the question."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from tests.cli.commands import COMMAND, ROOT, Command
from tests.cli.payments import DIGEST, REALM


@dataclass
class Terminal:
    """The command on a terminal of its own."""

    url: str
    seen: str = field(default="")

    def run(self, *arguments: str, answers: tuple[tuple[str, bytes | None], ...] = ()) -> int:
        """Run to the end.

        Each answer is typed when its question has appeared; None stands for Ctrl-C.
        """
        ours, theirs = os.openpty()
        own = {"GOVERNANCE_DATABASE_URL": self.url, "GOVERNANCE_REALM": REALM}
        own |= {"PYTHONPATH": str(ROOT), "TERM": "dumb"}
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments],
            env=os.environ | own,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        for question, answer in answers:
            self._read(ours, question)
            if answer is None:
                process.send_signal(signal.SIGINT)
            else:
                os.write(ours, answer)
        self._read(ours, None)
        os.close(ours)
        return process.wait(30)

    def _read(self, handle: int, until: str | None) -> None:
        start = len(self.seen)
        while until is None or until not in self.seen[start:]:
            try:
                data = os.read(handle, 65536)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                assert until is None, f"ended before {until!r}:\n{self.seen}"
                return
            self.seen += data.decode()


@pytest.fixture
def terminal(prepared: str, settings: None) -> Terminal:
    return Terminal(prepared)


QUESTION = "? [y/N]:"


def test_the_card_comes_before_the_question(terminal: Terminal, cli: Command, waiting: str) -> None:
    code = terminal.run(
        "approvals", "approve", waiting, "--as", "bruno", answers=((QUESTION, b"y\n"),)
    )
    assert code == 0, terminal.seen
    card, question = terminal.seen.split('Approve "Pay 4200.00 to ACME"? [y/N]:')
    assert DIGEST in card
    assert "bruno can decide" in card
    assert "Approved: Pay 4200.00 to ACME" in question
    assert cli("approvals", "show", waiting, "--json").data["state"] == "approved"


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (b"n\n", 1, "Nothing was decided."),
        (b"\n", 1, "Nothing was decided."),
        (None, 130, "stopped: Nothing was done."),
        (b"\x04", 130, "stopped: Nothing was done."),
    ],
)
def test_no_is_no(
    terminal: Terminal, cli: Command, waiting: str, answer: bytes | None, code: int, said: str
) -> None:
    ended = terminal.run(
        "approvals", "approve", waiting, "--as", "bruno", answers=((QUESTION, answer),)
    )
    assert ended == code, terminal.seen
    assert said in terminal.seen
    assert "Traceback" not in terminal.seen
    assert cli("approvals", "show", waiting, "--json").data["decisions"] == []


def test_a_missing_reason_is_asked_for(terminal: Terminal, cli: Command, waiting: str) -> None:
    answers = ((QUESTION, b"y\n"), ("Why?:", b"wrong payee\n"))
    code = terminal.run("approvals", "reject", waiting, "--as", "bruno", answers=answers)
    assert code == 0, terminal.seen
    [decision] = cli("approvals", "show", waiting, "--json").data["decisions"]
    assert (decision["verdict"], decision["reason"]) == ("reject", "wrong payee")

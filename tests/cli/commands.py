"""Running the command, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.payments import REALM

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "postgresql://nobody:hunter2@127.0.0.1:1/governance"
COMMAND = "import sys; from temporal_integration._entry import main; sys.exit(main())"


@dataclass
class Result:
    """What a command printed and ended with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON value on stdout."""
        return json.loads(self.out)


Command = Callable[..., Result]


def apart(*arguments: str, url: str = "", **environment: str) -> subprocess.Popen[str]:
    """The command as a process of its own, started but not awaited."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("GOVERNANCE_")}
    own |= {"GOVERNANCE_REALM": REALM, "PYTHONPATH": str(ROOT)} | environment
    if url:
        own["GOVERNANCE_DATABASE_URL"] = url
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> Result:
    """What came of a process."""
    out, err = process.communicate(timeout=60)
    return Result(process.returncode, out, err)


def one_error(result: Result, code: str, exit_code: int = 2) -> str:
    """The message of the one error that ended a command, which printed nothing else."""
    assert result.code == exit_code, result
    assert result.out == ""
    [line] = result.err.splitlines()
    start = f"governance: {code}: "
    assert line.startswith(start), line
    return line.removeprefix(start)

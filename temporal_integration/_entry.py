"""The ``governance`` command: checks that its parts are there, then starts the CLI.

It lives outside the ``governance`` package because another package of that name may be
the one that gets imported.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from temporal_integration._distribution import DISTRIBUTION, governance_conflict

USAGE_ERROR: Final = 2
"""Exit code for bad input, configuration or installation."""


def main() -> int:
    """Runs the command line.

    Returns:
        The exit code: 0 done, 1 negative verdict, 2 bad input, configuration or
        installation. The last includes another package named ``governance`` in the
        way, and the missing ``cli`` extra; each prints one line to stderr.
    """
    problem = governance_conflict() or _missing_extra()
    if problem is not None:
        print(f"governance: {problem}", file=sys.stderr)
        return USAGE_ERROR
    # Imported by name at this point only: before the check it may be somebody else's.
    code: int | None = import_module("governance.cli").main()
    return code or 0


def _missing_extra() -> str | None:
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if not missing:
        return None
    return f"The command line needs {' and '.join(missing)}: run pip install '{DISTRIBUTION}[cli]'."

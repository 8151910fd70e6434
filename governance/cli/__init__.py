"""The `governance` command: the door for a terminal and for scripts.

Importing it, and `governance --help`, load neither database driver nor keys: each command imports
what it needs when it runs. docs/reference/cli.md lists commands, options and exit codes.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, see `governance.cli.running`; needs the extra `cli`.

    Args:
        arguments: Instead of the process's.

    Returns:
        The exit code, see `governance.cli.exits`.
    """
    from governance.cli.running import run

    return run(arguments)

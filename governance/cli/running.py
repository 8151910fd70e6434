"""Running a command line: one line on stderr for what went wrong, and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Final, cast

import typer

from governance.cli import exits
from governance.cli.text import visible
from governance.errors import GovernanceError

# The library's base of all that is wrong with a command line has no public name in every version.
_CommandLineError: Final = cast("type[Exception]", typer.BadParameter.__mro__[2])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: Instead of the process's.

    Returns:
        The exit code, see `governance.cli.exits`.
    """
    _prepare()
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer would be written, and fail, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.CUT_OFF
    return code


def _prepare() -> None:
    """Keep other packages' log lines off the terminal; show what it cannot encode as escapes."""
    logging.getLogger().addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _invoke(arguments: Sequence[str] | None) -> int:
    from governance.cli.app import command

    try:
        code: object = command().main(
            None if arguments is None else list(arguments),
            prog_name="governance",
            standalone_mode=False,
        )
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the library's answer to it is 1
            raise error.__context__ from None
        raise
    except GovernanceError as error:
        _complain(error.code, error.message, error.hint)
        return exits.of(type(error))
    except typer.Abort:
        sys.stderr.write("\n")  # behind the question
        _complain("stopped", "Nothing was done.", None)
        return exits.INTERRUPTED
    except _CommandLineError as error:
        _explain(error)
        return exits.UNUSABLE
    return code if isinstance(code, int) else exits.DONE


def _complain(code: str, message: str, hint: str | None) -> None:
    text = message if hint is None else f"{message}{_gap(message)}{hint}"
    sys.stderr.write(f"governance: {code}: {visible(text, breaks=True)}\n")


def _gap(message: str) -> str:
    return "\n" if "\n" in message else " "


def _explain(error: Exception) -> None:
    """Say what is wrong with the command line, and how to learn more."""
    told = getattr(error, "format_message", None)
    message = str(told() if told is not None else error).strip().replace("Value error, ", "")
    if message.startswith("Usage:"):  # a group without a command
        sys.stderr.write(f"{message}\n")
        return
    context: typer.Context | None = getattr(error, "ctx", None)
    hint = None if context is None else f"`{context.command_path} --help` shows what it takes."
    _complain("usage", message, hint)

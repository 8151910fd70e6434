"""What commands print: lines, tables and fields for people, one JSON value for programs."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from governance.cli.text import visible

_UNBROKEN: Final = 100_000
_STYLES: Final = {
    "pending": "yellow",
    "approved": "green",
    "used": "green",
    "active": "green",
    "completed": "green",
    "rejected": "red",
    "denied": "red",
    "failed": "red",
}


def say(text: str = "") -> None:
    """Print a line; line breaks in it are kept."""
    sys.stdout.write(f"{visible(text, breaks=True)}\n")


def note(text: str) -> None:
    """Print a line beside the result, to stderr."""
    sys.stderr.write(f"{visible(text, breaks=True)}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: wrapped to a terminal's width, else one row a line."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in head:
        grid.add_column(name, no_wrap=name == "ID", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(visible(cell), style=_STYLES.get(cell, "")) for cell in row))
    _print(grid)


def fields(pairs: Sequence[tuple[str, str]], *, aside: bool = False) -> None:
    """Print labels with their values, which may have several lines; aside: to stderr."""
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, value in pairs:
        style = _STYLES.get(value, "")
        grid.add_row(Text(visible(label)), Text(visible(value, breaks=True), style=style))
    _print(grid, aside)


def title(text: str, *, aside: bool = False) -> None:
    """Print a line that stands out; aside: to stderr."""
    _print(Text(visible(text), style="bold"), aside)


def as_json(value: object, *, lines: bool = False) -> None:
    """Print one JSON value, in ASCII: nothing in it reaches a terminal unescaped.

    Args:
        value: What to print.
        lines: On one line, for a command that prints one after the other.
    """
    sys.stdout.write(f"{json.dumps(value, indent=None if lines else 2, default=_plain)}\n")


def _print(grid: Table | Text, aside: bool = False) -> None:
    stream = sys.stderr if aside else sys.stdout
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(grid)
        return
    console.width = _UNBROKEN
    with console.capture() as captured:
        console.print(grid, soft_wrap=isinstance(grid, Text))
    lines = captured.get().splitlines()
    stream.write("".join(f"{line.rstrip()}\n" for line in lines))


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be printed as JSON")

"""Words for a terminal: text from outside made harmless, times and spans as people say them."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta
from typing import Final

SHORT: Final = 12
"""Hexadecimal digits of an id or digest where the whole one would not fit."""

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def visible(text: str, *, breaks: bool = False) -> str:
    """Text that changes nothing but the place where it is printed.

    What a terminal would obey or hide (escape sequences, text turned around, invisible characters)
    is shown as an escape, so that two different texts never look the same.

    Args:
        text: Any text.
        breaks: Line breaks and tabs are meant; else they are escaped too.
    """
    return "".join(c if _shown(c, breaks) else _escaped(c) for c in text)


def moment(at: datetime | None, now: datetime) -> str:
    """A time in the reader's zone, and how far away it is; a dash if there is none."""
    if at is None:
        return "-"
    local = at.astimezone()
    away = at - now
    near = f"in {span(away)}" if away > timedelta(0) else f"{span(-away)} ago"
    return f"{local:%Y-%m-%d %H:%M %Z} ({near})"


def clock(at: datetime) -> str:
    """A time in the reader's zone, to the second."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z}"


def span(length: timedelta) -> str:
    """A length of time in its largest whole unit: `3 d`, `12 h`, `5 min`, `0 s`."""
    seconds = max(0, int(length.total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def one_of(names: tuple[str, ...]) -> str:
    """`finance-approver or cfo`."""
    return " or ".join(names)


def _shown(character: str, breaks: bool) -> bool:
    if character in "\n\t":
        return breaks
    return unicodedata.category(character) not in _UNSEEN


def _escaped(character: str) -> str:
    if character in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"

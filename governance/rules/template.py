"""What approvers read: shown values, title and links, made from the arguments alone.

Titles and links are made from the shown values, so they hold nothing that is not readable anyway.
Values come from outside: each is cleaned and cut on its own, so that none can hide another.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import cast
from urllib.parse import quote

from governance import canonical
from governance.canonical import Exact
from governance.contracts import ApprovalRule
from governance.contracts.placeholders import Placeholder, parse
from governance.contracts.pointer import MISSING, resolve
from governance.rules.arguments import Argument, Unreadable

MAX_SHOWN = 1000
"""Longest shown value, in characters."""

MAX_IN_TITLE = 80
"""Longest value inside a title, in characters."""

_ABSENT = "(missing)"
_UNREADABLE = "(unreadable)"


def shown_values(rule: ApprovalRule, arguments: Sequence[Argument]) -> dict[str, str]:
    """Return the values that approvers see, by label.

    A number is written as in the input, to its last zero; lists and tables are JSON. What is not
    there reads `(missing)`, what cannot be read `(unreadable)`.
    """
    return {item.label: _shown(arguments, item.path) for item in rule.show}


def render_title(rule: ApprovalRule, shown: Mapping[str, str], default: str) -> str:
    """Return the line by which people know an approval.

    Args:
        rule: The approval.
        shown: What `shown_values` returned.
        default: The title where the contract has none.
    """
    if rule.title is None:
        return clean(default, MAX_SHOWN)
    values = _by_path(rule, shown)
    return "".join(
        clean(values[part.path], MAX_IN_TITLE) if isinstance(part, Placeholder) else part
        for part in parse(rule.title)
    )


def render_links(rule: ApprovalRule, shown: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses that approvers can open, by label, with every value percent-encoded.

    A link is left out where a value that it needs is missing, unreadable or was cut.
    """
    values = _by_path(rule, shown)
    links: dict[str, str] = {}
    for link in rule.links:
        parts = parse(link.url)
        needed = [values[part.path] for part in parts if isinstance(part, Placeholder)]
        if not any(value in (_ABSENT, _UNREADABLE) or value.endswith("…") for value in needed):
            links[link.label] = "".join(
                quote(values[part.path], safe="") if isinstance(part, Placeholder) else part
                for part in parts
            )
    return links


def clean(text: str, longest: int) -> str:
    """Return text that is safe to show on one line.

    Control characters and line breaks become a space, runs of space one; format characters, which
    turn text around (bidi) or are invisible, go. Text longer than `longest` ends in `…`.
    """
    seen = (_visible(character) for character in text)
    flat = " ".join("".join(seen).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _visible(character: str) -> str:
    match unicodedata.category(character):
        case "Cc" | "Zl" | "Zp":
            return " "
        case "Cf" | "Cs":
            return ""
        case _:
            return character


def _by_path(rule: ApprovalRule, shown: Mapping[str, str]) -> dict[str, str]:
    return {item.path: shown.get(item.label, _ABSENT) for item in rule.show}


def _shown(arguments: Sequence[Argument], path: str) -> str:
    argument = resolve(arguments, "/" + path.split("/")[1])
    if isinstance(argument, Unreadable):
        return _UNREADABLE
    found = resolve(arguments, path)
    return _ABSENT if found is MISSING else clean(_text(cast("Exact", found)), MAX_SHOWN)


def _text(value: Exact) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    return canonical.exact_dumps(value).decode()

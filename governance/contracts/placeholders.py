"""Text with `{/0/amount}` in it: JSON Pointers to be replaced by what the arguments hold there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from governance.contracts import pointer

_PARTS = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")


@dataclass(frozen=True)
class Placeholder:
    """A place in a template.

    Attributes:
        path: JSON Pointer into the list of arguments.
    """

    path: str


def parse(template: str) -> tuple[str | Placeholder, ...]:
    """Split a template into text and placeholders; `{{` and `}}` are literal braces.

    Raises:
        ValueError: A brace without its partner, or a placeholder that is no JSON Pointer.
    """
    parts: list[str | Placeholder] = []
    for match in _PARTS.finditer(template):
        piece = match[0]
        if piece in ("{{", "}}"):
            parts.append(piece[0])
        elif piece in ("{", "}"):
            raise ValueError(f"a {piece} without its partner; a literal brace is written twice")
        elif piece.startswith("{"):
            parts.append(_placeholder(match[1]))
        else:
            parts.append(piece)
    return tuple(parts)


def paths(template: str) -> tuple[str, ...]:
    """Return the pointers that a template names, in order.

    Raises:
        ValueError: As for `parse`.
    """
    return tuple(part.path for part in parse(template) if isinstance(part, Placeholder))


def _placeholder(path: str) -> Placeholder:
    if not pointer.parse(path):
        raise ValueError("an empty placeholder")
    return Placeholder(path)

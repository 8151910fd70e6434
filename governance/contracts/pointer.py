"""JSON Pointer (RFC 6901), parsed and evaluated.

In a contract every pointer addresses the list of a call's arguments: `/0/amount` is the member
`amount` of the first argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        """Return the name of the one instance."""
        return "MISSING"


MISSING: Final = Missing()
"""What `resolve` answers for a pointer that leads nowhere."""


def parse(pointer: str) -> tuple[str, ...]:
    """Split a pointer into its unescaped tokens; the empty pointer, the whole document, has none.

    Raises:
        ValueError: Not a JSON Pointer by RFC 6901, section 3.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError("a JSON Pointer begins with /")
    if _BAD_ESCAPE.search(pointer):
        raise ValueError("in a JSON Pointer ~ is written ~0 and / inside a key is written ~1")
    # ~1 first: "~01" is the key "~1" (RFC 6901, section 4).
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))


def is_index(token: str) -> bool:
    """Tell whether a token is an array index: digits without leading zeros."""
    return _INDEX.fullmatch(token) is not None


def resolve(document: object, pointer: str) -> object:
    """Follow a pointer through lists and mappings.

    Args:
        document: What the pointer is relative to.
        pointer: A JSON Pointer.

    Returns:
        What it points at, or `MISSING` where the document has no such place. `-`, the element after
        the last one of an array, is always missing.

    Raises:
        ValueError: Not a JSON Pointer.
    """
    here = document
    for token in parse(pointer):
        here = _step(here, token)
        if here is MISSING:
            break
    return here


def _step(here: object, token: str) -> object:
    if isinstance(here, Mapping):
        return cast("Mapping[str, object]", here).get(token, MISSING)
    if isinstance(here, list | tuple) and is_index(token):
        items = cast("Sequence[object]", here)
        return items[int(token)] if int(token) < len(items) else MISSING
    return MISSING

"""From what is wrong in a contract to the one message that says so.

A line per problem: where, what was found, what is allowed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import ErrorDetails, PydanticCustomError

from governance.errors import ContractInvalid

_CUSTOM: Final = "contract"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MOST_LINES = 25
_MOST_FOUND = 80
_SHAPES = {
    "tuple_type": "a list",
    "mapping_type": "a table",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_type": "a string",
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: Keys and list positions that lead there.
        found: What stands there, as text.
        allowed: What may stand there.
    """

    path: tuple[str | int, ...]
    found: str
    allowed: str

    def line(self) -> str:
        """Return the problem as one line without its source."""
        return f"{dotted(self.path)}: found {self.found}; allowed: {self.allowed}"


def dotted(path: Sequence[str | int]) -> str:
    """Write a path as in `steps[1].when[0].path`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE.fullmatch(part) else repr(part)
            text += f".{key}" if text else key
    return text or "contract"


def shown(value: object) -> str:
    """Write a value as the reader would recognise it, on one line and cut to a sensible length."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    # ascii() would hide plain letters of other scripts; repr() escapes what does not print.
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _MOST_FOUND else f"{text[:_MOST_FOUND]}…"


def wrong(allowed: str, *, found: str | None = None) -> PydanticCustomError:
    """Make the error that a field's validator raises."""
    # The text goes into the context: pydantic would read braces in the template as fields.
    return PydanticCustomError(_CUSTOM, "{allowed}", {"allowed": allowed, "found": found})


def several(problems: Iterable[Problem]) -> PydanticCustomError:
    """Make the error that carries problems found by looking at a whole model."""
    return PydanticCustomError(_CUSTOM, "several", {"problems": tuple(problems)})


def closest(word: str, known: Iterable[str]) -> str:
    """Return the known words, and a guess which of them was meant."""
    names = sorted(known)
    if not names:
        return "none is declared"
    near = difflib.get_close_matches(word, names, n=1)
    listed = ", ".join(names)
    return f"{listed} (did you mean {near[0]}?)" if near else listed


def read_errors(errors: Iterable[ErrorDetails], keys: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Turn pydantic's findings into problems.

    Args:
        errors: `ValidationError.errors()`.
        keys: The keys allowed in each table, by the name of the key that holds such tables; the
            outermost table under the empty name.
    """
    return [problem for error in errors for problem in _read(error, keys)]


def _read(error: ErrorDetails, keys: Mapping[str, Sequence[str]]) -> list[Problem]:
    path = tuple(part for part in error["loc"] if part != "[key]")
    context: Mapping[str, Any] = error.get("ctx", {})
    inner: Sequence[Problem] | None = context.get("problems")
    if inner is not None:
        return [Problem((*path, *one.path), one.found, one.allowed) for one in inner]
    kind, found = error["type"], shown(error["input"])
    if kind == "extra_forbidden":
        allowed = closest(str(path[-1]), _keys_at(path[:-1], keys))
        return [Problem(path, "an unknown key", allowed)]
    if kind == "default_factory_not_called":
        return []  # follows from another problem, which is listed
    if kind in ("too_short", "too_long"):
        edge = "at least {min_length}" if kind == "too_short" else "at most {max_length}"
        return [Problem(path, found, f"{edge.format(**context)} in the list")]
    if kind == "missing":
        return [Problem(path, "nothing", "this key is required")]
    if kind == "literal_error":
        return [Problem(path, found, str(context["expected"]))]
    if kind == _CUSTOM:
        return [Problem(path, context["found"] or found, context["allowed"])]
    return [Problem(path, found, _SHAPES.get(kind, error["msg"]))]


def _keys_at(path: Sequence[str | int], keys: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the keys of the table that a path leads to."""
    table, parts = "", iter(path)
    for part in parts:
        if isinstance(part, str) and part in keys:
            table = part
            # The position in the list, or the approval's name, which may read like a key.
            next(parts, None)
    return keys[table]


def refusal(source: str, problems: Sequence[Problem]) -> ContractInvalid:
    """Make the one error that names every problem, a line each."""
    lines = [f"{source}: {problem.line()}" for problem in problems[:_MOST_LINES]]
    if len(problems) > _MOST_LINES:
        lines.append(f"{source}: and {len(problems) - _MOST_LINES} more")
    if len(lines) == 1:
        return ContractInvalid(lines[0])
    return ContractInvalid("\n".join([f"{source}: {len(problems)} problems", *lines]))

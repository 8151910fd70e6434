"""Options that several commands share, and how text given on a command line is checked."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, TypeAlias

import typer

_LONGEST = 2000
_VARIABLE = re.compile(r"\n|\t")


def one_line(value: str | None) -> str | None:
    """Refuse text that cannot stand for a name: empty, of several lines, with hidden characters.

    Raises:
        typer.BadParameter: Says why.
    """
    if value is None:
        return None
    if not value.strip() or value != value.strip():
        raise typer.BadParameter("it must not be empty, and have no space at either end.")
    return _checked(value)


def prose(value: str | None) -> str | None:
    """Refuse text with control or invisible characters; lines may break, and it may be empty.

    Raises:
        typer.BadParameter: Says why.
    """
    if value is not None:
        _checked(_VARIABLE.sub(" ", value))
    return value


def _checked(value: str) -> str:
    if len(value) > _LONGEST:
        raise typer.BadParameter(f"it has {len(value)} characters; {_LONGEST} are allowed.")
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise typer.BadParameter(f"the character U+{ord(character):04X} is not allowed.")
    return value


DatabaseUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        envvar="GOVERNANCE_DATABASE_URL",
        show_default=False,
        metavar="URL",
        help="The database, as postgresql://user@host:5432/database.",
    ),
]
Realm: TypeAlias = Annotated[
    str,
    typer.Option(
        "--realm",
        envvar="GOVERNANCE_REALM",
        metavar="NAME",
        callback=one_line,
        help="The trust domain.",
    ),
]
Person: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as",
        envvar="GOVERNANCE_USER",
        metavar="PERSON",
        show_default="the system user",
        callback=one_line,
        help="Who acts. It is recorded beside the system user, who is always recorded.",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON value instead of text.")
]
Reason: TypeAlias = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", callback=prose, help="Why. Kept on the record."),
]

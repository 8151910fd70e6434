"""Named SQL statements from `governance/sql/queries/<topic>.sql`.

A file is a row of blocks: a line `-- name: fetch_step`, comment lines that say what the statement
is for, then one statement. What stands before the first name describes the file. Nothing here
builds SQL: text goes from the file to the server as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final, LiteralString, cast

_NAME: Final = re.compile(r"^-- name:[ \t]*(\S*)[ \t]*$", re.MULTILINE)
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_COMMENT_LINES: Final = re.compile(r"(?:[ \t]*(?:--[^\n]*)?(?:\n|\Z))*")


class Queries(Mapping[str, LiteralString]):
    """The statements of one topic, by name.

    Look them up where the module is imported (`_FETCH = load("steps")["fetch_step"]`): then a
    name that does not exist fails there, not in the middle of a transaction.
    """

    def __init__(self, topic: str, statements: Mapping[str, LiteralString]) -> None:
        """Keep the statements of `topic`."""
        self.topic: Final = topic
        self._statements: Final = dict(statements)

    def __getitem__(self, name: str) -> LiteralString:
        """The statement of that name.

        Raises:
            KeyError: The file has no such name; the message lists those it has.
        """
        if name not in self._statements:
            known = ", ".join(sorted(self._statements)) or "none"
            raise KeyError(f"{self.topic}.sql has no statement named {name!r}; it has: {known}")
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        """Names, in the order of the file."""
        return iter(self._statements)

    def __len__(self) -> int:
        """How many statements there are."""
        return len(self._statements)


def sql_folder() -> Traversable:
    """The folder with everything that the product says to Postgres."""
    return resources.files("governance") / "sql"


def read_sql(file: Traversable) -> LiteralString:
    """The text of one packaged SQL file.

    It counts as literal for type checkers: it is part of the package, like a string in the code.
    """
    text: LiteralString = cast(Any, file.read_text(encoding="utf-8"))
    return text


def topics() -> list[str]:
    """Every topic that has a file, sorted."""
    files = (sql_folder() / "queries").iterdir()
    return sorted(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))


@cache
def load(topic: str) -> Queries:
    """The statements of `governance/sql/queries/<topic>.sql`.

    Raises:
        KeyError: There is no such file.
        ValueError: The file is malformed, see `parse`.
    """
    file = sql_folder() / "queries" / f"{topic}.sql"
    if not _IDENTIFIER.match(topic) or not file.is_file():
        raise KeyError(f"no SQL file for topic {topic!r}; there is: {', '.join(topics())}")
    return Queries(topic, parse(topic, read_sql(file)))


def parse(topic: str, text: LiteralString) -> dict[str, LiteralString]:
    """Cut the text of one file into its named statements.

    Comments before a statement and one closing semicolon are left out.

    Args:
        topic: Names the file in errors.
        text: What the file holds.

    Raises:
        ValueError: A name is malformed or given twice, a name has no statement, or a statement
            stands before the first name.
    """
    head, *blocks = _NAME.split(text)
    if _statement(cast(LiteralString, head)):
        raise ValueError(f"{topic}.sql: a statement stands before the first `-- name:` line")
    found: dict[str, LiteralString] = {}
    for name, body in zip(blocks[::2], blocks[1::2], strict=True):
        if not _IDENTIFIER.match(name):
            raise ValueError(f"{topic}.sql: {name!r} is not a name ([a-z][a-z0-9_]*)")
        if name in found:
            raise ValueError(f"{topic}.sql: two statements are named {name!r}")
        statement = _statement(cast(LiteralString, body))
        if not statement:
            raise ValueError(f"{topic}.sql: {name!r} has no statement")
        found[name] = statement
    return found


def _statement(block: LiteralString) -> LiteralString:
    """The block without the comment lines before the statement and the semicolon after it."""
    comments = _COMMENT_LINES.match(block)
    start = comments.end() if comments else 0
    return block[start:].strip().removesuffix(";").rstrip()

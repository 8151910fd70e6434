"""What a database of this release has, read from the SQL that made it: grants and triggers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Final, NamedTuple

from governance.db.queries import read_sql, sql_folder

_COMMENT: Final = re.compile(r"--[^\n]*")
_ALWAYS: Final = re.compile(r"ALTER TABLE governance\.(\w+) ENABLE ALWAYS TRIGGER (\w+);")
_GRANT: Final = re.compile(
    r"GRANT (?P<what>.+?) ON (?P<kind>ALL TABLES IN SCHEMA |SCHEMA |SEQUENCE |FUNCTION )?"
    r"(?P<objects>.+) TO (?P<roles>[\w, ]+)"
)
_COMMA: Final = re.compile(r", (?![^(]*\))")
_COLUMNS: Final = re.compile(r"(\w+)(?: \((.+)\))?")


class Privilege(NamedTuple):
    """One thing that one role may do with one object, or with one column of it."""

    grantee: str
    privilege: str
    object: str
    field: str = ""

    def __str__(self) -> str:
        """In words."""
        field = f" ({self.field})" if self.field else ""
        return f"{self.privilege}{field} on {self.object} for {self.grantee}"


@cache
def triggers() -> frozenset[tuple[str, str]]:
    """Every trigger, with its table; each is ENABLE ALWAYS."""
    return frozenset(_ALWAYS.findall(read_sql(sql_folder() / "schema.sql")))


def privileges(tables: Collection[str]) -> frozenset[Privilege]:
    """What `grants.sql` grants.

    Args:
        tables: Names of the tables there are, without the schema's.
    """
    text = _COMMENT.sub("", read_sql(sql_folder() / "grants.sql"))
    statements = (" ".join(part.split()) for part in text.split(";"))
    return frozenset(
        one for part in statements if part.startswith("GRANT ") for one in _granted(part, tables)
    )


def _granted(statement: str, tables: Collection[str]) -> Iterator[Privilege]:
    match = _GRANT.fullmatch(statement)
    if match is None:
        raise ValueError(f"grants.sql: not understood: {statement}")
    objects = _COMMA.split(match["objects"])
    if match["kind"] == "ALL TABLES IN SCHEMA ":
        objects = [f"governance.{name}" for name in tables]
    for what in _COMMA.split(match["what"]):
        columns = _COLUMNS.fullmatch(what)
        assert columns is not None, what
        for name in objects:
            for role in match["roles"].split(", "):
                for field in (columns[2] or "").split(", "):
                    full = name.replace("timestamptz", "timestamp with time zone")
                    yield Privilege(role, columns[1], full, field)

"""The canonical form of a contract: what its digest is taken over and what the database keeps.

Every field is written, with its default filled in, so that stored bytes keep their meaning. A field
added in a later release is listed in `ADDED_LATER` and written only where it differs from its
default; defaults never change. So a digest never changes either.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from governance import canonical
from governance.canonical import Json

FORMAT = "governance/contract/1"
"""Name of the form, written into it."""

ADDED_LATER: frozenset[tuple[str, str]] = frozenset(
    {
        ("FlowContract", "elsewhere"),
        ("ApprovalRule", "needed"),
        ("ApprovalRule", "approver_recheck"),
    }
)
"""Pairs of model and field that are left out where they hold their default."""

_NUMBER = "number"


def write(contract: BaseModel) -> bytes:
    """Return a contract as canonical JSON (RFC 8785 without floating-point numbers)."""
    return canonical.dumps({"v": FORMAT, **_table(contract)}, any_keys=True)


def read(data: bytes, max_bytes: int) -> dict[str, Any]:
    """Return what `write` wrote as keywords for the model.

    Raises:
        ValueError: Not canonical JSON, not a table, or of another format.
    """
    value = canonical.loads(data, max_bytes=max_bytes, any_keys=True)
    if not isinstance(value, dict) or value.pop("v", None) != FORMAT:
        raise ValueError(f"it is not of the format {FORMAT}")
    return {key: _decimals(item) for key, item in value.items()}


def key_of(name: str, field: FieldInfo) -> str:
    """Return the key by which a contract file names a field."""
    alias = field.validation_alias
    return alias if isinstance(alias, str) else name


def _table(model: BaseModel) -> dict[str, object]:
    kind = type(model)
    table: dict[str, object] = {}
    for name, field in kind.model_fields.items():
        value = getattr(model, name)
        if value is None or ((kind.__name__, name) in ADDED_LATER and value == field.default):
            continue
        table[key_of(name, field)] = plain(value)
    return table


def plain(value: object) -> object:
    """Return a field's value as it stands in the canonical form; two of them compare as values."""
    if isinstance(value, BaseModel):
        return _table(value)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {key: plain(item) for key, item in table.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, timedelta):
        return f"{value // timedelta(seconds=1)}s"
    if isinstance(value, Decimal):
        # A table, so that the number 5 and the text "5" stay two things.
        return {_NUMBER: canonical.number_text(value)}
    return value


def _decimals(value: Json) -> object:
    if isinstance(value, list):
        return [_decimals(item) for item in value]
    if isinstance(value, dict):
        text = value.get(_NUMBER)
        if len(value) == 1 and isinstance(text, str):
            return _decimal(text)
        return {key: _decimals(item) for key, item in value.items()}
    return value


def _decimal(text: str) -> object:
    try:
        return Decimal(text)
    except InvalidOperation:
        return {_NUMBER: text}  # which no field accepts

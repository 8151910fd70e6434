"""Bytes that two programs agree on: canonical JSON, exact JSON and SHA-256.

Two forms, for two uses:

- `dumps` and `loads`: the profile in which entries, payloads and contracts are stored. It is a
  subset of RFC 8785 (JSON Canonicalization Scheme) without floating-point numbers, so a verifier
  needs no number formatting of ECMAScript.
- `parse_exact` and `exact_dumps`: other people's JSON, read without losing a digit. A number is the
  decimal its text says, so `1.0` and `1.00` are one number and `0.1` is not a binary fraction.

Everything here raises ValueError for input that does not fit, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"] | None
"""A value of the canonical profile."""

Exact: TypeAlias = bool | int | Decimal | str | list["Exact"] | dict[str, "Exact"] | None
"""A JSON value whose numbers are the decimals written in its text."""

MAX_BYTES = 1 << 20
"""Largest canonical text `loads` reads by default."""

MAX_DEPTH = 8
"""Deepest nesting of the canonical profile; a scalar has depth 0."""

EXACT_MAX_BYTES = 4 << 20
"""Largest JSON text `parse_exact` reads by default: twice Temporal's own limit for a payload."""

EXACT_MAX_DEPTH = 64
"""Deepest nesting `parse_exact` reads by default."""

_INT_LIMIT = 1 << 53
_PLAIN_KEY = re.compile(r"[a-z0-9_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Strings first, so that a bracket inside one is not counted; the closing quote is optional, so that
# an unterminated string is scanned once only.
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_PLAIN_EXPONENT = 20
_MAX_DIGITS = 4000


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of `data`, 32 bytes."""
    return hashlib.sha256(data).digest()


def digest_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def dumps(value: object, *, any_keys: bool = False) -> bytes:
    """Write a value of the canonical profile.

    Args:
        value: None, bool, int below 2**53 in magnitude, str, or lists, tuples and mappings of them,
            nested at most `MAX_DEPTH` deep.
        any_keys: Allow every string as a key. Otherwise keys match `[a-z0-9_]+`.

    Returns:
        UTF-8 bytes as RFC 8785 defines them.

    Raises:
        ValueError: The value lies outside the profile.
    """
    return _encode(_checked(value, MAX_DEPTH, any_keys))


def loads(data: bytes, *, max_bytes: int = MAX_BYTES, any_keys: bool = False) -> Json:
    """Read bytes that `dumps` wrote.

    Args:
        data: The bytes.
        max_bytes: Refuse more than this many.
        any_keys: As for `dumps`.

    Raises:
        ValueError: Too large, not JSON, outside the profile, or not in its canonical form.
    """
    value: Json = _parse(data, max_bytes, MAX_DEPTH, parse_float=_no_float)
    if _encode(_checked(value, MAX_DEPTH, any_keys)) != data:
        raise ValueError("the JSON is not in its canonical form")
    return value


def parse_exact(
    data: bytes, *, max_bytes: int = EXACT_MAX_BYTES, max_depth: int = EXACT_MAX_DEPTH
) -> Exact:
    """Read any JSON text without losing a digit.

    Args:
        data: UTF-8 JSON text.
        max_bytes: Refuse more than this many bytes.
        max_depth: Refuse deeper nesting.

    Returns:
        The value: integers as int, every other number as Decimal.

    Raises:
        ValueError: Too large, too deep, not JSON (RFC 8259), an object names a key twice, or a
            string holds half a surrogate pair, or a number is out of the range of Decimal.
    """
    value: Exact = _parse(data, max_bytes, max_depth, parse_float=_decimal)
    _refuse_surrogates(value)
    return value


def exact_dumps(value: Exact) -> bytes:
    """Write an exact value so that equal values have equal bytes.

    Keys are sorted and strings escaped as in RFC 8785; a number is written by `number_text`. The
    result is JSON.

    Raises:
        ValueError: A float, a non-finite decimal, half a surrogate pair, or another type.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return _encode(_scalar(value))
    if isinstance(value, int | Decimal):
        return number_text(value).encode()
    if isinstance(value, list | tuple):
        return b"[" + b",".join(exact_dumps(item) for item in value) + b"]"
    if isinstance(value, Mapping):
        members = (
            _encode(_scalar(key)) + b":" + exact_dumps(value[key])
            for key in sorted(value, key=_utf16)
        )
        return b"{" + b",".join(members) + b"}"
    raise ValueError(f"{type(value).__name__} is not an exact JSON value")


def number_text(value: int | Decimal) -> str:
    """Write a number so that equal numbers have equal text.

    No trailing zeros and no sign on zero. Plain notation while the digits that count lie within 20
    places of the point, else an integer with an exponent, so that `1e999999` stays short.

    Raises:
        ValueError: The number is not finite.
    """
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{number} is not a number that JSON knows")
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "0"
    stripped = text.rstrip("0")
    power = int(exponent) + len(text) - len(stripped)
    # Built from digits: Decimal's own normalising would round to the precision of the context.
    body = _plain(stripped, power) if abs(power) <= _PLAIN_EXPONENT else f"{stripped}e{power}"
    return f"-{body}" if sign else body


def _plain(digits: str, power: int) -> str:
    if power >= 0:
        return digits + "0" * power
    padded = digits.rjust(1 - power, "0")
    return f"{padded[:power]}.{padded[power:]}"


def _checked(value: object, depth: int, any_keys: bool) -> Json:
    """Copy a value of the profile with its keys in RFC 8785 order."""
    if isinstance(value, Mapping):
        if depth == 0:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        keys = sorted((_key(key, any_keys) for key in value), key=_utf16)
        return {key: _checked(value[key], depth - 1, any_keys) for key in keys}
    if isinstance(value, list | tuple):
        if depth == 0:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        return [_checked(item, depth - 1, any_keys) for item in value]
    return _scalar(value)


def _scalar(value: object) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= _INT_LIMIT:
            raise ValueError("an integer is 2**53 or more in magnitude")
        return value
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise ValueError("a string holds half a surrogate pair")
        return value
    raise ValueError(f"{type(value).__name__} is not part of the canonical profile")


def _key(key: object, any_keys: bool) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a key is a {type(key).__name__}, not a string")
    if any_keys:
        _scalar(key)
    elif not _PLAIN_KEY.fullmatch(key):
        raise ValueError(f"the key {key!r} is not made of a-z, 0-9 and _")
    return key


def _utf16(key: str) -> bytes:
    # RFC 8785, 3.2.3 sorts by UTF-16 code units, which differs from code points above U+FFFF.
    return key.encode("utf-16-be", "surrogatepass")


def _encode(value: Json) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _parse(data: bytes, max_bytes: int, max_depth: int, *, parse_float: Any) -> Any:
    if len(data) > max_bytes:
        raise ValueError(f"{len(data)} bytes of JSON, at most {max_bytes} are read")
    _refuse_depth(data, max_depth)
    return json.loads(
        data.decode("utf-8"),  # UnicodeDecodeError is a ValueError
        parse_int=_integer,
        parse_float=parse_float,
        parse_constant=_no_constant,
        object_pairs_hook=_unique,
    )


def _refuse_depth(data: bytes, max_depth: int) -> None:
    # Before parsing: the parser of the standard library recurses once per level.
    depth = 0
    for match in _BRACKETS.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            depth += 1
            if depth > max_depth:
                raise ValueError(f"nested more than {max_depth} deep")
        elif first in b"]}":
            depth -= 1


def _refuse_surrogates(value: Exact) -> None:
    if isinstance(value, str):
        _scalar(value)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _scalar(key)
            _refuse_surrogates(item)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a key twice")
    return members


def _integer(text: str) -> int:
    _refuse_long(text)
    return int(text)


def _decimal(text: str) -> Decimal:
    _refuse_long(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the number {text[:40]} is out of range") from None
    if not number.is_finite():
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _refuse_long(text: str) -> None:
    # A limit of our own: the interpreter's can be set otherwise in another process, which would
    # then read another value from the same bytes.
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters, at most {_MAX_DIGITS} are read")


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:40]} is not an integer")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")

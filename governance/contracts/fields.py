"""The types of a contract's fields: what each accepts, and the words that say so."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, TypeAlias, TypeVar

from annotated_types import MaxLen
from pydantic import AfterValidator, BeforeValidator, PlainValidator

from governance.contracts import form, pointer
from governance.contracts.problems import shown, wrong

MAX_TEXT = 2000
"""Longest text in a contract, in characters."""

MAX_NAME = 200
"""Longest name in a contract, in characters."""

MAX_PEOPLE = 20
"""Most people that one approval can take."""

_T = TypeVar("_T")
_DURATION = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_DURATION = timedelta(days=3660)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,6})?")
_MAX_DIGITS = 100
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# Controls, formats (they turn text around or hide it), halves of pairs, line separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def decimal_text(text: str) -> Decimal | None:
    """Read a decimal written as JSON writes numbers (RFC 8259, section 6); None for other text."""
    if len(text) > _MAX_DIGITS or not _DECIMAL.fullmatch(text):
        return None
    return Decimal(text)


def _text(value: object, allowed: str, longest: int, breaks: str = "") -> str:
    if not isinstance(value, str):
        raise wrong(allowed)
    if not value or value != value.strip():
        raise wrong(f"{allowed}, not empty, without space at either end")
    if len(value) > longest:
        raise wrong(f"{allowed}, at most {longest} characters", found=f"{len(value)} characters")
    for character in value:
        if unicodedata.category(character) in _UNSEEN and character not in breaks:
            found = f"the character U+{ord(character):04X}"
            raise wrong(f"{allowed}, visible characters only", found=found)
    return value


def _name(value: object) -> str:
    return _text(value, "a name", MAX_NAME)


def _label(value: object) -> str:
    name = _name(value)
    if not _LABEL.fullmatch(name):
        raise wrong("letters, digits, . - and _, beginning with a letter or digit")
    return name


def _line(value: object) -> str:
    return _text(value, "one line of text", MAX_TEXT)


def _prose(value: object) -> str:
    # TOML's multi-line strings end in a line break that nobody means.
    return _text(value.strip() if isinstance(value, str) else value, "text", MAX_TEXT, "\n\t")


def _binding_pointer(value: object) -> str:
    allowed = "a JSON Pointer into the list of arguments, as in /0/amount"
    if not isinstance(value, str):
        raise wrong(allowed)
    if value:
        _text(value, allowed, MAX_TEXT)
    try:
        tokens = pointer.parse(value)
    except ValueError as error:
        raise wrong(f"{allowed} ({error})") from None
    if tokens and not pointer.is_index(tokens[0]):
        raise wrong(f"{allowed} (first comes the position of the argument)")
    return value


def _argument_pointer(value: object) -> str:
    if not (text := _binding_pointer(value)):
        raise wrong("a JSON Pointer to an argument or into one, as in /0 or /0/amount")
    return text


def _duration(value: object) -> timedelta:
    allowed = "a duration such as 90s, 30m, 12h or 4d, at most ten years"
    if isinstance(value, timedelta):
        duration = value
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        duration = timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    else:
        raise wrong(allowed)
    if not timedelta(0) < duration <= _MAX_DURATION or duration.microseconds:
        raise wrong(f"{allowed}, in whole seconds")
    return duration


def _lease(value: object) -> timedelta:
    lease = _duration(value)
    if not timedelta(seconds=5) <= lease <= timedelta(hours=1):
        raise wrong("a duration from 5s to 1h")
    return lease


def _number(value: object) -> Decimal:
    allowed = 'a decimal, as a number or as text such as "99.50"'
    number: Decimal | None = None
    if isinstance(value, str):
        number = decimal_text(value)
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        # A float is refused: its decimals are not the ones that were typed.
        number = Decimal(value)
    if number is None or not number.is_finite() or len(str(number)) > _MAX_DIGITS:
        raise wrong(allowed)
    return number


def _scalar(value: object) -> str | bool | Decimal:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > MAX_TEXT or any(unicodedata.category(c) == "Cs" for c in value):
            raise wrong(f"text of at most {MAX_TEXT} characters", found="another text")
        return value
    if isinstance(value, int | Decimal):
        return _number(value)
    raise wrong("text, true, false or a decimal")


def _people(value: object) -> int:
    # No Decimal: 2.0 approvers is a slip.
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_PEOPLE:
        raise wrong(f"a whole number from 1 to {MAX_PEOPLE}")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong("true or false")
    return value


def _listing(value: object) -> object:
    # Not any iterable: a set has no order, and a string is one of characters.
    if not isinstance(value, list | tuple):
        raise wrong("a list")
    return value


def _unrepeated(value: tuple[_T, ...]) -> tuple[_T, ...]:
    # In plain form, because in Python True equals Decimal(1).
    forms = [form.plain(item) for item in value]
    for position, item in enumerate(forms):
        if item in forms[:position]:
            raise wrong("each entry once", found=f"{shown(value[position])} twice")
    return value


def labelled(key: str) -> BeforeValidator:
    """Let a table of label to text stand for a list of tables with `label` and `key`.

    In a list a bare text stands for itself, labelled by the last name in it.
    """

    def spread(value: object) -> object:
        if isinstance(value, Mapping):
            return [{"label": label, key: text} for label, text in value.items()]
        if isinstance(value, list | tuple):
            return [_with_label(item, key) if isinstance(item, str) else item for item in value]
        raise wrong("a list, or a table with a label per line")

    return BeforeValidator(spread)


def _with_label(text: str, key: str) -> dict[str, str]:
    names = [token for token in text.split("/") if token and not token.isdigit()]
    return {"label": names[-1] if names else text, key: text}


Name: TypeAlias = Annotated[str, PlainValidator(_name)]
"""Visible text on one line, at most `MAX_NAME` characters."""

Label: TypeAlias = Annotated[str, PlainValidator(_label)]
"""A name that can be typed on a command line without quotes."""

Line: TypeAlias = Annotated[str, PlainValidator(_line)]
"""Visible text on one line, at most `MAX_TEXT` characters."""

Prose: TypeAlias = Annotated[str, PlainValidator(_prose)]
"""Visible text, at most `MAX_TEXT` characters; lines may break."""

ArgumentPointer: TypeAlias = Annotated[str, PlainValidator(_argument_pointer)]
"""A JSON Pointer to an argument or into one."""

BindingPointer: TypeAlias = Annotated[str, PlainValidator(_binding_pointer)]
"""The same, or the empty pointer: the whole list of arguments."""

Duration: TypeAlias = Annotated[timedelta, PlainValidator(_duration)]
"""A whole number of seconds, minutes, hours or days; a timedelta in Python."""

Lease: TypeAlias = Annotated[timedelta, PlainValidator(_lease)]
"""A duration from 5 s to 1 h."""

Number: TypeAlias = Annotated[Decimal, PlainValidator(_number)]
"""A decimal, never a float."""

People: TypeAlias = Annotated[int, PlainValidator(_people)]
"""How many people: a whole number from 1 to `MAX_PEOPLE`."""

Scalar: TypeAlias = Annotated[str | bool | Decimal, PlainValidator(_scalar)]
"""What a condition compares with: text, true, false or a decimal."""

Switch: TypeAlias = Annotated[bool, PlainValidator(_switch)]
"""True or false, no word for it."""

# MaxLen, not Field(): pydantic 2.10 lets the default of one field leak into others that share it.
Series: TypeAlias = Annotated[tuple[_T, ...], BeforeValidator(_listing), MaxLen(200)]
"""A list, at most 200 entries."""

Listed: TypeAlias = Annotated[Series[_T], AfterValidator(_unrepeated)]
"""A list without repetitions, at most 200 entries."""

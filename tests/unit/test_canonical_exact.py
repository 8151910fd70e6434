"""Other people's JSON, read and written without losing a digit."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance import canonical

NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False)


def test_exact_numbers_keep_every_digit() -> None:
    value = canonical.parse_exact(b'{"a":0.1,"b":12345678901234567890123.450,"c":9007199254740993}')
    assert value == {
        "a": Decimal("0.1"),
        "b": Decimal("12345678901234567890123.450"),
        "c": 9007199254740993,
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a":1,"a":1}', "names a key twice"),
        (b'{"a":1,"\\u0061":2}', "names a key twice"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b'["\\ud83d"]', "half a surrogate pair"),
        (b'{"\\udc00":1}', "half a surrogate pair"),
        (b"[01]", "Expecting"),
        (b"[1.]", "Expecting"),
        (b"[1e99999999999999999999]", "out of range"),
        (b"[" + b"9" * 5000 + b"]", "a number of 5000 characters"),
        (b"[0." + b"1" * 5000 + b"]", "a number of 5002 characters"),
        (b"[" * 65 + b"]" * 65, "nested more than 64 deep"),
        (b'{"a":' * 100_000, "nested more than 64 deep"),
        (b"{'a':1}", "Expecting property name"),
        (b"\xff", "utf-8"),
    ],
)
def test_exact_reading_refuses_doubtful_json(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        canonical.parse_exact(data)


def test_brackets_in_strings_are_not_depth() -> None:
    text = json.dumps(["[" * 500 + '"\\' + "{" * 500])
    assert canonical.parse_exact(text.encode()) == json.loads(text)


def test_hostile_text_is_refused_in_linear_time() -> None:
    hostile = b'"' + b'\\"' * 500_000
    start = time.perf_counter()
    with pytest.raises(ValueError, match="Unterminated string"):
        canonical.parse_exact(hostile)
    assert time.perf_counter() - start < 5


@given(NUMBERS, NUMBERS)
def test_equal_numbers_have_equal_text(one: int | Decimal, other: int | Decimal) -> None:
    same_text = canonical.number_text(one) == canonical.number_text(other)
    assert same_text == (Decimal(one) == Decimal(other))


@given(NUMBERS)
def test_number_text_is_a_json_number_of_the_same_value(number: int | Decimal) -> None:
    text = canonical.number_text(number)
    read = canonical.parse_exact(text.encode())
    assert isinstance(read, int | Decimal)
    assert read == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1.00", "1"),
        ("-0.0", "0"),
        ("100", "100"),
        ("1E+2", "100"),
        ("-12.50", "-12.5"),
        ("0.00001", "0.00001"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e21"),
        ("-12e-21", "-12e-21"),
        ("1e999999", "1e999999"),
        ("0e999999", "0"),
        ("123456789012345678901234567890.1", "123456789012345678901234567890.1"),
    ],
)
def test_number_text(number: str, text: str) -> None:
    assert canonical.number_text(Decimal(number)) == text


def test_exact_bytes_compare_values_not_spellings() -> None:
    one = canonical.parse_exact(b'{"b":[1.0,true,null],"a":"\\u00e9"}')
    other = canonical.parse_exact('{ "a":"é", "b":[1.00, true, null] }'.encode())
    assert canonical.exact_dumps(one) == canonical.exact_dumps(other)
    assert canonical.exact_dumps(one) == '{"a":"é","b":[1,true,null]}'.encode()
    assert canonical.exact_dumps(True) != canonical.exact_dumps(1)
    assert canonical.exact_dumps("1") != canonical.exact_dumps(1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "float is not"),
        (b"x", "bytes is not"),
        (Decimal("NaN"), "not a number that JSON knows"),
        (Decimal("Infinity"), "not a number that JSON knows"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_exact_bytes_refuse_other_types(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        canonical.exact_dumps(value)

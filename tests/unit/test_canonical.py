"""Canonical JSON against a second implementation of RFC 8785, and digests."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from governance import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT


def values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    ).filter(lambda value: depth(value) <= canonical.MAX_DEPTH)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@given(values(TEXT))
def test_canonical_json_is_rfc_8785(value: Any) -> None:
    data = canonical.dumps(value, any_keys=True)
    assert data == rfc8785.dumps(value)
    assert canonical.loads(data, any_keys=True) == value


@given(values(st.from_regex(r"[a-z0-9_]{1,8}", fullmatch=True)))
def test_payload_profile_round_trips(value: Any) -> None:
    assert canonical.loads(canonical.dumps(value)) == value


def test_keys_sort_by_utf_16_code_units() -> None:
    # The keys of RFC 8785, section 3.2.3; by code points U+FB33 would come before U+1F600.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = json.loads(canonical.dumps(dict.fromkeys(keys, 0), any_keys=True))
    assert list(written) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "float is not part"),
        (float("nan"), "float is not part"),
        (Decimal("1"), "Decimal is not part"),
        (2**53, "2\\*\\*53 or more"),
        (-(2**53), "2\\*\\*53 or more"),
        (b"bytes", "bytes is not part"),
        ({1, 2}, "set is not part"),
        ({1: "a"}, "a key is a int"),
        ({"Upper": 1}, "the key 'Upper'"),
        ({"": 1}, "the key ''"),
        ({"a\n": 1}, "the key"),
        ("\ud800", "half a surrogate pair"),
        ({"a": ["\udfff"]}, "half a surrogate pair"),
        (nested(canonical.MAX_DEPTH + 1), "nested more than 8 deep"),
    ],
)
def test_outside_the_profile_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        canonical.dumps(value)


def test_profile_edges_are_accepted() -> None:
    edges = [2**53 - 1, -(2**53) + 1, nested(canonical.MAX_DEPTH - 1), ("tuple",)]
    assert canonical.loads(canonical.dumps(edges)) == [*edges[:3], ["tuple"]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a":1,"a":1}', "names a key twice"),
        (b'{"b":1,"a":2}', "not in its canonical form"),
        (b'{"a": 1}', "not in its canonical form"),
        (b'{"a":1}\n', "not in its canonical form"),
        (b"[-0]", "not in its canonical form"),
        (b'["\\u0041"]', "not in its canonical form"),
        (b'["\\/"]', "not in its canonical form"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"[1.0]", "1.0 is not an integer"),
        (b"[1e2]", "1e2 is not an integer"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'["\\ud800"]', "half a surrogate pair"),
        (b'["\xff"]', "utf-8"),
        (b'["\xed\xa0\x80"]', "utf-8"),
        (b"[9007199254740992]", "2\\*\\*53 or more"),
        (b"[" * 9 + b"]" * 9, "nested more than 8 deep"),
        (b"[" * 100_000, "nested more than 8 deep"),
        (b"", "Expecting value"),
        (b"[1", "Expecting"),
        (b"tru", "Expecting value"),
    ],
)
def test_loads_refuses_what_dumps_never_writes(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        canonical.loads(data, any_keys=True)


def test_loads_refuses_keys_outside_the_payload_profile() -> None:
    assert canonical.loads(b'{"A":1}', any_keys=True) == {"A": 1}
    with pytest.raises(ValueError, match="'A'"):
        canonical.loads(b'{"A":1}')


def test_sizes_are_bounded() -> None:
    with pytest.raises(ValueError, match="5 bytes"):
        canonical.loads(b"[1,2]", max_bytes=4)
    with pytest.raises(ValueError, match="5 bytes"):
        canonical.parse_exact(b"[1,2]", max_bytes=4)


@given(st.binary(max_size=30) | TEXT.map(str.encode))
def test_bytes_from_anywhere_raise_value_error_or_are_canonical(data: bytes) -> None:
    try:
        value = canonical.loads(data, any_keys=True)
    except ValueError:
        return
    assert canonical.dumps(value, any_keys=True) == data


def test_digests() -> None:
    # SHA-256 of "abc": FIPS 180-4 example.
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert canonical.digest_hex(b"abc") == known
    assert canonical.sha256(b"abc").hex() == known

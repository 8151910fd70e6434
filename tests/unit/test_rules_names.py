"""JSON Pointers and globs."""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.contracts.glob import covers, matches
from governance.contracts.pointer import MISSING, parse, resolve

# The document and the pointers of RFC 6901, section 5.
RFC_6901: Any = json.loads(
    r'{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}'
)


def test_pointers_of_the_rfc() -> None:
    assert resolve(RFC_6901, "") == RFC_6901
    assert resolve(RFC_6901, "/foo") == ["bar", "baz"]
    assert resolve(RFC_6901, "/foo/0") == "bar"
    pointers = ["/", "/a~1b", "/c%d", "/e^f", "/g|h", "/i\\j", '/k"l', "/ ", "/m~0n"]
    assert [resolve(RFC_6901, pointer) for pointer in pointers] == list(range(9))


@pytest.mark.parametrize(
    "pointer", ["/none", "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/0/x", "/foo/²"]
)
def test_pointers_that_lead_nowhere(pointer: str) -> None:
    assert resolve(RFC_6901, pointer) is MISSING


@pytest.mark.parametrize("pointer", ["foo", "#/foo", "/~", "/~2", "/a~"])
def test_what_is_not_a_pointer(pointer: str) -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        parse(pointer)


@given(st.lists(st.text(max_size=5), max_size=5))
def test_any_key_can_be_pointed_at(keys: list[str]) -> None:
    pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    document: Any = "end"
    for key in reversed(keys):
        document = {key: document}
    assert parse(pointer) == tuple(keys)
    assert resolve(document, pointer) == "end"


@given(st.text("ab*?", max_size=10), st.text("ab", max_size=10))
def test_globs_match_like_fnmatch(pattern: str, name: str) -> None:
    assert matches(pattern, name) == bool(re.fullmatch(fnmatch.translate(pattern), name))


def test_globs_know_no_other_character() -> None:
    assert matches("pay[a]", "pay[a]")
    assert not matches("pay[a]", "paya")
    assert not matches("Pay", "pay")
    assert matches("a*" * 30, "a" * 60)
    assert not matches("a*" * 30 + "b", "a" * 2000)


@given(st.text("ab*?", max_size=4), st.text("ab*?", max_size=4), st.text("ab", max_size=5))
def test_what_covers_matches_all_that_the_other_does(one: str, other: str, name: str) -> None:
    if covers(one, other) and matches(other, name):
        assert matches(one, name)

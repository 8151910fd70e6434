"""Text from outside does nothing to a terminal but appear on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.cli.text import moment, span, visible

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Zoë Ørsted 日本 €", "Zoë Ørsted 日本 €"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("abc\u202etxt", "abc\\u202etxt"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028", "\\u2028"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_breaks_stay_where_they_are_meant() -> None:
    assert visible("a\nb\tc\rd", breaks=True) == "a\nb\tc\\rd"


@given(st.text())
def test_the_result_is_printable_text_on_one_line(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c.isspace() for c in shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(minutes=59), "59 min"),
        (timedelta(hours=23, minutes=59), "23 h"),
        (timedelta(days=4), "4 d"),
    ],
)
def test_spans(length: timedelta, text: str) -> None:
    assert span(length) == text


def test_moments() -> None:
    assert moment(None, NOW) == "-"
    assert moment(NOW + timedelta(hours=3), NOW).endswith("(in 3 h)")
    assert moment(NOW - timedelta(days=2), NOW).endswith("(2 d ago)")

"""What people read of a call: shown values, titles, links."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from governance.canonical import parse_exact
from governance.contracts import ApprovalRule
from governance.rules.arguments import Argument, Unreadable
from governance.rules.template import clean, render_links, render_title, shown_values

SHOWING = ApprovalRule.model_validate(
    {
        "roles": ["r"],
        "title": "Pay {/0/amount} to {/0/payee} {{now}}",
        "show": {"Amount": "/0/amount", "Payee": "/0/payee", "Invoice": "/0/invoice", "Raw": "/1"},
        "links": {"Invoice": "https://erp.example/i/{/0/invoice}", "Help": "https://h.example/"},
    }
)


def call(text: str) -> tuple[Argument, ...]:
    return (parse_exact(text.encode()), Unreadable(b"\0" * 32, "for the test"))


def test_shown_values_are_the_inputs_own() -> None:
    shown = shown_values(SHOWING, call('{"amount": 10.50, "payee": {"b": [1.0, null], "a": true}}'))
    assert shown == {
        "Amount": "10.50",
        "Payee": '{"a":true,"b":[1,null]}',
        "Invoice": "(missing)",
        "Raw": "(unreadable)",
    }
    assert render_title(SHOWING, shown, "pay") == 'Pay 10.50 to {"a":true,"b":[1,null]} {now}'


def test_nothing_but_shown_values_is_read() -> None:
    secret = call('{"amount": 1, "payee": "ACME", "iban": "SECRET"}')
    shown = shown_values(SHOWING, secret)
    assert "SECRET" not in repr(
        (shown, render_title(SHOWING, shown, "pay"), render_links(SHOWING, shown))
    )


def test_a_value_cannot_hide_another() -> None:
    shown = shown_values(
        SHOWING, call(f'{{"amount": 5, "payee": "A\\u202e\\u0000\\n\\u2028B{"x" * 5000}"}}')
    )
    title = render_title(SHOWING, shown, "pay")
    assert title.startswith("Pay 5 to A Bxxx")
    assert title.endswith("x… {now}")
    assert len(title) < 120
    assert len(shown["Payee"]) == 1000


def test_title_without_template_is_the_step() -> None:
    assert render_title(ApprovalRule(roles=("r",)), {}, "pay\u202e") == "pay"


def test_links_are_encoded_or_left_out() -> None:
    shown = shown_values(SHOWING, call('{"invoice": "../a b?x=1#y"}'))
    assert render_links(SHOWING, shown) == {
        "Invoice": "https://erp.example/i/..%2Fa%20b%3Fx%3D1%23y",
        "Help": "https://h.example/",
    }
    assert list(render_links(SHOWING, shown_values(SHOWING, call("{}")))) == ["Help"]
    long = shown_values(SHOWING, call(f'{{"invoice": "{"x" * 1001}"}}'))
    assert list(render_links(SHOWING, long)) == ["Help"]


@given(st.text(), st.integers(1, 50))
def test_clean_text_is_one_visible_line(text: str, longest: int) -> None:
    cleaned = clean(text, longest)
    assert len(cleaned) <= longest
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in cleaned)
    assert clean(cleaned, longest) == cleaned

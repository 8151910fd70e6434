"""Arguments as they were sent, and the conditions on them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from governance.canonical import parse_exact
from governance.contracts import Condition
from governance.rules.arguments import Argument, Unreadable, read_arguments
from governance.rules.conditions import holds

UNREADABLE = Unreadable(b"\0" * 32, "for the test")


def args(*texts: str) -> tuple[Argument, ...]:
    return tuple(parse_exact(text.encode()) for text in texts)


CALL = args(
    '{"amount": 1000.00, "text": "999.99", "tool": "pay", "flag": true, "none": null}', '"x"'
)


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ({"path": "/0/tool", "eq": "pay"}, True),
        ({"path": "/0/tool", "eq": "Pay"}, False),
        ({"path": "/0/tool", "eq": 5}, None),
        ({"path": "/0/amount", "eq": 1000}, True),
        ({"path": "/0/amount", "eq": Decimal("1000.01")}, False),
        ({"path": "/0/amount", "eq": "1000"}, None),
        ({"path": "/0/text", "eq": Decimal("999.990")}, True),
        ({"path": "/0/text", "eq": "999.99"}, True),
        ({"path": "/0/flag", "eq": True}, True),
        ({"path": "/0/flag", "eq": False}, False),
        ({"path": "/0/flag", "eq": 1}, None),
        ({"path": "/0/flag", "gte": 1}, None),
        ({"path": "/0/none", "eq": "pay"}, None),
        ({"path": "/0/missing", "eq": "pay"}, None),
        ({"path": "/0", "eq": "pay"}, None),
        ({"path": "/1", "eq": "x"}, True),
        ({"path": "/2", "eq": "x"}, None),
        ({"path": "/0/tool", "in": ["pay", "refund"]}, True),
        ({"path": "/0/tool", "in": ["refund", 5]}, False),
        ({"path": "/0/tool", "in": [5, True]}, None),
        ({"path": "/0/amount", "lt": 1000}, False),
        ({"path": "/0/amount", "lt": "1000.01"}, True),
        ({"path": "/0/amount", "gte": 1000}, True),
        ({"path": "/0/amount", "gte": "1000.01"}, False),
        ({"path": "/0/amount", "gte": 500, "lt": 1000}, False),
        ({"path": "/0/text", "lt": 1000}, True),
        ({"path": "/0/tool", "lt": 1000}, None),
        ({"path": "/0/none", "lt": 1000}, None),
        ({"path": "/0/none", "exists": True}, True),
        ({"path": "/0/missing", "exists": True}, False),
        ({"path": "/0/missing", "exists": False}, True),
        ({"path": "/0/missing", "exists": True, "gte": 5}, False),
        ({"path": "/0/tool", "exists": False}, False),
    ],
)
def test_conditions(condition: dict[str, Any], verdict: bool | None) -> None:
    assert holds([Condition.model_validate(condition)], CALL) is verdict


def test_decimals_come_from_their_text() -> None:
    # As binary fractions the two sides would be the same number.
    call = args('{"amount": 0.30000000000000000001}')
    assert holds([Condition(path="/0/amount", gte=Decimal("0.3"))], call) is True
    assert holds([Condition(path="/0/amount", lt=Decimal("0.3"))], call) is False
    assert holds([Condition(path="/0/amount", eq=Decimal("0.3"))], call) is False
    huge = args('{"amount": 1e999999}', '{"amount": "1e400000"}')
    assert holds([Condition(path="/0/amount", gte=Decimal(1))], huge) is True
    assert holds([Condition(path="/1/amount", lt=Decimal(1))], huge) is False


@pytest.mark.parametrize(
    "text", ["10 EUR", "1,000", "\u0661\u0660", "0x10", "1_000", " 1", "1e9999999", "NaN", "+1", ""]
)
def test_text_that_is_no_decimal_is_doubt(text: str) -> None:
    assert holds([Condition(path="/0", lt=Decimal(10**6))], (text,)) is None


@pytest.mark.parametrize(
    ("currency", "verdict"),
    [('"EUR"', True), ('"USD"', None), ('"eur"', None), ("null", None), ("978", None)],
)
def test_amounts_are_compared_within_one_currency(currency: str, verdict: bool | None) -> None:
    condition = Condition(
        path="/0/amount", gte=Decimal(1000), currency="EUR", currency_path="/0/currency"
    )
    assert holds([condition], args(f'{{"amount": 5000, "currency": {currency}}}')) is verdict
    assert holds([condition], args('{"amount": 5000}')) is None


def test_a_certain_no_outweighs_doubt() -> None:
    no = Condition(path="/0/tool", eq="other")
    doubt = Condition(path="/0/missing", eq="x")
    yes = Condition(path="/0/tool", eq="pay")
    assert holds([doubt, no], CALL) is False
    assert holds([yes, doubt], CALL) is None
    assert holds([], CALL) is True
    assert holds([yes], (UNREADABLE,)) is None
    assert holds([Condition(path="/0", exists=True)], (UNREADABLE,)) is None


def test_arguments_are_read_from_payloads() -> None:
    read = read_arguments(
        [
            ({"encoding": b"json/plain"}, b'{"a": 1.10}'),
            ({"encoding": b"json/protobuf", "messageType": b"x.Y"}, b'{"b":"2"}'),
            ({"encoding": b"binary/null"}, b""),
            ({"encoding": b"binary/plain"}, b"raw"),
            ({"encoding": b"json/plain"}, b'{"a":1,"a":2}'),
            ({}, b"1"),
        ]
    )
    assert read[:3] == ({"a": Decimal("1.10")}, {"b": "2"}, None)
    whys = [one.why for one in read[3:] if isinstance(one, Unreadable)]
    assert whys == [
        "its encoding is binary/plain",
        "an object names a key twice",
        "its encoding is none",
    ]

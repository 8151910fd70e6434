"""Which step a call is: order, doubt, what matches nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.contracts import FlowContract, StepRule
from governance.rules.arguments import Argument, Unreadable
from governance.rules.selection import Deny, Pass, governs, select

UNREADABLE = Unreadable(b"\0" * 32, "for the test")
APPROVALS = {"finance": {"roles": ["f"]}, "board": {"roles": ["b"]}}
BIG = {
    "activity": "pay",
    "name": "big",
    "approval": "finance",
    "when": [{"path": "/0", "gte": 1000}],
}
MIDDLE = {"activity": "pay", "name": "middle", "when": [{"path": "/0", "gte": 100}]}
SMALL = {"activity": "pay", "name": "small", "kind": "template"}
MODEL = {"activity": "*", "name": "ask", "kind": "model", "when": [{"path": "/0", "gte": 10}]}


def contract(*steps: dict[str, Any], unmatched: str = "pass") -> FlowContract:
    return FlowContract.model_validate(
        {"flow": "F", "approvals": APPROVALS, "steps": list(steps), "unmatched": unmatched}
    )


def chosen(whole: FlowContract, *arguments: Argument, activity: str = "pay") -> str:
    found = select(whole, activity, arguments)
    return found.name if isinstance(found, StepRule) else type(found).__name__


@pytest.mark.parametrize(
    ("amount", "step"),
    [(1000, "big"), (999, "middle"), (100, "middle"), (99, "small"), ("1e3", "big")],
)
def test_first_match_wins(amount: Argument, step: str) -> None:
    assert chosen(contract(BIG, MIDDLE, SMALL), amount) == step


def test_what_matches_nothing_passes_or_is_denied() -> None:
    assert chosen(contract(BIG), 5) == "Pass"
    assert chosen(contract(BIG, unmatched="deny"), 5) == "Deny"
    assert chosen(contract(BIG), 5000, activity="pay2") == "Pass"
    denied = select(contract(BIG, unmatched="deny"), "call", ())
    assert denied == Deny("call matches no step of the contract for F")
    assert select(contract(BIG), "call", ()) == Pass()


@pytest.mark.parametrize("argument", [UNREADABLE, None, "many", {"a": 1}, True])
def test_doubt_takes_the_strictest_rule(argument: Argument) -> None:
    assert chosen(contract(MIDDLE, BIG), argument) == "big"
    assert chosen(contract(MIDDLE, BIG, SMALL), argument) == "big"
    assert chosen(contract(MODEL, MIDDLE, SMALL), argument) == "middle"
    assert chosen(contract(MODEL, SMALL), argument) == "ask"
    assert chosen(contract(SMALL | {"when": MIDDLE["when"]}), argument) == "small"
    assert (
        chosen(
            contract(MIDDLE, BIG, BIG | {"name": "b", "approval": "board", "when": []}), argument
        )
        == "big"
    )


def test_a_missing_argument_is_doubt() -> None:
    assert chosen(contract(MIDDLE, BIG)) == "big"


def test_doubt_without_a_certain_match_is_denied_where_unmatched_calls_are() -> None:
    assert chosen(contract(MIDDLE, BIG, unmatched="deny"), UNREADABLE) == "Deny"
    assert chosen(contract(MIDDLE, BIG, SMALL, unmatched="deny"), UNREADABLE) == "big"


def test_doubt_behind_a_certain_match_does_not_matter() -> None:
    first = SMALL | {"when": [{"path": "/1", "eq": "small"}]}
    assert chosen(contract(first, BIG), UNREADABLE, "small") == "small"


def test_other_activities_do_not_count() -> None:
    other = {"activity": "refund", "approval": "board"}
    assert chosen(contract(MIDDLE, other), UNREADABLE) == "middle"


def test_another_currency_is_not_the_cheap_step() -> None:
    in_euro = {"currency": "EUR", "currency_path": "/1"}
    big = BIG | {"when": [{"path": "/0", "gte": 1000, **in_euro}]}
    assert chosen(contract(big, SMALL), 5, "EUR") == "small"
    assert chosen(contract(big, SMALL), 5, "JPY") == "big"


def test_children_and_operations_are_other_calls() -> None:
    child = {"activity": "pay", "name": "child", "calls": "child_workflow", "kind": "template"}
    whole = contract(child, BIG)
    assert chosen(whole, 1000) == "big"
    found = select(whole, "pay", (), calls="child_workflow")
    assert isinstance(found, StepRule)
    assert found.name == "child"
    assert select(whole, "pay", (), calls="nexus") == Pass()


def test_governs_looks_at_names_alone() -> None:
    whole = contract(BIG, {"activity": "agent__*__tool", "name": "t"})
    assert governs(whole, "pay")
    assert governs(whole, "agent__x__tool")
    assert not governs(whole, "other")


@given(
    st.lists(st.sampled_from([BIG, MIDDLE, MODEL, SMALL]), min_size=1, max_size=4, unique_by=id),
    st.sampled_from([UNREADABLE, None, "x", 5, 50, 500, 5000]),
    st.sampled_from(["pass", "deny"]),
)
def test_doubt_is_never_looser_than_any_certain_reading(
    steps: list[dict[str, Any]], argument: Argument, unmatched: str
) -> None:
    order = ["Deny", "big", "middle", "ask", "small", "Pass"]
    steps.sort(key=lambda step: step is SMALL)  # what has no condition comes last
    whole = contract(*steps, unmatched=unmatched)
    result = order.index(chosen(whole, argument))
    if not isinstance(argument, int):
        readings = [chosen(whole, amount) for amount in (5, 50, 500, 5000)]
        assert result <= min(order.index(reading) for reading in readings)

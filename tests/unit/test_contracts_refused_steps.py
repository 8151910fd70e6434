"""Flows and steps that a contract refuses, each with its path, what was found and allowed."""

from __future__ import annotations

import pytest

from governance.contracts import from_toml
from governance.errors import ContractInvalid

FLOW = "flow = 'F'\n"
STEP = "[[steps]]\nactivity = 'a'\n"
APPROVAL = "[approvals.finance]\nroles = ['r']\n"
WHEN = FLOW + STEP + "when = [{{ path = '/0/a', {} }}]"

CASES = [
    (FLOW, "steps", "nothing", "this key is required"),
    (STEP, "flow", "nothing", "this key is required"),
    (FLOW + "steps = []", "steps", "an empty list", "at least 1 in the list"),
    (FLOW + "steps = 'a'", "steps", "'a'", "a list"),
    (FLOW + "steps = ['a']", "steps[0]", "'a'", "a table"),
    ("flow = 5\n" + STEP, "flow", "5", "a name"),
    ("flow = ' F'\n" + STEP, "flow", "' F'", "without space at either end"),
    ("flow = 'a\\u202eb'\n".replace("'", '"') + STEP, "flow", "U+202E", "visible characters"),
    (FLOW + "resum = ['r']\n" + STEP, "resum", "unknown key", "did you mean resume?"),
    (FLOW + "resume = ['']\n" + STEP, "resume[0]", "''", "not empty"),
    (FLOW + "resume = ['r', 'r']\n" + STEP, "resume", "'r' twice", "each entry once"),
    (FLOW + "resume = 'r'\n" + STEP, "resume", "'r'", "a list"),
    (FLOW + "unmatched = 'allow'\n" + STEP, "unmatched", "'allow'", "'pass' or 'deny'"),
    (FLOW + "on_denied = 'park'\n" + STEP, "on_denied", "'park'", "'fail'"),
    (FLOW + "approvals = []\n" + STEP, "approvals", "an empty list", "a table"),
    (FLOW + STEP + "aproval = 'x'", "steps[0].aproval", "unknown key", "mean approval?"),
    (FLOW + STEP + "approval = 'x'", "steps[0].approval", "'x'", "none is declared"),
    (
        FLOW + APPROVAL + STEP + "approval = 'finanse'",
        "steps[0].approval",
        "'finanse'",
        "finance (did you mean finance?)",
    ),
    (
        FLOW + STEP + "[[steps]]\nactivity = 'b'\nname = 'a'",
        "steps[1].name",
        "'a'",
        "a name that no other step has",
    ),
    (FLOW + STEP + STEP + "name = 'b'", "steps[1]", "never matches", "the narrower step first"),
    (
        FLOW + "[[steps]]\nactivity = 'p*'\nname = 'all'\n[[steps]]\nactivity = 'pay'",
        "steps[1]",
        "because steps[0] (all) matches first",
        "the narrower step first",
    ),
    (FLOW + "[[steps]]\nactivity = 'p*'", "steps[0].name", "'p*'", "a name without * and ?"),
    (FLOW + "[[steps]]\nactivity = ''", "steps[0].activity", "''", "a name"),
    (FLOW + STEP + "kind = 'effects'", "steps[0].kind", "'effects'", "'effect', 'template'"),
    (FLOW + STEP + "on_reject = 'result'", "steps[0].on_reject", "'result'", "'fail'"),
    (
        FLOW + STEP + "calls = 'nexus'",
        "steps[0].kind",
        "calls = 'nexus'",
        "'template' or 'model'",
    ),
    (
        FLOW + STEP + "calls = 'child_workflow'\nkind = 'effect'",
        "steps[0].kind",
        "calls = 'child_workflow'",
        "only an activity can be claimed",
    ),
    (
        FLOW + APPROVAL + STEP + "kind = 'model'\napproval = 'finance'",
        "steps[0].approval",
        "'finance'",
        "nothing on a step of kind 'model'",
    ),
    (FLOW + STEP + "binds = ['0/a']", "steps[0].binds[0]", "'0/a'", "begins with /"),
    (FLOW + STEP + "binds = ['/0/~2']", "steps[0].binds[0]", "'/0/~2'", "~0"),
    (FLOW + STEP + "binds = ['/a']", "steps[0].binds[0]", "'/a'", "position of the argument"),
    (FLOW + STEP + "binds = ['/01']", "steps[0].binds[0]", "'/01'", "position of the argument"),
    (FLOW + STEP + "binds = ['/-']", "steps[0].binds[0]", "'/-'", "position of the argument"),
    (FLOW + STEP + "lease = 60", "steps[0].lease", "60", "a duration"),
    (FLOW + STEP + "lease = '2h'", "steps[0].lease", "'2h'", "from 5s to 1h"),
    (WHEN.format("gt = 5"), "steps[0].when[0].gt", "unknown key", "gte"),
    (
        FLOW + STEP + "when = [{ path = '/0' }]",
        "steps[0].when[0]",
        "no operator",
        "at least one",
    ),
    (FLOW + STEP + "when = [{ eq = 1 }]", "steps[0].when[0].path", "nothing", "required"),
    (FLOW + STEP + "when = [{ path = '', eq = 1 }]", "steps[0].when[0].path", "''", "/0"),
    (WHEN.format("lt = 'ten'"), "steps[0].when[0].lt", "'ten'", "a decimal"),
    (WHEN.format("lt = nan"), "steps[0].when[0].lt", "NaN", "a decimal"),
    (WHEN.format("gte = true"), "steps[0].when[0].gte", "true", "a decimal"),
    (WHEN.format("eq = 1979-05-27"), "steps[0].when[0].eq", "1979-05-27", "text, true, false"),
    (WHEN.format("in = []"), "steps[0].when[0].in", "an empty list", "at least one value"),
    (WHEN.format("in = 'abc'"), "steps[0].when[0].in", "'abc'", "a list"),
    (WHEN.format("exists = 'yes'"), "steps[0].when[0].exists", "'yes'", "true or false"),
    (WHEN.format("exists = false, eq = 1"), "steps[0].when[0].exists", "false", "false alone"),
    (WHEN.format("lt = 1, currency = 'EUR'"), "steps[0].when[0]", "one of", "both or neither"),
    (
        WHEN.format("eq = 1, currency = 'EUR', currency_path = '/1'"),
        "steps[0].when[0].currency",
        "'EUR'",
        "only beside lt or gte",
    ),
]


@pytest.mark.parametrize(("text", "path", "found", "allowed"), CASES)
def test_flow_and_steps(text: str, path: str, found: str, allowed: str) -> None:
    with pytest.raises(ContractInvalid) as caught:
        from_toml(text, "pay.toml")
    message = caught.value.message
    assert message.startswith(f"pay.toml: {path}: found ")
    assert found in message.split("; allowed: ")[0]
    assert allowed in message.split("; allowed: ")[1]
    assert "\n" not in message

"""What a contract must not be: each refused with the file, the path, what was found and allowed."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from governance.contracts import (
    ApprovalRule,
    Condition,
    FlowContract,
    StepRule,
    from_toml,
    load_toml,
)
from governance.errors import ContractInvalid

FLOW = "flow = 'F'\n"
STEP = "[[steps]]\nactivity = 'a'\n"
APPROVAL = "[approvals.finance]\nroles = ['r']\n"


def refused(text: str) -> str:
    with pytest.raises(ContractInvalid) as caught:
        from_toml(text, "pay.toml")
    return caught.value.message


def test_several_problems_are_one_error() -> None:
    message = refused(
        FLOW + "x = 1\n" + APPROVAL + "decide_by = 4\n" + STEP + "kind = 'foo'\ny = 1"
    )
    lines = message.splitlines()
    assert lines[0] == "pay.toml: 4 problems"
    assert [line.split(": found")[0] for line in lines[1:]] == [
        "pay.toml: approvals.finance.decide_by",
        "pay.toml: steps[0].kind",
        "pay.toml: steps[0].y",
        "pay.toml: x",
    ]


def test_an_approval_named_like_a_key_is_no_confusion() -> None:
    message = refused(FLOW + STEP + "[approvals.show]\nroles = ['r']\nlabel = 'x'")
    assert message.startswith("pay.toml: approvals.show.label: found an unknown key")
    assert "decide_by, duties" in message


def test_very_many_problems_stay_readable() -> None:
    text = FLOW + "\n".join(f"x{number} = 1" for number in range(100)) + "\n" + STEP
    assert len(refused(text).splitlines()) == 27
    assert refused(text).endswith("and 75 more")
    assert len(refused(FLOW + f"on_denied = '{'x' * 1900}'\n" + STEP)) < 250


@pytest.mark.parametrize(
    "text",
    [
        FLOW + "steps = [" + "{ activity = 'a' }," * 201 + "]",
        FLOW + "resume = [" + ",".join(f"'r{n}'" for n in range(201)) + "]\n" + STEP,
        FLOW + STEP + "".join(f"[approvals.a{n}]\nroles = ['r']\n" for n in range(101)),
        f"flow = '{'x' * 201}'\n" + STEP,
        FLOW + APPROVAL + f"instructions = '{'x' * 2001}'\n" + STEP,
        FLOW + STEP + f"# {'x' * 256 * 1024}",
        FLOW + "steps = " + "[" * 5000,
    ],
)
def test_sizes_are_bounded(text: str) -> None:
    assert len(refused(text)) < 5000


def test_canonical_form_is_bounded() -> None:
    steps = [
        StepRule(activity=f"a{number}", binds=tuple(f"/0/{n}{'x' * 180}" for n in range(20)))
        for number in range(100)
    ]
    with pytest.raises(ContractInvalid, match="at most 262144"):
        FlowContract(flow="F", steps=tuple(steps))


@pytest.mark.parametrize(
    "text", ["flow =", "flow = 'a'\nflow = 'b'", "[a\n", "\x00", "flow = '\ud800'"]
)
def test_what_is_not_toml(text: str) -> None:
    assert refused(text).startswith("pay.toml: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ContractInvalid, match=r"none\.toml: cannot be read: No such file"):
        load_toml(tmp_path / "none.toml")
    with pytest.raises(ContractInvalid, match="cannot be read"):
        load_toml(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"flow = 'Sch\xf6n'")
    with pytest.raises(ContractInvalid, match="not UTF-8 text, at byte 11"):
        load_toml(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("model", "fields", "words"),
    [
        (FlowContract, {"flow": "F", "steps": []}, "FlowContract: steps: found an empty list"),
        (StepRule, {"activity": "a*"}, "StepRule: name: found 'a*'"),
        (ApprovalRule, {"roles": {"r"}}, "ApprovalRule: roles: found {'r'}; allowed: a list"),
        (ApprovalRule, {"roles": ("r",), "decide_by": timedelta(0)}, "decide_by: found 0:00:00"),
        (
            ApprovalRule,
            {"roles": ("r",), "decide_by": timedelta(milliseconds=1500)},
            "in whole seconds",
        ),
        (Condition, {"path": "/0", "gte": 0.1}, "Condition: gte: found 0.1; allowed: a decimal"),
        (Condition, {"path": "/0", "eq": 0.1}, "Condition: eq: found 0.1; allowed: text, true"),
        (Condition, {"path": "/0", "eq": "\ud800"}, "Condition: eq: found another text"),
        (Condition, {"path": "/0", "is": 1}, "Condition: is: found an unknown key"),
    ],
)
def test_python_raises_the_same_error(model: Any, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractInvalid) as caught:
        model(**fields)
    assert words in caught.value.message
    assert caught.value.__context__ is None


def test_nested_models_are_checked_again_in_their_place() -> None:
    step = StepRule(activity="a", approval="finance")
    with pytest.raises(ContractInvalid, match=r"^FlowContract: steps\[0\]\.approval: "):
        FlowContract(flow="F", steps=(step,))


def test_nobody_sees_a_pydantic_traceback() -> None:
    code = "from governance.contracts import from_toml\nfrom_toml('flow = 1', 'pay.toml')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.returncode == 1
    assert "ValidationError" not in done.stderr
    assert done.stderr.count("Traceback") == 1


def test_true_is_not_one() -> None:
    conditions = [{"path": "/0", "eq": 1}, {"path": "/0", "eq": True}]
    steps = [{"activity": "a", "name": f"s{n}", "when": [c]} for n, c in enumerate(conditions)]
    whole = FlowContract.model_validate({"flow": "F", "steps": steps})
    assert len(whole.steps) == 2
    one, other = (
        FlowContract.model_validate({"flow": "F", "steps": [step | {"name": "s"}]})
        for step in steps
    )
    assert one != other
    both = StepRule.model_validate({"activity": "a", "when": conditions})
    assert len(both.when) == 2
    assert Condition.model_validate({"path": "/0", "in": (1, True)}).in_ == (Decimal(1), True)
    with pytest.raises(ContractInvalid, match=r"in: found 1\.0 twice"):
        Condition.model_validate({"path": "/0", "in": ("1", 1, True, Decimal("1.0"))})

"""The reference page of contracts: complete, and its examples work."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from governance.contracts import (
    ApprovalRule,
    Condition,
    FlowContract,
    Link,
    Shown,
    StepRule,
    from_toml,
)
from governance.contracts.base import ContractModel

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "contract.md").read_text("utf-8")


def models() -> list[type[ContractModel]]:
    return [FlowContract, ApprovalRule, StepRule, Condition, Shown, Link]


def test_reference_page_has_every_field() -> None:
    missing = [
        f"{model.__name__}.{key}"
        for model in models()
        for key in model.known_keys()
        if f"### `{key}`" not in PAGE and not (model in (Shown, Link) and f"`{key}`" in PAGE)
    ]
    assert not missing
    headed = set(re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE))
    assert headed <= {key for model in models() for key in model.known_keys()}


def test_examples_of_the_reference_page_work() -> None:
    [toml] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    contract = from_toml(toml)
    assert [step.name for step in contract.steps] == ["pay", "pay-small"]
    [python] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(python.replace('load_toml("contracts/pay_invoice.toml")', "None"), names)
    assert names["contract"].approvals["finance"].decide_by == timedelta(days=4)


def test_every_field_example_of_the_reference_page_is_accepted() -> None:
    for key, block in re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE):
        examples = re.findall(r"^    (.*)$", block, re.MULTILINE)
        assert examples, f"{key} has no example"
        for example in examples:
            if example.startswith(f"{key} = "):
                assert _accepts(example).flow


def _accepts(line: str) -> FlowContract:
    homes: dict[type[ContractModel], str] = {
        FlowContract: "{line}\n{flow}[[steps]]\nactivity='a'",
        ApprovalRule: (
            "flow='F'\n[[steps]]\nactivity='a'\n[approvals.finance]\n{roles}{show}{line}"
        ),
        StepRule: (
            "flow='F'\n[approvals.finance]\nroles=['r']\n[[steps]]\n{activity}{name}{kind}{line}"
        ),
        Condition: "flow='F'\n[[steps]]\nactivity='a'\nwhen=[{{{path}{more}{line}}}]",
    }
    key = line.split(" = ")[0]
    model = next(m for m in homes if key in m.known_keys())
    needs = {
        "flow": "flow='F'\n",
        "roles": "roles=['r']\n",
        "show": "show=['/0/amount', '/0/currency', '/0/payee', '/0/invoice']\n",
        "activity": "activity='a'\n",
        "name": "name='n'\n",
        "kind": "kind='template'\n" if key == "calls" else "",
        "path": "path='/0', ",
        "more": {
            "currency": "gte=1, currency_path='/1', ",
            "currency_path": "gte=1, currency='EUR', ",
            "path": "eq=1, ",
        }.get(key, ""),
    }
    given = {name: "" if name == key else text for name, text in needs.items()}
    return from_toml(homes[model].format(line=line, **given))

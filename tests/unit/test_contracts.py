"""Contracts: one digest from TOML and Python, canonical form, and the reference page."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from governance import canonical
from governance.contracts import (
    ApprovalRule,
    Condition,
    FlowContract,
    Link,
    Shown,
    StepRule,
    from_toml,
    load_toml,
    parse_canonical,
)
from governance.errors import ContractInvalid

ROOT = Path(__file__).parent.parent.parent

FULL = """
flow = "PayInvoice"   # the workflow type
version = "2026-11"
resume = ["operator"]

[approvals.finance]
roles = ["finance-approver", "cfo"]
decide_by = "4d"
execute_by = "90m"
title = "Pay {/0/amount} {{net}}"
show = { Amount = "/0/amount", Invoice = "/0/invoice" }
links = { Invoice = "https://erp.example/i/{/0/invoice}?a=b" }
instructions = \"\"\"
Compare the payee.
Twice.
\"\"\"

[[steps]]
activity = "pay"
approval = "finance"
binds = ["/0/invoice", "/0/amount"]
lease = "2m"
when = [{ path = "/0/amount", gte = 1_000.50, currency = "EUR", currency_path = "/0/currency" }]

[[steps]]
activity = "agent__*__call_tool"
name = "tools"
kind = "template"
when = [{ path = "/0/name", in = ["find", 5, true] }, { path = "/0/dry", exists = false }]
"""


def full() -> FlowContract:
    return FlowContract(
        flow="PayInvoice",
        version="2026-11",
        resume=("operator",),
        approvals={
            "finance": ApprovalRule(
                roles=("finance-approver", "cfo"),
                duties=("actor",),
                decide_by=timedelta(days=4),
                execute_by=timedelta(minutes=90),
                title="Pay {/0/amount} {{net}}",
                show=(
                    Shown(label="Amount", path="/0/amount"),
                    Shown(label="Invoice", path="/0/invoice"),
                ),
                links=(Link(label="Invoice", url="https://erp.example/i/{/0/invoice}?a=b"),),
                instructions="Compare the payee.\nTwice.",
            )
        },
        steps=(
            StepRule(
                activity="pay",
                name="pay",
                approval="finance",
                binds=("/0/invoice", "/0/amount"),
                lease=timedelta(seconds=120),
                when=(
                    Condition(
                        path="/0/amount",
                        gte=Decimal("1000.5"),
                        currency="EUR",
                        currency_path="/0/currency",
                    ),
                ),
            ),
            StepRule(
                activity="agent__*__call_tool",
                name="tools",
                kind="template",
                when=(
                    Condition(path="/0/name", in_=("find", Decimal(5), True)),
                    Condition(path="/0/dry", exists=False),
                ),
            ),
        ),
    )


def minimal(**changes: Any) -> FlowContract:
    fields: dict[str, Any] = {"flow": "F", "steps": [{"activity": "a"}], **changes}
    return FlowContract(**fields)


def test_toml_and_python_have_one_digest() -> None:
    contract = from_toml(FULL)
    assert contract == full()
    assert contract.digest == full().digest
    assert len(contract.digest) == 32
    assert contract.digest == canonical.sha256(contract.canonical())


def test_digest_stays_what_it_was() -> None:
    # Digests are pinned in histories and in the chain: no release may change these.
    assert full().digest.hex() == "ca2e559185f8237a1bcb0176f25c565bff10341b34e54d2b8dfaccf1315ac048"
    assert (
        minimal().digest.hex() == "af753ff837cba2e02d4b69bda677917a86710f3b82f39d6307533aa8743f7973"
    )


def test_every_field_is_in_the_canonical_form() -> None:
    assert minimal().canonical() == (
        b'{"approvals":{},"flow":"F","on_denied":"fail","resume":[],"steps":[{"activity":"a",'
        b'"binds":[],"calls":"activity","kind":"effect","lease":"60s","name":"a",'
        b'"on_reject":"fail","when":[]}],"unmatched":"pass","v":"governance/contract/1"}'
    )


PLAIN = "ea282640ad2927e615dc4bb637ab0d2fc8195b6de9ba1eb9ea705cea5b91c9ca"
"""Digest of a contract from before `needed` and `approver_recheck`."""


def test_what_was_added_later_is_written_only_where_it_says_something() -> None:
    plain = minimal(approvals={"finance": ApprovalRule(roles=("r",))})
    assert plain.digest.hex() == PLAIN
    spelled = ApprovalRule(roles=("r",), needed=1, approver_recheck=False)
    assert minimal(approvals={"finance": spelled}).digest == plain.digest
    several = ApprovalRule(roles=("r",), needed=2, approver_recheck=True)
    written = minimal(approvals={"finance": several})
    assert b'"approver_recheck":true' in written.canonical()
    assert b'"needed":2' in written.canonical()
    assert parse_canonical(written.canonical()).approvals["finance"] == several


def test_every_change_changes_the_digest() -> None:
    changes: list[dict[str, Any]] = [
        {"flow": "G"},
        {"version": "1"},
        {"resume": ["r"]},
        {"unmatched": "deny"},
        {"approvals": {"x": {"roles": ["r"]}}},
        {"approvals": {"x": {"roles": ["r"], "duties": []}}},
        {"steps": [{"activity": "b"}]},
        {"steps": [{"activity": "a", "name": "b"}]},
        {"steps": [{"activity": "a", "binds": [""]}]},
        {"steps": [{"activity": "a", "when": [{"path": "/0", "eq": "5"}]}]},
        {"steps": [{"activity": "a", "when": [{"path": "/0", "eq": 5}]}]},
        {"steps": [{"activity": "a", "when": [{"path": "/0", "eq": True}]}]},
        {"steps": [{"activity": "a", "when": [{"path": "/0", "in": [5]}]}]},
    ]
    digests = {minimal(**change).digest for change in ({}, *changes)}
    assert len(digests) == len(changes) + 1


def test_spelling_does_not_change_the_digest() -> None:
    one = from_toml('flow="F"\nsteps=[{activity="a", when=[{path="/0", gte=10.50}], lease="1m"}]')
    other = from_toml(
        'steps=[{lease="60s", when=[{gte="1.05e1", path="/0"}], activity="a"}]\nflow="F"'
    )
    assert one.digest == other.digest


def test_canonical_form_reads_back() -> None:
    contract = full()
    assert parse_canonical(contract.canonical()) == contract
    assert parse_canonical(minimal().canonical()) == minimal()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b" ",
        lambda data: data.replace(b'"binds":[],', b"", 1),
        lambda data: data.replace(b"contract/1", b"contract/2"),
        lambda data: data.replace(b'"60s"', b'"1m"'),
        lambda data: data.replace(b'"flow"', b'"flaw"'),
        lambda data: data.replace(b'"when":[]', b'"when":[{"eq":{"number":"x"},"path":"/0"}]'),
        lambda data: data.replace(b'"when":[]', b'"when":[{"eq":{"number":"1.0"},"path":"/0"}]'),
        lambda data: b"[]",
        lambda data: b"\xff",
        lambda data: b"",
    ],
)
def test_other_bytes_are_not_a_contract(change: Any) -> None:
    data = change(minimal().canonical())
    with pytest.raises(ContractInvalid, match="canonical contract: "):
        parse_canonical(data)


def test_contracts_cannot_be_changed() -> None:
    contract = full()
    approvals: Any = contract.approvals
    with pytest.raises(ValueError, match="frozen"):
        setattr(contract, "flow", "Other")  # noqa: B010  # as an attribute no checker lets it pass
    with pytest.raises(TypeError):
        approvals["x"] = approvals["finance"]
    assert copy.deepcopy(contract) == contract
    assert pickle.loads(pickle.dumps(contract)) == contract
    assert hash(contract) == hash(full())
    assert {contract: 1}[from_toml(FULL)] == 1


def test_lists_of_labels_may_be_short() -> None:
    rule = ApprovalRule.model_validate({"roles": ["r"], "show": ["/0/amount", "/0", "/0/lines/3"]})
    assert [(item.label, item.path) for item in rule.show] == [
        ("amount", "/0/amount"),
        ("/0", "/0"),
        ("lines", "/0/lines/3"),
    ]


def test_loads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pay.toml"
    path.write_text(FULL, "utf-8")
    assert load_toml(path) == load_toml(str(path)) == full()


def test_importing_contracts_and_rules_loads_neither_database_nor_cryptography() -> None:
    code = (
        "import sys, governance.contracts, governance.rules.selection, governance.rules.decision, "
        "governance.rules.template, governance.rules.binding, governance.rules.step_key\n"
        "bad = {'psycopg', 'cryptography', 'temporalio'} & set(sys.modules)\n"
        "sys.exit(repr(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

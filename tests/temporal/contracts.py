"""The contract most tests take, under the name of their workflow."""

from __future__ import annotations

from typing import Any

from governance.contracts import ApprovalRule, FlowContract, StepRule


def contract(flow: str, **changes: Any) -> FlowContract:
    """An operator starts; `pay` and `pay_slowly` wait for a finance-approver; `note` is free."""
    fields: dict[str, Any] = {
        "flow": flow,
        "resume": ["operator"],
        "approvals": {"finance": ApprovalRule(roles=("finance-approver",))},
        "steps": [
            StepRule(activity="pay", approval="finance"),
            StepRule(activity="pay_slowly", approval="finance"),
        ],
    }
    return FlowContract(**fields | changes)


def free(flow: str, *activities: str, **changes: Any) -> FlowContract:
    """A contract that claims these steps and asks nobody."""
    steps = [StepRule(activity=name) for name in activities or ("pay",)]
    return contract(flow, approvals={}, steps=steps, **changes)

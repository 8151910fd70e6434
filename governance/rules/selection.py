"""Which step of the contract a call is.

The first step that matches wins. Where a step that may match cannot be told to match or not,
because a path is missing or an argument unreadable, the strictest rule of that activity holds:

1. the call is denied, if `unmatched = "deny"` and no step certainly matches;
2. a step that needs an approval;
3. an `effect` without approval;
4. a `model` step;
5. a `template` step.

Of equally strict steps the first in the contract holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from governance.contracts import CallKind, FlowContract, StepRule
from governance.contracts.glob import matches
from governance.rules.arguments import Argument
from governance.rules.conditions import holds

_STRICTNESS = {"effect": 1, "model": 2, "template": 3}


@dataclass(frozen=True, slots=True)
class Pass:
    """No step: the call is not governed."""


@dataclass(frozen=True, slots=True)
class Deny:
    """No step, and the contract denies such calls.

    Attributes:
        why: One sentence for people.
    """

    why: str


Selection: TypeAlias = StepRule | Pass | Deny
"""What a call is under a contract."""


def select(
    contract: FlowContract,
    activity: str,
    arguments: Sequence[Argument],
    *,
    calls: CallKind = "activity",
) -> Selection:
    """Find the step that a call is.

    Args:
        contract: The contract pinned by the run.
        activity: Name of the called activity, child workflow or operation.
        arguments: Its arguments, see `read_arguments`.
        calls: What is called.

    Returns:
        A step of the contract, or `Pass` or `Deny` where none applies.
    """
    named = [s for s in contract.steps if s.calls == calls and matches(s.activity, activity)]
    doubt = False
    for step in named:
        verdict = holds(step.when, arguments)
        if verdict is True:
            return _strictest(named) if doubt else step
        doubt = doubt or verdict is None
    if contract.unmatched == "deny":
        reason = "cannot be told to match a step" if doubt else "matches no step"
        return Deny(f"{activity} {reason} of the contract for {contract.flow}")
    return _strictest(named) if doubt else Pass()


def governs(contract: FlowContract, activity: str) -> bool:
    """Tell whether a step names this activity, whatever its arguments."""
    return any(s.calls == "activity" and matches(s.activity, activity) for s in contract.steps)


def guards(contract: FlowContract, activity: str, arguments: Sequence[Argument]) -> bool:
    """Tell whether a call from outside the contract's flow is refused.

    It is if under the contract it would be an effect, or need an approval, unless the contract lets
    other workflows share the activity.
    """
    if contract.elsewhere == "pass" or not governs(contract, activity):
        return False
    selected = select(contract, activity, arguments)
    if not isinstance(selected, StepRule):
        return False
    return selected.kind == "effect" or selected.approval is not None


def _strictest(steps: Sequence[StepRule]) -> StepRule:
    # min() keeps the first of equals, which is the contract's order.
    return min(steps, key=lambda step: 0 if step.approval else _STRICTNESS[step.kind])

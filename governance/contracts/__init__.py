"""Contracts: what governs a flow, declared in TOML or Python and known by a digest."""

from governance.contracts.loading import from_toml, load_toml, parse_canonical
from governance.contracts.models import (
    MAX_BYTES,
    ApprovalRule,
    CallKind,
    Condition,
    Duty,
    FlowContract,
    Link,
    Shown,
    StepKind,
    StepRule,
)

__all__ = [
    "MAX_BYTES",
    "ApprovalRule",
    "CallKind",
    "Condition",
    "Duty",
    "FlowContract",
    "Link",
    "Shown",
    "StepKind",
    "StepRule",
    "from_toml",
    "load_toml",
    "parse_canonical",
]

"""Every word that is stored: entry types and who may write them, states, verdicts.

`tests/unit/test_names.py` pins them and the schema's copy; changing one breaks stored evidence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ApprovalState(StrEnum):
    """Where an approval stands. `used` means that its step succeeded."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    REVOKED = "revoked"
    USED = "used"


class ExecutionState(StrEnum):
    """Where an execution stands. `denied` is final for every run of it."""

    OPEN = "open"
    DENIED = "denied"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ContractState(StrEnum):
    """Where a contract version stands. New executions take the active one."""

    REGISTERED = "registered"
    ACTIVE = "active"
    RETIRED = "retired"


class Verdict(StrEnum):
    """What a person decides."""

    APPROVE = "approve"
    REJECT = "reject"


ENTRY_WRITERS: Final[dict[str, tuple[str, ...]]] = {
    "flow.started": ("worker",),
    "flow.continued": ("worker",),
    "flow.refused": ("worker",),
    "flow.completed": ("worker",),
    "flow.failed": ("worker",),
    "flow.cancelled": ("worker",),
    "approval.requested": ("worker",),
    "approval.vote": ("decider",),
    "approval.decided": ("decider",),
    "approval.refused": ("decider",),
    "approval.withdrawn": ("worker", "decider"),
    "approval.revoked": ("decider",),
    "approval.expired": ("worker", "decider"),
    "resume.admitted": ("worker",),
    "resume.denied": ("worker",),
    "step.claimed": ("worker",),
    "step.taken_over": ("worker",),
    "step.executed": ("worker",),
    "step.failed": ("worker",),
    "step.injected": ("worker",),
    "step.evicted": ("worker",),
    "step.refused": ("worker",),
    "role.granted": ("admin",),
    "role.revoked": ("admin",),
    "contract.registered": ("admin",),
    "contract.activated": ("admin",),
    "contract.retired": ("admin",),
    "freeze.set": ("admin",),
    "freeze.lifted": ("admin",),
    "log.opened": ("owner",),
}
"""Entry type → the database group roles (without `governance_`) that may append it."""

"""What Temporal stores for us is called what it was always called."""

from __future__ import annotations

from temporal_integration import _names

STORED = {
    "PLUGIN": "temporal-governance.GovernancePlugin",
    "OPEN": "governance.open",
    "REQUEST": "governance.request",
    "RESUME": "governance.resume",
    "WITHDRAW": "governance.withdraw",
    "INTERNAL_ACTIVITIES": frozenset(
        {"governance.open", "governance.request", "governance.resume", "governance.withdraw"}
    ),
    "WAKE_SIGNAL": "governance.wake",
    "DENIED_TOPIC": "denied",
    "APPROVED_HINT": "approved",
    "START_HEADER": "governance-start",
    "CONTINUED_HEADER": "governance-continued",
    "STEP_HEADER": "governance-step",
    "START_PATCH": "governance-start",
}


def test_names_are_pinned() -> None:
    found = {name: value for name, value in vars(_names).items() if name.isupper()}
    assert found == STORED

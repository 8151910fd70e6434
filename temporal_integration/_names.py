"""Every name Temporal stores for us. Changing one breaks histories; a test pins them."""

from __future__ import annotations

from typing import Final

PLUGIN: Final = "temporal-governance.GovernancePlugin"

OPEN: Final = "governance.open"
REQUEST: Final = "governance.request"
RESUME: Final = "governance.resume"
WITHDRAW: Final = "governance.withdraw"
INTERNAL_ACTIVITIES: Final = frozenset({OPEN, REQUEST, RESUME, WITHDRAW})
"""Local activities of the plugin; refused when they are called in any other way."""

WAKE_SIGNAL: Final = "governance.wake"
"""A hint to look again: an approval id or `denied`, and what to find."""

DENIED_TOPIC: Final = "denied"
"""As `governance.outbox` writes it."""

APPROVED_HINT: Final = "approved"
"""As `governance.names.ApprovalState` says it."""

START_HEADER: Final = "governance-start"
"""On a start: who starts it."""

CONTINUED_HEADER: Final = "governance-continued"
"""On a continue-as-new: the run that continues."""

STEP_HEADER: Final = "governance-step"
"""On a governed activity: which of equal calls, in which round."""

START_PATCH: Final = "governance-start"
"""Marks runs without our start header that began under the plugin."""

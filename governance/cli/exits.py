"""Exit codes, and which of them an error of the product ends with."""

from __future__ import annotations

from typing import Final

from governance import errors

DONE: Final = 0
"""It was done, or the verdict is good."""

NEGATIVE: Final = 1
"""The verdict is negative: a rule refuses it, evidence does not hold, or the person said no."""

UNUSABLE: Final = 2
"""Input, configuration or a server: nothing was judged."""

INTERRUPTED: Final = 130
"""Ctrl-C: 128 and the number of SIGINT, as shells count."""

CUT_OFF: Final = 141
"""Who read the output went away: 128 and the number of SIGPIPE."""

_JUDGED: Final = (
    errors.DecisionRefused,
    errors.AdministrationRefused,
    errors.StepRefused,
    errors.EvidenceError,
)
# Not about who decides or what it says: there is nothing left to decide, or a word is missing.
_NOT_JUDGED: Final = (
    errors.AlreadyDecided,
    errors.ApprovalExpired,
    errors.ApprovalWithdrawn,
    errors.ReasonRequired,
)


def of(error: type[errors.GovernanceError]) -> int:
    """The exit code that this kind of error ends the command with."""
    if issubclass(error, _JUDGED) and not issubclass(error, _NOT_JUDGED):
        return NEGATIVE
    return UNUSABLE

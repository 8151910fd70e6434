"""Governed approvals for teams on Temporal. See the README.

Nothing is imported before it is asked for, so a workflow module may import this package at its top
without passing it through the sandbox, and the command line starts without Temporal's SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temporal_integration._identity import acting_as, current_actor
    from temporal_integration._plugin import GovernancePlugin
    from temporal_integration._step import GovernedStep, governed_step

__all__ = ["GovernancePlugin", "GovernedStep", "acting_as", "current_actor", "governed_step"]

_HOMES = {
    "GovernancePlugin": "_plugin",
    "GovernedStep": "_step",
    "acting_as": "_identity",
    "current_actor": "_identity",
    "governed_step": "_step",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: There is no such name.
        ImportError: Another package named `governance` is in the way.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from temporal_integration._distribution import governance_conflict

    if problem := governance_conflict():
        raise ImportError(problem)
    return getattr(import_module(f"{__name__}.{home}"), name)

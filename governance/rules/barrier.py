"""The barrier: the roles one of which a decider must hold."""

from __future__ import annotations

from collections.abc import Collection


def matching(roles: Collection[str], roles_held: Collection[str]) -> tuple[str, ...]:
    """Return the held roles that are among the wanted ones, sorted; names compare exactly."""
    return tuple(sorted(set(roles).intersection(roles_held)))

"""The resume policy: may the original actor's flow go on?"""

from __future__ import annotations

from collections.abc import Collection

from governance.rules.barrier import matching


def admits(policy: Collection[str], roles_held: Collection[str]) -> bool:
    """Tell whether a flow's `resume` policy lets it go on.

    Args:
        policy: The roles one of which the actor must hold; empty where the contract has none.
        roles_held: The actor's roles as read in this transaction.
    """
    return not policy or bool(matching(policy, roles_held))

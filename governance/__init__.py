"""Governed approvals, engine-agnostic: contracts, rules, decisions and the chain of entries.

Importing this package loads nothing beyond the standard library. Import what you
need from its modules, for example ``governance.contracts``.
"""

from typing import Final

DISTRIBUTION: Final = "temporal-governance"
"""Name of the distribution that this package belongs to.

An unrelated distribution on PyPI installs a package of the same import name; this
constant is how the two are told apart.
"""

__version__: Final = "0.0.1"
"""Version of the distribution (PEP 440)."""

__all__ = ["DISTRIBUTION", "__version__"]

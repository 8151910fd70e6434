"""Who holds which role now, and what a reading of it rests on."""

from governance.roles.directory import (
    Held,
    Holding,
    lock_all_statement,
    lock_statement,
    read_statement,
    to_held,
)

__all__ = [
    "Held",
    "Holding",
    "lock_all_statement",
    "lock_statement",
    "read_statement",
    "to_held",
]

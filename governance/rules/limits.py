"""Limits in time. The clock is the database's; every moment here carries its zone."""

from __future__ import annotations

from datetime import datetime, timedelta


def limit(start: datetime, duration: timedelta | None) -> datetime | None:
    """Return the last moment that counts, or None where there is no limit.

    Args:
        start: When the approval was requested (`decide_by`) or decided (`execute_by`).
        duration: The contract's limit.
    """
    return None if duration is None else start + duration


def is_past(last: datetime | None, now: datetime) -> bool:
    """Tell whether a limit has passed; the moment itself still counts.

    Raises:
        TypeError: One of the two has no time zone and the other has.
    """
    return last is not None and now > last

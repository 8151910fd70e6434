"""Conditions: does a call's `when` hold, not hold, or cannot it be told?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from governance.contracts import Condition
from governance.contracts.fields import decimal_text
from governance.contracts.pointer import MISSING, Missing, resolve
from governance.rules.arguments import Argument, Unreadable


def holds(conditions: Iterable[Condition], arguments: Sequence[Argument]) -> bool | None:
    """Tell whether all conditions hold.

    Args:
        conditions: A step's `when`.
        arguments: The call's arguments.

    Returns:
        False if one certainly does not hold, whatever the others; None if that cannot be told; True
        if each holds. Without conditions True.
    """
    verdicts = [_holds(condition, arguments) for condition in conditions]
    return _all(verdicts)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    # Kleene's strong conjunction: certain knowledge is not undone by doubt.
    known = list(verdicts)
    if False in known:
        return False
    return None if None in known else True


def _holds(condition: Condition, arguments: Sequence[Argument]) -> bool | None:
    found = resolve(arguments, condition.path)
    if isinstance(found, Unreadable):
        return None
    verdicts: list[bool | None] = []
    if condition.exists is not None:
        verdicts.append((found is not MISSING) == condition.exists)
    if condition.eq is not None:
        verdicts.append(_equal(found, condition.eq))
    if condition.in_ is not None:
        verdicts.append(_any_equal(found, condition.in_))
    if condition.lt is not None or condition.gte is not None:
        verdicts.append(_ordered(found, condition, arguments))
    return _all(verdicts)


def _equal(found: object, wanted: str | bool | Decimal) -> bool | None:
    if isinstance(wanted, Decimal):
        number = _number(found)
        return None if number is None else number == wanted
    if type(found) is type(wanted):
        return found == wanted
    return None


def _any_equal(found: object, wanted: Iterable[str | bool | Decimal]) -> bool | None:
    verdicts = [_equal(found, one) for one in wanted]
    if True in verdicts:
        return True
    # A list of names and numbers mixed: one comparable entry is enough to say no.
    return False if False in verdicts else None


def _ordered(found: object, condition: Condition, arguments: Sequence[Argument]) -> bool | None:
    number = _number(found)
    # Amounts of two currencies have no order: neither a small nor a large one tells anything.
    if number is None or not _same_currency(condition, arguments):
        return None
    below = condition.lt is None or number < condition.lt
    reached = condition.gte is None or number >= condition.gte
    return below and reached


def _same_currency(condition: Condition, arguments: Sequence[Argument]) -> bool:
    if condition.currency_path is None:
        return True
    return resolve(arguments, condition.currency_path) == condition.currency


def _number(found: object) -> Decimal | None:
    if isinstance(found, bool | Missing):
        return None
    if isinstance(found, int | Decimal):
        return Decimal(found)
    return decimal_text(found) if isinstance(found, str) else None

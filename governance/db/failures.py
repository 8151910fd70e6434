"""What Postgres and the network say, as errors of the product.

Translated is what a caller of any service may meet: no connection, no time, no permission. All
else (a constraint, a bug in a statement) stays what it is.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from governance.errors import (
    ConfigurationError,
    ConnectionLost,
    DatabaseBusy,
    DatabaseUnavailable,
    GovernanceError,
)

_BUSY = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.DeadlockDetected,
    errors.SerializationFailure,
)
_TOO_LONG = ("25P03", "25P04")  # idle in transaction, transaction timeout: the session is ended
_LOST = ("08", "57P")  # connection exceptions, operator intervention


def text_of(error: psycopg.Error) -> str:
    """What the server or libpq said, on one line."""
    said = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(said.split())


def translate(
    error: psycopg.Error, label: str, *, committing: bool = False
) -> GovernanceError | None:
    """The product's error for one of the driver's, or None if there is none.

    Args:
        error: What was raised inside a transaction.
        label: Names the database in the message.
        committing: COMMIT had been sent: with a lost connection nobody knows what became of it.
    """
    state = error.sqlstate or ""
    if isinstance(error, _BUSY):
        return DatabaseBusy(f"{label} did not get to it in time: {text_of(error)}.")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return read_only(label)
    if isinstance(error, errors.InsufficientPrivilege):
        return ConfigurationError(
            f"{label} does not allow this: {text_of(error)}.",
            hint="Log in with a role that is a member of the governance_… role for it.",
        )
    lost = state in _TOO_LONG or state.startswith(_LOST)
    if lost or (isinstance(error, psycopg.OperationalError) and not state):
        fate = "it is not known whether it was committed" if committing else "nothing was recorded"
        return ConnectionLost(f"The transaction on {label} was cut off: {text_of(error)}; {fate}.")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseUnavailable(f"{label} cannot serve this now: {text_of(error)}.")
    return None


def read_only(label: str) -> DatabaseUnavailable:
    """The error for a server that takes no writes."""
    return DatabaseUnavailable(
        f"{label} takes no writes: it is a standby in recovery, or set to read-only.",
        hint="Connect to the primary, for example with target_session_attrs=read-write.",
    )


@contextmanager
def translated(label: str, *, committing: bool = False) -> Generator[None]:
    """Raise the product's errors for the driver's, see `translate`."""
    try:
        yield
    except psycopg.Error as error:
        known = translate(error, label, committing=committing)
        if known is None:
            raise
        raise known from error

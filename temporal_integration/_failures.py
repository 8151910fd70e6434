"""The one place that builds Temporal failures. The reason stands in the top-level message."""

from __future__ import annotations

import asyncio
from typing import Final

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    RetryState,
)

from governance.errors import GovernanceError, Held, ResumeDenied

_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 300.0
_LONGEST_HELD: Final = 3600


def application_error(
    error: GovernanceError, *, retry_after: float | None = None
) -> ApplicationError:
    """A governance error as Temporal carries it: type is its code, never retried by Temporal.

    Args:
        error: What happened.
        retry_after: For `Held`: seconds until it makes sense to look again, where that is known.
    """
    details = () if retry_after is None else (retry_after,)
    return ApplicationError(
        str(error),
        *details,
        type=error.code,
        non_retryable=True,
        # A refusal is on record and no fault of the worker: its log is spared a stack trace.
        category=ApplicationErrorCategory.BENIGN,
    )


def refusal(code: str, message: str) -> ApplicationError:
    """A refusal whose code and message came through a local activity."""
    return ApplicationError(message, type=code, non_retryable=True)


def retryable(error: GovernanceError) -> ApplicationError:
    """An error that Temporal's own retries are to overcome."""
    return ApplicationError(str(error), type=error.code)


def as_activity_failure(
    activity: str, activity_id: str | None, cause: BaseException
) -> ActivityError:
    """A hold that ends without running fails as its activity would have failed.

    Code that catches `ActivityError` to compensate must see one, with the cause chained.
    """
    cancelled = isinstance(cause, asyncio.CancelledError | CancelledError)
    if isinstance(cause, asyncio.CancelledError):
        cause = CancelledError("Cancelled while waiting for approval")
    error = ActivityError(
        "Activity cancelled" if cancelled else str(cause),
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type=activity,
        activity_id=activity_id or "",
        retry_state=RetryState.CANCEL_REQUESTED if cancelled else RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


def code_of(error: BaseException) -> str | None:
    """The governance code behind an activity failure, if it is one."""
    cause = error.__cause__ if isinstance(error, ActivityError) else error
    return cause.type if isinstance(cause, ApplicationError) else None


def held_for(error: BaseException, times: int) -> float | None:
    """Seconds to wait if the border answered "not now"; None for any other failure.

    Args:
        error: What the call failed with.
        times: How often in a row it was so before. Each time waits longer, to five minutes, unless
            the border knows better: a long outage must not fill the history.
    """
    if code_of(error) != Held.code:
        return None
    cause = error.__cause__ if isinstance(error, ActivityError) else error
    details = cause.details if isinstance(cause, ApplicationError) else ()
    first = details[0] if details else None
    if isinstance(first, int | float) and 0 < first <= _LONGEST_HELD:
        return float(first)
    return min(_FIRST_PAUSE * (1 << min(times, 10)), _LONGEST_PAUSE)


def is_denial(error: BaseException) -> bool:
    """Whether the border ended the execution."""
    return code_of(error) == ResumeDenied.code

"""Results and failures as the database keeps them: through the worker's own data converter."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, CancelledError

from governance.steps import Injected


class Outcomes:
    """Stores and restores what a step came to, encoded and encrypted as the team's payloads are."""

    def __init__(self, converter: DataConverter) -> None:
        """Use the worker's data converter."""
        self._converter = converter

    async def store(self, result: Any) -> bytes:
        """A result as bytes."""
        [payload] = await self._converter.encode([result])
        return payload.SerializeToString()

    async def store_failure(self, error: BaseException) -> bytes | None:
        """A failure as bytes, if Temporal will not try this attempt again; else None.

        A cancellation is no outcome: the step may still be called and run.
        """
        if not _is_terminal(error):
            return None
        failure = Failure()
        await self._converter.encode_failure(error, failure)
        return failure.SerializeToString()

    async def restore(self, injected: Injected) -> RawValue:
        """What is recorded, as the activity's own result.

        Raises:
            BaseException: The recorded failure, equal to the one that was recorded.
        """
        if injected.failed:
            raise await self._converter.decode_failure(Failure.FromString(injected.outcome))
        payload = Payload.FromString(injected.outcome)
        [raw] = await self._converter.decode([payload], [RawValue])
        assert isinstance(raw, RawValue)
        return raw


def failure_type(error: BaseException) -> str:
    """The type Temporal knows a failure by; never its message."""
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def _is_terminal(error: BaseException) -> bool:
    if isinstance(error, asyncio.CancelledError | CancelledError):
        return False
    if isinstance(error, ApplicationError) and error.non_retryable:
        return True
    policy = activity.info().retry_policy
    if policy is None:
        return False
    if failure_type(error) in (policy.non_retryable_error_types or ()):
        return True
    return 0 < policy.maximum_attempts <= activity.info().attempt

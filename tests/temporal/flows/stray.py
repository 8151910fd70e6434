"""Workflows that no contract names and that call what is not theirs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

_OPTIONS: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(maximum_attempts=1),
}


@workflow.defn
class Stranger:
    """Calls an activity by its name, with any arguments."""

    @workflow.run
    async def run(self, activity: str, args: list[Any]) -> Any:
        return await workflow.execute_activity(activity, args=args, **_OPTIONS)

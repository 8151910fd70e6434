"""The caller's side: a start of a governed flow carries who it is for."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    CreateScheduleInput,
    Interceptor,
    OutboundInterceptor,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    StartWorkflowInput,
    StartWorkflowUpdateWithStartInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)

from governance.errors import ActorMissing
from temporal_integration._headers import with_start
from temporal_integration._identity import current_actor


class GovernedClient(Interceptor):
    """Client interceptor of the plugin."""

    def __init__(self, flows: frozenset[str]) -> None:
        """Know the workflow types that contracts name."""
        self._flows = flows

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Put the interceptor in."""
        return _Outbound(next, self._flows)


class _Outbound(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, flows: frozenset[str]) -> None:
        super().__init__(next)
        self._flows = flows

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        """Attach the actor; a governed flow without one is refused here already.

        Raises:
            ActorMissing: The flow is governed and the caller is not inside `acting_as`.
        """
        headers = self._headers(input.workflow, input.headers)
        return await super().start_workflow(dataclasses.replace(input, headers=headers))

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> WorkflowUpdateHandle[Any]:
        """Attach the actor to the start. Raises like `start_workflow`."""
        start = input.start_workflow_input
        start = dataclasses.replace(start, headers=self._headers(start.workflow, start.headers))
        changed = dataclasses.replace(input, start_workflow_input=start)
        return await super().start_update_with_start_workflow(changed)

    async def create_schedule(self, input: CreateScheduleInput) -> ScheduleHandle:
        """Let every run of the schedule be for its maker. Raises like `start_workflow`."""
        action = copy.copy(input.schedule.action)
        if isinstance(action, ScheduleActionStartWorkflow):
            action.headers = self._headers(action.workflow, action.headers or {}) or None
        schedule = dataclasses.replace(input.schedule, action=action)
        return await super().create_schedule(dataclasses.replace(input, schedule=schedule))

    def _headers(self, flow: str, headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
        if flow not in self._flows:
            return headers
        actor = current_actor()
        if actor is None:
            raise ActorMissing(
                f'Flow "{flow}" is governed: somebody must start it.',
                hint="Start it inside `with acting_as(actor_id):`.",
            )
        return with_start(headers, actor)

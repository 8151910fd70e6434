"""The caller's side: a start of a governed flow carries who it is for."""

from __future__ import annotations

import dataclasses
from typing import Any

from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowHandle,
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
        if input.workflow not in self._flows:
            return await super().start_workflow(input)
        actor = current_actor()
        if actor is None:
            raise ActorMissing(
                f'Flow "{input.workflow}" is governed: somebody must start it.',
                hint="Start it inside `with acting_as(actor_id):`.",
            )
        headers = with_start(input.headers, actor)
        return await super().start_workflow(dataclasses.replace(input, headers=headers))

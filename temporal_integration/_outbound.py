"""Outbound calls of a run: governed ones become a task that holds first."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, cast

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.worker import (
    ContinueAsNewInput,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowOutboundInterceptor,
)

from governance.rules.selection import Pass, governs
from temporal_integration import _holds
from temporal_integration._headers import with_continued
from temporal_integration._names import INTERNAL_ACTIVITIES
from temporal_integration._run_state import RunState


class GovernedOutbound(WorkflowOutboundInterceptor):
    """Outbound interceptor of a run whose flow a contract names."""

    def __init__(self, next: WorkflowOutboundInterceptor, state: RunState) -> None:
        """Share the run's state with the inbound interceptor."""
        super().__init__(next)
        self._state = state

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        """Hold a governed call; its handle is an asyncio.Task, as an activity's is."""
        if not (input.start_to_close_timeout or input.schedule_to_close_timeout):
            return self.next.start_activity(input)  # refused there, at the call
        return self._start(input, self.next.start_activity)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        """Hold a governed call made as a local activity; ours pass."""
        timeout = input.start_to_close_timeout or input.schedule_to_close_timeout
        if input.activity in INTERNAL_ACTIVITIES or not timeout:
            return self.next.start_local_activity(input)
        return self._start(input, self.next.start_local_activity)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        """Tell the next run which one it continues."""
        headers = with_continued(input.headers, workflow.info().run_id)
        self.next.continue_as_new(dataclasses.replace(input, headers=headers))

    def _start(
        self, given: _holds.AnyInput, start: Callable[[_holds.AnyInput], Any]
    ) -> workflow.ActivityHandle[Any]:
        state = self._state
        if state.settled and not self._may_be_governed(given.activity):
            return cast("workflow.ActivityHandle[Any]", start(given))
        payloads = _holds.fix_arguments(given.args)
        fixed = dataclasses.replace(given, args=[RawValue(p) for p in payloads])
        if not state.settled:
            later = _holds.run_later(state, fixed, start)
            return cast("workflow.ActivityHandle[Any]", asyncio.create_task(later))
        chosen = _holds.choose(state, given.activity, payloads)
        if isinstance(chosen, Pass):
            return cast("workflow.ActivityHandle[Any]", start(given))
        held = _holds.run(state, chosen, fixed, start)
        return cast("workflow.ActivityHandle[Any]", asyncio.create_task(held))

    def _may_be_governed(self, activity: str) -> bool:
        contract = self._state.contract
        if contract is None:
            return False
        return contract.unmatched == "deny" or governs(contract, activity)

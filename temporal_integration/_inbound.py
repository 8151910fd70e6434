"""A run from its start to its end: open it, let it run, drain and close it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from governance.contracts import parse_canonical
from governance.errors import ResumeDenied
from temporal_integration import _failures
from temporal_integration._ask import ask
from temporal_integration._headers import read_continued, read_start
from temporal_integration._names import (
    CLOSE,
    CONTINUED_HEADER,
    OPEN,
    START_HEADER,
    START_PATCH,
    WAKE_SIGNAL,
)
from temporal_integration._outbound import GovernedOutbound
from temporal_integration._run_state import RunState


class GovernedInbound(WorkflowInboundInterceptor):
    """Inbound interceptor; it does nothing for a workflow type that no contract names."""

    flows: ClassVar[frozenset[str]]

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Put our outbound interceptor in and listen for wake-ups."""
        self._governed = outbound.info().workflow_type in self.flows
        if not self._governed:
            super().init(outbound)
            return
        self._state = RunState()
        self._ended = False
        self._ending = asyncio.Lock()
        super().init(GovernedOutbound(outbound, self._state))
        workflow.set_signal_handler(WAKE_SIGNAL, self._wake)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Open the run, run it, and end it by the rules whatever user code does.

        A denial is final: it is checked on return, on raise and on continue-as-new, and the
        wake-up that the denying transaction wrote ends code that swallows everything.
        """
        if not self._governed:
            return await self.next.execute_workflow(input)
        # A history that began without us has no marker and goes on ungoverned on this side;
        # the border refuses its governed steps.
        ours = START_HEADER in input.headers or CONTINUED_HEADER in input.headers
        if not ours and not workflow.patched(START_PATCH):
            self._state.settle(None)
            return await self.next.execute_workflow(input)
        await self._open(input.headers)
        try:
            result = await self.next.execute_workflow(input)
        except workflow.ContinueAsNewError:
            await self._end(None)
            raise
        except (Exception, asyncio.CancelledError) as error:
            await self._end_failed(error)
            raise
        await self._end("completed")
        return result

    async def _open(self, headers: Mapping[str, Payload]) -> None:
        info = workflow.info()
        answer = await ask(
            OPEN,
            {
                "actor": read_start(headers),
                "attempt": info.attempt,
                "original_run_id": info.original_execution_run_id,
                "continued_run_id": info.continued_run_id,
                "continued_by": read_continued(headers),
            },
            "governance: open",
        )
        if answer["status"] == "refused":
            raise _failures.refusal(answer["code"], answer["message"])
        if answer["status"] == "denied":
            raise _failures.application_error(ResumeDenied())
        self._state.settle(parse_canonical(answer["contract"].encode()))

    async def _wake(self, topic: str = "") -> None:
        """A hint: whoever waits looks again. Ends a denied run that swallowed the denial."""
        if self._state.denied is not None:
            await self._end("failed")
            return
        self._state.wakes.wake(topic)

    async def _end_failed(self, error: BaseException) -> None:
        if is_cancelled_exception(error):
            await self._end("cancelled")
        elif workflow.is_failure_exception(error):
            await self._end("failed", type(error).__name__)
        # Anything else fails the workflow task, not the workflow: it will be tried again.

    async def _end(self, how: str | None, code: str = "") -> None:
        """Drain, close, and raise the denial if there was one. `how` is None for a next run."""
        # One at a time: a wake-up that ends the run and main that returns may meet.
        async with self._ending:
            if not self._ended:
                await self._state.drain()
                denied = self._state.denied
                state, why = ("failed", ResumeDenied.code) if denied else (how, code)
                await ask(CLOSE, {"state": state, "code": why}, "governance: close")
                self._ended = True
        if self._state.denied is not None:
            raise ApplicationError(
                self._state.denied.message, type=ResumeDenied.code, non_retryable=True
            )

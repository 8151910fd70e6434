"""A run from its start to its end: open it, let it run, drain it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    HandleSignalInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from governance.contracts import parse_canonical
from governance.errors import ResumeDenied
from temporal_integration import _failures
from temporal_integration._ask import ask
from temporal_integration._headers import read_continued, read_start
from temporal_integration._names import (
    CONTINUED_HEADER,
    DENIED_TOPIC,
    OPEN,
    START_HEADER,
    START_PATCH,
    WAKE_SIGNAL,
)
from temporal_integration._outbound import GovernedOutbound
from temporal_integration._run_state import RunState

_LOOK_AGAIN: Final = timedelta(seconds=5)


class GovernedInbound(WorkflowInboundInterceptor):
    """Inbound interceptor; it does nothing for a workflow type that no contract names."""

    flows: ClassVar[frozenset[str]]

    @staticmethod
    def tell_ending(workflow_id: str, run_id: str) -> None:
        """Replaced in a worker: it asks the server how the run ended. A replay asks nobody."""

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Put our outbound interceptor in and listen for wake-ups."""
        self._governed = outbound.info().workflow_type in self.flows
        if not self._governed:
            super().init(outbound)
            return
        self._state = RunState()
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
        try:
            await self._open(input.headers)
            result = await self.next.execute_workflow(input)
        except (Exception, asyncio.CancelledError, workflow.ContinueAsNewError) as error:
            if _ends_the_run(error):
                await self._end()
            raise
        await self._end()
        return result

    async def handle_signal(self, input: HandleSignalInput) -> None:
        """Let the handler run at once; if it fails the run, end that by the rules too."""
        try:
            await self.next.handle_signal(input)
        except (Exception, asyncio.CancelledError, workflow.ContinueAsNewError) as error:
            if self._governed and _ends_the_run(error):
                await self._end()
            raise

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

    async def _wake(self, *given: Any) -> None:
        """A hint: whoever waits looks again. Ends a denied run that swallowed the denial.

        Anybody can send it, with anything: an argument too many must not fail the workflow task.
        """
        topic, hint = [one if isinstance(one, str) else "" for one in (*given, "", "")[:2]]
        if self._state.denied is not None:
            await self._end()
        if topic == DENIED_TOPIC:
            await self._look_again()
        else:
            self._state.wakes.wake(topic, hint)

    async def _look_again(self) -> None:
        """Have every hold look again; if a call finds the denial, end the run from here.

        Once the error has gone to code that swallows it, nothing else would end the run before the
        wake-up is sent again. Nor is this handler to wait long, should the wake-up be forged.
        """
        state = self._state
        state.wakes.wake_all()
        if state.busy:
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(lambda: not state.busy, timeout=_LOOK_AGAIN)
        if state.denied is not None:
            await self._end()

    async def _end(self) -> None:
        """Drain, and raise the denial if there was one.

        How the run ended is recorded when the server says so; here the worker is only told to ask.
        """
        # One at a time: a wake-up that ends the run and main that returns may meet.
        async with self._ending:
            await self._state.drain()
        if not workflow.unsafe.is_replaying():  # a hint only: no command depends on it
            info = workflow.info()
            self.tell_ending(info.workflow_id, info.run_id)
        if self._state.denied is not None:
            raise ApplicationError(
                self._state.denied.message, type=ResumeDenied.code, non_retryable=True
            )


def _ends_the_run(error: BaseException) -> bool:
    """Whether this ends the run; any other exception fails the workflow task, which is retried."""
    return (
        isinstance(error, workflow.ContinueAsNewError)
        or is_cancelled_exception(error)
        or workflow.is_failure_exception(error)
    )

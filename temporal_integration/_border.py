"""The border: a governed step runs only if one database transaction says so.

Who calls comes from `activity.info()`, which the server fills; the execution from what the server
says of the run; which step from the pinned contract and the input as it came. A header only claims
which of equal calls this is.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from temporalio import activity

# Raised by raise_complete_async(); there is no public name for it.
from temporalio.activity import _CompleteAsyncError  # pyright: ignore[reportPrivateUsage]
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from governance import steps
from governance.contracts import FlowContract, StepRule
from governance.errors import (
    AsyncCompletionUnsupported,
    Frozen,
    Held,
    NotGoverned,
    StepEvicted,
    StepRefused,
    Unavailable,
    UnmatchedCall,
)
from governance.executions import Run
from governance.rules.arguments import read_arguments
from governance.rules.binding import bound_call, input_digest
from governance.rules.selection import Deny, Pass, governs, guards, select
from governance.rules.step_key import idempotency_key, step_key
from temporal_integration import _failures
from temporal_integration._capture import captured_input
from temporal_integration._claims import Claims
from temporal_integration._headers import StepClaim, read_step
from temporal_integration._holds import as_pairs
from temporal_integration._names import INTERNAL_ACTIVITIES
from temporal_integration._outcomes import Outcomes, failure_type
from temporal_integration._runtime import Runtime
from temporal_integration._step import GovernedStep, running_as

_FROZEN = 30.0
_FROZEN_LONG = 600.0


@dataclass(frozen=True)
class Border:
    """What the border needs of its worker.

    Attributes:
        runtime: Database and server.
        claims: Renews what this process holds.
        outcomes: Stores and restores results with the worker's own data converter.
        contracts: The contracts given to this worker: which flows are governed, and which
            activities are refused elsewhere.
    """

    runtime: Runtime
    claims: Claims
    outcomes: Outcomes
    contracts: tuple[FlowContract, ...]

    @property
    def flows(self) -> frozenset[str]:
        """The workflow types that contracts on this worker name."""
        return frozenset(contract.flow for contract in self.contracts)


class BorderInterceptor(ActivityInboundInterceptor):
    """Checks and claims every governed step before it runs."""

    def __init__(self, next: ActivityInboundInterceptor, border: Border) -> None:
        """Keep the border's parts."""
        super().__init__(next)
        self._border = border

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Run, inject, hold off or refuse."""
        info = activity.info()
        claim = read_step(input.headers)
        if info.activity_type in INTERNAL_ACTIVITIES:
            return await self.next.execute_activity(input)
        payloads = captured_input(len(input.args))
        if claim is None and info.workflow_type not in self._border.flows:
            await self._refuse_elsewhere(payloads)
            return await self.next.execute_activity(input)
        try:
            run = await self._run()
            if payloads is None:
                raise NotGoverned("The step's input did not pass the worker's data converter.")
            pairs = as_pairs(payloads)
            selected = select(run.contract, info.activity_type, read_arguments(pairs))
            if isinstance(selected, Pass):
                return await self.next.execute_activity(input)
            if isinstance(selected, Deny):
                raise UnmatchedCall(f"{selected.why}.")
            call = _call(run, selected, claim, pairs)
        except StepRefused as refused:
            raise _failures.application_error(refused) from refused
        except Unavailable as away:
            raise _not_now(claim, away) from away
        return await self._governed(run, call, claim, input)

    async def _refuse_elsewhere(self, payloads: Sequence[Payload] | None) -> None:
        """Refuse a call from outside its flow that would be governed inside."""
        info = activity.info()
        named = [c for c in self._border.contracts if governs(c, info.activity_type)]
        arguments = read_arguments(as_pairs(payloads or ()))
        for contract in named:
            if guards(contract, info.activity_type, arguments):
                caller = info.workflow_type or "nobody's workflow"
                refused = NotGoverned(
                    f"{info.activity_type} is a governed step of {contract.flow}; it was called "
                    f"from {caller}.",
                    hint='A contract with `elsewhere = "pass"` lets other workflows share it.',
                )
                await self._record_elsewhere(contract, refused)
                raise _failures.application_error(refused)

    async def _record_elsewhere(self, contract: FlowContract, refused: NotGoverned) -> None:
        """The refusal stands on the stream of the flow's contracts; it does not wait for that."""
        info, runtime = activity.info(), self._border.runtime
        payload = {
            "realm": runtime.realm,
            "flow": contract.flow,
            "activity": info.activity_type,
            "workflow_type": info.workflow_type or "",
            "workflow_id": info.workflow_id or "",
            "run_id": info.workflow_run_id or info.activity_run_id or "",
            "code": refused.code,
        }
        try:
            await runtime.database.run(
                lambda conn: steps.record_elsewhere(conn, runtime.realm, contract.flow, payload)
            )
        except Unavailable as away:
            activity.logger.warning("a refusal is not on record: %s", away)

    async def _run(self) -> Run:
        info = activity.info()
        if info.workflow_id is None or info.workflow_run_id is None:
            raise NotGoverned(
                "A governed step runs in its workflow only, not as an activity alone."
            )
        return await self._border.runtime.resolve(info.workflow_id, info.workflow_run_id)

    async def _governed(
        self, run: Run, call: steps.Call, claim: StepClaim | None, input: ExecuteActivityInput
    ) -> Any:
        database = self._border.runtime.database
        started = time.monotonic()
        try:
            while True:
                begun = await database.run(lambda conn: steps.begin(conn, run, call))
                # Authority and lease are as old as this answer; a frozen worker asks again.
                if time.monotonic() - started < call.lease / 2:
                    break
                started = time.monotonic()
        except Unavailable as away:
            raise _not_now(claim, away) from away
        match begun:
            case steps.Injected():
                return await self._border.outcomes.restore(begun)
            case steps.Busy():
                pause = max(1.0, begun.seconds)
                held = Held(f"Another attempt holds step {call.name} for up to {pause:.0f} s.")
                raise _failures.application_error(held, retry_after=pause)
            case steps.Permit():
                return await self._execute(run, call, begun, input)
            case Frozen():
                held = Held(f"Step {call.name} is not run now. {begun}")
                raise _failures.application_error(held, retry_after=_thaw_pause(begun))
            case refused:
                raise _failures.application_error(refused)

    async def _execute(
        self, run: Run, call: steps.Call, permit: steps.Permit, input: ExecuteActivityInput
    ) -> Any:
        task = asyncio.current_task()
        assert task is not None
        attempt = _Attempt(run, call, permit, task)
        claims = self._border.claims
        claims.add(call.key, call.attempt, call.lease, attempt.evict)
        try:
            with running_as(attempt.step, input):
                result = await self.next.execute_activity(input)
        except BaseException as error:
            if attempt.evicted:
                raise _failures.application_error(_evicted(call)) from error
            if isinstance(error, _CompleteAsyncError):
                error = _failures.application_error(AsyncCompletionUnsupported())
            await self._record_failure(attempt, error)
            raise error
        else:
            with _heartbeating(input):
                return await self._record_outcome(attempt, result)
        finally:
            claims.remove(call.key, call.attempt)

    async def _record_outcome(self, attempt: _Attempt, result: Any) -> Any:
        """Record the result; the effect has happened, so this does not give up."""
        outcome = await self._border.outcomes.store(result)
        finished = await self._insist(attempt, outcome)
        match finished:
            case None:
                return result
            case steps.Injected():
                return await self._border.outcomes.restore(finished)
            case steps.Evicted():
                raise _failures.application_error(_evicted(attempt.call))

    async def _insist(
        self, attempt: _Attempt, outcome: bytes
    ) -> steps.Injected | steps.Evicted | None:
        run, call, token = attempt.run, attempt.call, attempt.permit.token
        pause = 0.1
        while True:
            try:
                return await self._border.runtime.database.run(
                    lambda conn: steps.finish(conn, run, call, token, outcome)
                )
            except Unavailable as away:
                activity.logger.warning("outcome of %s not recorded yet: %s", call.name, away)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def _record_failure(self, attempt: _Attempt, error: BaseException) -> None:
        """Record the failed attempt. If that fails too, the claim's lease runs out by itself."""
        failure = await self._border.outcomes.store_failure(error)
        run, call, token = attempt.run, attempt.call, attempt.permit.token
        try:
            await self._border.runtime.database.run(
                lambda conn: steps.fail(
                    conn, run, call, token, code=failure_type(error), failure=failure
                )
            )
        except Unavailable as away:
            activity.logger.warning("failure of %s not recorded: %s", call.name, away)


@contextmanager
def _heartbeating(input: ExecuteActivityInput) -> Generator[None]:
    """Heartbeat for the activity while its outcome is recorded, if the server expects it to.

    Its function has ended and beats no more. A database that is away would otherwise cost an
    attempt whose effect has happened.
    """
    timeout = activity.info().heartbeat_timeout
    if not timeout:
        yield
        return
    seconds = timeout.total_seconds() / 3
    beating = asyncio.create_task(_beat(seconds, in_thread=input.executor is not None))
    try:
        yield
    finally:
        beating.cancel()


async def _beat(seconds: float, *, in_thread: bool) -> None:
    while True:
        if in_thread:  # the SDK's heartbeat of a synchronous activity waits for this loop
            await asyncio.to_thread(activity.heartbeat)
        else:
            activity.heartbeat()
        await asyncio.sleep(seconds)


class _Attempt:
    """One attempt that runs."""

    def __init__(
        self, run: Run, call: steps.Call, permit: steps.Permit, task: asyncio.Task[Any]
    ) -> None:
        self.run, self.call, self.permit = run, call, permit
        self.evicted = False
        self._task = task
        self.step = GovernedStep(
            name=call.name,
            actor=run.actor,
            idempotency_key=idempotency_key(call.key),
            approval=permit.approval.hex if permit.approval else None,
            token=permit.token,
        )

    def evict(self) -> None:
        """Another attempt took over: cancel this one; its finish changes nothing in any case."""
        self.evicted = True
        self._task.cancel()


def _call(
    run: Run,
    step: StepRule,
    claim: StepClaim | None,
    pairs: Sequence[tuple[dict[str, bytes], bytes]],
) -> steps.Call:
    if claim is None:
        raise NotGoverned(
            f"Step {step.name} was not called through the plugin.",
            hint="It was scheduled before the flow was governed, or by a worker without it.",
        )
    bound = bound_call(step, activity.info().activity_type, pairs)
    limits = [step.lease, activity.info().start_to_close_timeout]
    return steps.Call(
        key=step_key(run.execution, run.generation, step.name, bound, claim.n),
        name=step.name,
        n=claim.n,
        round=claim.round,
        kind=step.kind,
        approval=step.approval,
        input_digest=input_digest(pairs),
        binds_digest=bound,
        attempt=uuid.uuid4(),
        # An attempt that Temporal has given up must not hold the step any longer than it could run.
        lease=min(limit for limit in limits if limit).total_seconds(),
    )


def _not_now(claim: StepClaim | None, away: Unavailable) -> ApplicationError:
    if claim is None:
        # The workflow side does not wait for this call: let Temporal try again.
        return _failures.retryable(away)
    held = Held(f"The step cannot be checked now: {away}")
    return _failures.application_error(held)


def _thaw_pause(frozen: Frozen) -> float:
    """Seconds until it makes sense to look again: a tenth of how long it has been frozen.

    Each look costs some eleven history events, and a history has a limit: days must be affordable.
    """
    return min(max(_FROZEN, frozen.seconds / 10), max(_FROZEN, _FROZEN_LONG))


def _evicted(call: steps.Call) -> StepEvicted:
    return StepEvicted(f"Another attempt took step {call.name} over; nothing of this one counts.")

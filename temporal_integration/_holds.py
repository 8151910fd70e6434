"""A governed call on the workflow side: choose the step, hold, resume, then really call.

Everything here may be wrong, replayed or absent: the border decides. This arranges the wait.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import StartActivityInput, StartLocalActivityInput

from governance.contracts import FlowContract, StepRule
from governance.errors import (
    ApprovalMissing,
    ApprovalNotUsable,
    ApprovalRejected,
    ResumeDenied,
    UnmatchedCall,
)
from governance.rules.arguments import Argument, read_arguments
from governance.rules.binding import bound_call, input_digest
from governance.rules.selection import Deny, Pass, select
from governance.rules.template import render_title, shown_values
from temporal_integration import _failures
from temporal_integration._ask import ask
from temporal_integration._headers import StepClaim, with_step
from temporal_integration._names import APPROVED_HINT, REQUEST, RESUME, WITHDRAW
from temporal_integration._run_state import RunState

AnyInput = TypeVar("AnyInput", StartActivityInput, StartLocalActivityInput)
Start = Callable[[AnyInput], Awaitable[Any]]

_GO_ON = frozenset({"done", "admitted"})


@dataclasses.dataclass(frozen=True)
class GovernedCall:
    """One call of a governed step: all that was fixed when user code made it."""

    step: StepRule
    contract: FlowContract
    arguments: tuple[Argument, ...]
    input_digest: bytes
    binds_digest: bytes
    claim: StepClaim

    @property
    def what(self) -> dict[str, Any]:
        """Names the step in requests of ours."""
        return {
            "step": self.step.name,
            "n": self.claim.n,
            "round": self.claim.round,
            "binds_digest": self.binds_digest.hex(),
        }

    def request(self) -> dict[str, Any]:
        """The request for the approval the step asks for; only shown values leave the input."""
        assert self.step.approval is not None
        rule = self.contract.approvals[self.step.approval]
        shown = shown_values(rule, self.arguments)
        return self.what | {
            "approval": self.step.approval,
            "input_digest": self.input_digest.hex(),
            "title": render_title(rule, shown, f"Run {self.step.name}"),
            "shown": shown,
        }


def fix_arguments(args: Sequence[Any]) -> list[Payload]:
    """Encode the arguments now: errors come at the call, later changes do not matter."""
    return list(workflow.payload_converter().to_payloads(args)) if args else []


def as_pairs(payloads: Sequence[Payload]) -> list[tuple[dict[str, bytes], bytes]]:
    """Payloads as the rules take them."""
    return [(dict(p.metadata), p.data) for p in payloads]


def choose(
    state: RunState, activity: str, payloads: Sequence[Payload]
) -> GovernedCall | Pass | Deny:
    """What a call is under the pinned contract, and which of equal calls."""
    contract = state.contract
    if contract is None:
        return Pass()
    pairs = as_pairs(payloads)
    arguments = read_arguments(pairs)
    selected = select(contract, activity, arguments)
    if isinstance(selected, Pass | Deny):
        return selected
    bound = bound_call(selected, activity, pairs)
    counted = state.tracker.call(selected.name, bound)
    return GovernedCall(
        step=selected,
        contract=contract,
        arguments=arguments,
        input_digest=input_digest(pairs),
        binds_digest=bound,
        claim=StepClaim(counted.n, counted.round),
    )


async def run_later(state: RunState, given: AnyInput, start: Start[AnyInput]) -> Any:
    """A call made before the run's contract is known: wait for it, then go on as usual."""
    payloads = [arg.payload for arg in given.args if isinstance(arg, RawValue)]
    await state.opened()
    chosen = choose(state, given.activity, payloads)
    if isinstance(chosen, Pass):
        return await start(given)
    return await run(state, chosen, given, start)


async def run(
    state: RunState, call: GovernedCall | Deny, given: AnyInput, start: Start[AnyInput]
) -> Any:
    """Carry a governed call through: hold it, call the activity, note how it ended.

    Raises:
        ActivityError: As the activity itself would fail; refusals and cancellation included.
    """
    if isinstance(call, Deny):
        refused = _failures.application_error(UnmatchedCall(f"{call.why}."))
        raise _failure(given, refused) from refused
    name, digest, n = call.step.name, call.binds_digest, call.claim.n
    try:
        await state.unless_denied()
        result = await _held_call(state, call, given, start)
    except BaseException:
        state.tracker.failed(name, digest, n)
        raise
    state.tracker.succeeded(name, digest, n)
    return result


async def _held_call(
    state: RunState, call: GovernedCall, given: AnyInput, start: Start[AnyInput]
) -> Any:
    """Hold the call if it needs an approval, then make it.

    A wake-up hints at the decision. A step that the border claims believes an approval once: its
    begin is the resume, and checks everything. So a forged wake-up costs one refused attempt, and
    afterwards this side asks for itself.
    """
    believing = call.step.kind == "effect"
    while True:
        believed = False
        if call.step.approval is not None:
            believed = await _hold(state, call, given, believing)
        try:
            return await _call(state, call, given, start)
        except (ActivityError, ApplicationError) as error:
            if not believed or _failures.code_of(error) != ApprovalMissing.code:
                raise
        believing = False


async def _hold(state: RunState, call: GovernedCall, given: AnyInput, believing: bool) -> bool:
    """Wait for the decision and the resume; fail as the activity would if it must not run.

    Returns:
        Whether a wake-up was believed.
    """
    try:
        with state.holding():
            return await _until_admitted(state, call, believing)
    except asyncio.CancelledError as error:
        # Also raised when the run is evicted from the cache; asking then ends this task.
        with state.holding():
            await ask(WITHDRAW, call.what | {"why": "cancelled"}, "governance: withdraw")
        failure = _failure(given, error)
        raise failure from failure.__cause__
    except ApplicationError as error:
        raise _failure(given, error) from error


async def _until_admitted(state: RunState, call: GovernedCall, believing: bool) -> bool:
    name = call.step.name
    answer = await ask(REQUEST, call.request(), f"governance: request approval of {name}")
    while (status := answer["status"]) not in _GO_ON:
        if status == "denied":
            state.denied = _failures.application_error(ResumeDenied())
            raise state.denied
        approval = answer["approval"]
        if status == "rejected":
            raise _failures.application_error(
                ApprovalRejected(f"The approval of {name} was rejected (approval {approval}).")
            )
        if status not in ("pending", "approved", "used"):
            raise _failures.application_error(
                ApprovalNotUsable(f"The approval of {name} cannot be used: {status}.")
            )
        if status == "pending":
            hint = await state.wakes.wait(approval)
            if believing and hint == APPROVED_HINT:
                return True
        answer = await ask(RESUME, {"approval": approval}, f"governance: resume {name}")
    return False


async def _call(
    state: RunState, call: GovernedCall, given: AnyInput, start: Start[AnyInput]
) -> Any:
    """Call the activity; while the border answers "not now", wait and call it again."""
    for times in itertools.count():
        attempt = dataclasses.replace(given, headers=with_step(given.headers, call.claim))
        try:
            with state.calling():
                return await start(attempt)
        except (ActivityError, ApplicationError) as error:
            # A remote activity fails with ActivityError, a local one with its cause.
            pause = _failures.held_for(error, times)
            if pause is None:
                if _failures.is_denial(error):
                    state.denied = _failures.application_error(ResumeDenied())
                raise
        try:
            await workflow.sleep(pause, summary=f"governance: {call.step.name} is held")
        except asyncio.CancelledError as error:
            failure = _failure(given, error)
            raise failure from failure.__cause__


def _failure(given: AnyInput, cause: BaseException) -> ActivityError:
    return _failures.as_activity_failure(given.activity, given.activity_id, cause)

"""What the border refuses: each with its own code, and nothing runs."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.client import ActivityFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from governance.errors import (
    ApprovalMismatch,
    ApprovalMissing,
    AsyncCompletionUnsupported,
    NotGoverned,
)
from temporal_integration._names import INTERNAL_ACTIVITIES, STEP_HEADER
from tests.temporal.contracts import contract, free
from tests.temporal.flows.pay import PayOnce
from tests.temporal.flows.stray import Stranger
from tests.temporal.playing import Play
from tests.temporal.stage import failure
from tests.temporal.tampering import (
    Change,
    Tampering,
    other_arguments,
    with_header,
    without_headers,
)

FORGED = json.dumps({"approval": uuid.uuid4().hex, "actor": "olga", "step": "pay", "n": 1})
CONTRACTS = [contract("PayOnce")]


@pytest.mark.parametrize("name", sorted(INTERNAL_ACTIVITIES))
async def test_a_stranger_calls_an_internal_activity(play: Play, name: str) -> None:
    async with play(PayOnce, Stranger, contracts=CONTRACTS) as stage:
        for args in (["{}"], [FORGED], [None]):
            handle = await stage.start(Stranger.run, name, args, actor=None)
            cause = await failure(handle)
            assert isinstance(cause, ActivityError)
            assert isinstance(cause.__cause__, ApplicationError)
            assert cause.__cause__.type == NotGoverned.code
            assert await stage.executions(handle) == []


@pytest.mark.parametrize("name", sorted(INTERNAL_ACTIVITIES))
async def test_a_client_calls_an_internal_activity(play: Play, name: str) -> None:
    async with play(PayOnce) as stage:
        with pytest.raises(ActivityFailureError) as caught:
            await stage.client.execute_activity(
                name,
                args=[FORGED],
                id=f"stray-{uuid.uuid4().hex}",
                task_queue=stage.queue,
                start_to_close_timeout=timedelta(seconds=10),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == NotGoverned.code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (other_arguments, ApprovalMismatch.code),
        (without_headers, NotGoverned.code),
        (with_header(STEP_HEADER, '{"v":1,"n":2,"round":1}'), ApprovalMissing.code),
        (with_header(STEP_HEADER, '{"v":1,"n":0,"round":1}'), NotGoverned.code),
        (with_header(STEP_HEADER, "{"), NotGoverned.code),
        (with_header(STEP_HEADER, '{"v":2}'), NotGoverned.code),
    ],
)
async def test_something_changed_behind_the_hold(play: Play, change: Change, code: str) -> None:
    worker = {"interceptors": [Tampering(change)]}
    async with play(PayOnce, worker=worker) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        cause = await failure(handle)
        assert isinstance(cause, ActivityError)
        assert isinstance(cause.__cause__, ApplicationError)
        assert (cause.__cause__.type, cause.__cause__.non_retryable) == (code, True)
        assert stage.ledger.paid == []


@pytest.mark.parametrize("change", [other_arguments, without_headers])
async def test_changed_before_anybody_decided(play: Play, change: Change) -> None:
    """The call is made only after the decision; a refused one leaves the approval unused."""
    async with play(PayOnce, worker={"interceptors": [Tampering(change)]}) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await failure(handle)
        [approval] = await stage.approvals()
        assert approval["state"] == "approved"
        assert stage.ledger.paid == []


@activity.defn(name="pay")
async def pay_later(what: str) -> str:
    activity.raise_complete_async()


async def test_completion_from_outside(play: Play) -> None:
    async with play(PayOnce, contracts=[free("PayOnce")], activities=[pay_later]) as stage:
        handle = await stage.start(PayOnce.run, "42")
        cause = await failure(handle)
        assert isinstance(cause.__cause__, ApplicationError)
        assert cause.__cause__.type == AsyncCompletionUnsupported.code
        failed = [e.payload for e in await stage.timeline(handle) if e.type == "step.failed"]
        assert [(one["code"], one["terminal"]) for one in failed] == [
            (AsyncCompletionUnsupported.code, True)
        ]


async def test_calls_that_match_no_step(play: Play) -> None:
    """With `unmatched = "deny"` the flow's own calls are refused, not anybody else's."""
    contracts = [free("PayOnce", "note", unmatched="deny")]
    async with play(PayOnce, Stranger, contracts=contracts) as stage:
        cause = await failure(await stage.start(PayOnce.run, "42"))
        assert isinstance(cause.__cause__, ApplicationError)
        assert cause.__cause__.type == "unmatched_call"
        assert stage.ledger.paid == []

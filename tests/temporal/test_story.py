"""The story, act by act, as tables, chain and history tell it."""

from __future__ import annotations

import pytest
from psycopg.sql import SQL
from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import ApplicationError

from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    BarrierNotMet,
    ReasonRequired,
)
from governance.names import ApprovalState, ExecutionState, Verdict
from tests.temporal.contracts import free
from tests.temporal.flows.pay import PayAroundGate, PayOnce
from tests.temporal.playing import Play
from tests.temporal.stage import APPROVER, OPERATOR, STRANGER, Stage, failure, result

TOLD = SQL("SELECT topic, tries <= 1, done_at IS NOT NULL FROM governance.outbox")
HELD = SQL("SELECT name, n, round, token, outcome IS NOT NULL FROM governance.step")


async def test_act_1_approved_by_somebody_else_and_paid_once(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await _refused_for_who_they_are(stage)
        assert stage.ledger.paid == []
        await stage.approve()
        assert await result(handle) == "paid 42"
        [paid] = stage.ledger.paid
        assert (paid.what, paid.actor, paid.token) == ("42", OPERATOR, 1)
        assert await stage.ended(handle) == ExecutionState.COMPLETED
        types = await stage.types(handle)
        assert types.count("approval.refused") == 4
        assert [t for t in types if t != "approval.refused"] == [
            "flow.started",
            "approval.requested",
            "approval.decided",
            "resume.admitted",
            "step.claimed",
            "step.executed",
            "flow.completed",
        ]
        [approval] = await stage.approvals()
        assert approval["state"] == ApprovalState.USED
        assert await stage.rows(HELD) == [("pay", 1, 1, 1, True)]
        assert await stage.rows(TOLD) == [(approval["id"].hex, True, True)]
        again = await stage.decide(approval, Verdict.APPROVE)
        assert isinstance(again, AlreadyDecided)
        assert APPROVER in str(again)


async def _refused_for_who_they_are(stage: Stage) -> None:
    [asked] = await stage.pending()
    by_actor = await stage.decide(asked, Verdict.APPROVE, OPERATOR)
    assert isinstance(by_actor, ActorMustNotDecide)
    by_stranger = await stage.decide(asked, Verdict.APPROVE, STRANGER)
    assert isinstance(by_stranger, BarrierNotMet)
    without_reason = await stage.decide(asked, Verdict.REJECT)
    assert isinstance(without_reason, ReasonRequired)
    assert isinstance(await stage.decide(asked, Verdict.REJECT, OPERATOR, "no"), ActorMustNotDecide)


async def test_act_1_in_the_history_of_the_workflow(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await result(handle)
        events = await stage.events(handle)
        kinds = [EventType.Name(e.event_type).removeprefix("EVENT_TYPE_") for e in events]
        assert kinds.count("MARKER_RECORDED") == 2, "open, request"
        assert kinds.count("ACTIVITY_TASK_SCHEDULED") == 1
        assert kinds.count("WORKFLOW_EXECUTION_SIGNALED") == 1
        assert not {"TIMER_STARTED", "WORKFLOW_TASK_FAILED", "WORKFLOW_TASK_TIMED_OUT"} & {*kinds}
        [scheduled] = [e for e in events if e.HasField("activity_task_scheduled_event_attributes")]
        attributes = scheduled.activity_task_scheduled_event_attributes
        assert [p.data for p in attributes.input.payloads] == [b'"42"']


async def test_act_2_a_reset_asks_nobody_and_pays_nothing(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.approve()
        await result(handle)
        again = await stage.reset(handle)
        assert await result(again) == "paid 42"
        assert stage.ledger.whats == ["42"]
        assert len(await stage.approvals()) == 1
        await stage.ended(handle)
        types = await stage.types(handle)
        assert types[-3:] == ["flow.continued", "step.injected", "flow.completed"]
        assert types.count("resume.admitted") == 1


async def test_act_3_a_revoked_operator_is_denied(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.pending()
        await stage.revoke()
        await stage.approve()
        cause = await failure(handle)
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.non_retryable) == ("resume_denied", True)
        assert "resume_denied" in str(cause)
        assert stage.ledger.paid == []
        execution = await stage.execution(handle)
        assert (execution["state"], execution["code"]) == ("denied", "resume_denied")
        timeline = await stage.timeline(handle)
        assert [entry.type for entry in timeline] == [
            "flow.started",
            "approval.requested",
            "approval.decided",
            "step.refused",
            "resume.denied",
            "flow.failed",
        ]
        assert timeline[-1].payload["code"] == "resume_denied"
        [turn] = await stage.turns(handle)
        assert (turn.kind, turn.recipient) == ("resume_denied", OPERATOR)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_later_run_of_a_denied_execution_is_denied(play: Play, when: str) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.pending()
        await stage.revoke()
        await stage.approve()
        await failure(handle)
        if when == "after":
            await stage.grant()
        cause = await failure(await stage.reset(handle))
        assert isinstance(cause, ApplicationError)
        assert cause.type == "resume_denied"
        assert stage.ledger.paid == []
        assert len(await stage.turns(handle)) == 1


async def test_rejected(play: Play) -> None:
    async with play(PayOnce) as stage:
        handle = await stage.start(PayOnce.run, "42")
        await stage.reject()
        cause = await failure(handle)
        assert type(cause).__name__ == "ActivityError"
        assert isinstance(cause.__cause__, ApplicationError)
        assert cause.__cause__.type == "approval_rejected"
        assert stage.ledger.paid == []
        assert await stage.ended(handle) == ExecutionState.FAILED
        assert (await stage.types(handle))[-2:] == ["approval.decided", "flow.failed"]


async def test_revoked_between_two_steps_that_ask_nobody(play: Play) -> None:
    async with play(PayAroundGate, contracts=[free("PayAroundGate")]) as stage:
        handle = await stage.start(PayAroundGate.run)
        await stage.ledger.entered["middle"].wait()
        await stage.revoke()
        stage.ledger.gates["middle"].set()
        cause = await failure(handle)
        assert isinstance(cause, ApplicationError)
        assert cause.type == "resume_denied"
        assert stage.ledger.whats == ["before"]
        assert (await stage.types(handle))[-3:] == ["step.refused", "resume.denied", "flow.failed"]
        assert len(await stage.turns(handle)) == 1

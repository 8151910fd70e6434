"""What an attempt at a step is told, given what was read under the locks."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from governance.contracts import ApprovalRule
from governance.errors import (
    ApprovalMismatch,
    ApprovalMissing,
    ApprovalNotUsable,
    ApprovalRejected,
    ApproverLostRole,
    Frozen,
    ResumeDenied,
    StepRefused,
)
from governance.names import ApprovalState, ExecutionState
from governance.rules.admission import (
    Admission,
    ApprovalStanding,
    FreezeStanding,
    Standing,
    admit,
)
from governance.rules.quorum import tally

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ME, SOMEBODY = uuid.UUID(int=1), uuid.UUID(int=2)


def asked(
    state: ApprovalState = ApprovalState.APPROVED,
    *,
    key: bytes = KEY,
    execute_by: datetime | None = None,
) -> ApprovalStanding:
    return ApprovalStanding(uuid.uuid4(), key, state, execute_by)


ALL_WELL = Standing(
    execution=ExecutionState.OPEN,
    needs_approval=True,
    key=KEY,
    approvals=[asked()],
    resume_roles=["operator"],
    roles_held=frozenset({"operator", "approver"}),
    has_outcome=False,
    has_failure=False,
    holder=None,
    live=False,
    attempt=ME,
    now=NOW,
)


def test_all_is_well() -> None:
    assert admit(ALL_WELL) is Admission.CLAIM
    assert admit(replace(ALL_WELL, needs_approval=False, approvals=[])) is Admission.CLAIM
    assert admit(replace(ALL_WELL, resume_roles=[], roles_held=frozenset())) is Admission.CLAIM


SOON, JUST_PASSED = NOW + timedelta(seconds=1), NOW - timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("approvals", "refusal"),
    [
        ([], ApprovalMissing),
        ([asked(ApprovalState.PENDING)], ApprovalMissing),
        ([asked(ApprovalState.REJECTED)], ApprovalRejected),
        ([asked(ApprovalState.EXPIRED)], ApprovalNotUsable),
        ([asked(ApprovalState.WITHDRAWN)], ApprovalNotUsable),
        ([asked(ApprovalState.REVOKED)], ApprovalNotUsable),
        ([asked(execute_by=JUST_PASSED)], ApprovalNotUsable),
        ([asked(ApprovalState.USED, execute_by=JUST_PASSED)], ApprovalNotUsable),
        ([asked(key=OTHER_KEY)], ApprovalMismatch),
        ([asked(ApprovalState.PENDING, key=OTHER_KEY)], ApprovalMismatch),
        # The newest request for this key counts, not an older one and not one for other input.
        ([asked(ApprovalState.PENDING), asked()], ApprovalMissing),
        ([asked(ApprovalState.REJECTED), asked()], ApprovalRejected),
        ([asked(key=OTHER_KEY), asked(ApprovalState.EXPIRED)], ApprovalNotUsable),
    ],
)
def test_without_a_usable_approval(
    approvals: list[ApprovalStanding], refusal: type[StepRefused]
) -> None:
    with pytest.raises(refusal) as caught:
        admit(replace(ALL_WELL, approvals=approvals))
    assert type(caught.value) is refusal


@pytest.mark.parametrize(
    "approvals",
    [
        [asked(execute_by=SOON)],
        [asked(execute_by=NOW)],
        [asked(key=OTHER_KEY), asked()],
        [asked(ApprovalState.REJECTED, key=OTHER_KEY), asked()],
        [asked(), asked(ApprovalState.EXPIRED)],
    ],
)
def test_with_a_usable_approval(approvals: list[ApprovalStanding]) -> None:
    assert admit(replace(ALL_WELL, approvals=approvals)) is Admission.CLAIM


def test_with_too_few_approvers_left() -> None:
    two = ApprovalRule(roles=("approver",), needed=2)
    for votes, enough in (
        ([("ana", {"approver"}), ("eva", {"approver"})], True),
        ([("ana", {"approver"}), ("eva", set[str]())], False),
        ([("ana", {"approver"}), ("Ana", {"approver"})], False),
    ):
        standing = replace(ALL_WELL, tally=tally(two, "olga", votes))
        if enough:
            assert admit(standing) is Admission.CLAIM
            continue
        with pytest.raises(ApproverLostRole, match="Of 2 who approved, 1 still may; it takes 2"):
            admit(standing)
        with pytest.raises(ResumeDenied):  # the actor's own role comes first
            admit(replace(standing, roles_held=frozenset()))
        assert admit(replace(standing, has_outcome=True)) is Admission.INJECT


@pytest.mark.parametrize("held", [set(), {"approver"}, {"Operator"}])
def test_without_a_role_of_the_policy(held: set[str]) -> None:
    with pytest.raises(ResumeDenied):
        admit(replace(ALL_WELL, roles_held=frozenset(held)))


def test_what_is_done_comes_before_everything_else() -> None:
    denied = replace(ALL_WELL, execution=ExecutionState.DENIED)
    assert admit(replace(denied, has_outcome=True)) is Admission.INJECT
    nothing = replace(denied, approvals=[], roles_held=frozenset(), has_failure=True)
    assert admit(replace(nothing, has_outcome=True)) is Admission.INJECT


def test_a_denied_execution_runs_nothing() -> None:
    for has_failure in (False, True):
        with pytest.raises(ResumeDenied, match="denied before"):
            admit(replace(ALL_WELL, execution=ExecutionState.DENIED, has_failure=has_failure))


def test_a_round_that_failed_stays_failed() -> None:
    failed = replace(ALL_WELL, has_failure=True)
    assert admit(failed) is Admission.INJECT_FAILURE
    assert admit(replace(failed, approvals=[], roles_held=frozenset())) is Admission.INJECT_FAILURE


def test_claims() -> None:
    held = replace(ALL_WELL, holder=SOMEBODY, live=True)
    assert admit(held) is Admission.BUSY
    assert admit(replace(held, holder=ME)) is Admission.SAME_CLAIM
    assert admit(replace(held, live=False)) is Admission.CLAIM
    assert admit(replace(held, holder=ME, live=False)) is Admission.CLAIM
    with pytest.raises(ResumeDenied):
        admit(replace(held, holder=ME, roles_held=frozenset()))
    with pytest.raises(ApprovalMissing):
        admit(replace(held, holder=ME, approvals=[]))


FREEZE = FreezeStanding(uuid.uuid4(), "PayInvoice", b"l" * 32, 60.0, told=False)


def test_while_frozen_only_what_is_recorded_comes_out() -> None:
    frozen = replace(ALL_WELL, freeze=FREEZE)
    assert admit(replace(frozen, has_outcome=True)) is Admission.INJECT
    assert admit(replace(frozen, has_failure=True)) is Admission.INJECT_FAILURE
    with pytest.raises(ResumeDenied, match="denied before"):
        admit(replace(frozen, execution=ExecutionState.DENIED))
    changes: list[dict[str, Any]] = [{}, {"approvals": []}, {"roles_held": set()}, {"live": True}]
    for change in changes:
        for holder in (None, ME, SOMEBODY):
            with pytest.raises(Frozen, match="This flow is frozen"):
                admit(replace(frozen, holder=holder, **change))
    with pytest.raises(Frozen, match="This realm is frozen"):
        admit(replace(ALL_WELL, freeze=replace(FREEZE, flow=None)))


def test_nothing_else_is_let_through() -> None:
    """Every combination: who may claim holds a role, has a usable approval and no rival."""
    standings = itertools.product(
        ExecutionState, (False, True), [None, *ApprovalState], (KEY, OTHER_KEY),
        (None, JUST_PASSED, SOON), (False, True), (False, True), (False, True),
        (None, ME, SOMEBODY), (False, True),
    )  # fmt: skip
    claims = 0
    for state, needs, approval, key, limit, role, outcome, failure, holder, live in standings:
        standing = replace(
            ALL_WELL,
            execution=state,
            needs_approval=needs,
            approvals=[] if approval is None else [asked(approval, key=key, execute_by=limit)],
            roles_held=frozenset({"operator"} if role else ()),
            has_outcome=outcome,
            has_failure=failure,
            holder=holder,
            live=live,
        )
        try:
            admission = admit(standing)
        except StepRefused:
            continue
        if admission in (Admission.CLAIM, Admission.SAME_CLAIM):
            claims += 1
            usable = approval in (ApprovalState.APPROVED, ApprovalState.USED)
            assert not needs or (usable and key == KEY and limit is not JUST_PASSED)
            assert role
            assert state is not ExecutionState.DENIED
            assert not outcome
            assert not failure
            assert not (live and holder is SOMEBODY)
    assert claims

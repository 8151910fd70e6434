"""How many people it takes: which votes count, who may vote again, who may take it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from governance.contracts import ApprovalRule
from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    AlreadyVoted,
    ApprovalExpired,
    ApprovalWithdrawn,
    BarrierNotMet,
    CannotRevoke,
    DecisionRefused,
    ReasonRequired,
)
from governance.names import ApprovalState, Verdict
from governance.rules.decision import Accepted, may_decide, may_revoke
from governance.rules.quorum import tally, what_is_missing

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TWO = ApprovalRule(roles=("approver", "cfo"), needed=2)


def vote(rule: ApprovalRule = TWO, **changes: Any) -> Accepted:
    given: dict[str, Any] = {
        "actor": "olga",
        "decider": "ana",
        "roles_held": {"approver"},
        "state": ApprovalState.PENDING,
        "now": NOW,
        "decide_by": None,
        "verdict": Verdict.APPROVE,
        "reason": "fine",
    }
    return may_decide(rule, **{**given, **changes})


def test_each_vote_says_how_many_are_missing() -> None:
    three = ApprovalRule(roles=("approver",), needed=3)
    assert vote(three) == Accepted(("approver",), needed=3, missing=2)
    assert vote(three, voters=["eva"]).missing == 1
    assert vote(three, voters=["eva", "max"]).missing == 0
    assert what_is_missing(1, 2, ("approver", "cfo")) == "1 of 2 approver or cfo"


@pytest.mark.parametrize("again", ["ana", "Ana", " ana", "\uff41na"])
def test_nobody_is_counted_twice(again: str) -> None:
    with pytest.raises(AlreadyVoted, match="still needed: 1 of 2 approver or cfo"):
        vote(decider=again, voters=["ana"])


def test_one_rejection_decides_also_of_somebody_who_had_approved() -> None:
    for voters in ([], ["eva"], ["ana"]):
        assert vote(verdict=Verdict.REJECT, voters=voters).missing == 0


def test_a_tally_says_why_each_vote_counts_or_not() -> None:
    given = [
        ("ana", {"approver", "cfo", "operator"}),
        ("olga", {"approver"}),
        ("eva", {"operator"}),
        ("ANA", {"cfo"}),
    ]
    found = tally(TWO, "olga", given)
    assert [(one.by, one.counts, one.why) for one in found.votes] == [
        ("ana", True, "holding approver, cfo"),
        ("olga", False, "the flow was started for them"),
        ("eva", False, "holds no approver or cfo"),
        ("ANA", False, "has been counted"),
    ]
    assert (found.needed, found.counted, found.missing) == (2, 1, 1)
    assert tally(TWO, "olga", [*given, ("max", {"cfo"}), ("kim", {"cfo"})]).missing == 0


def revoke(**changes: Any) -> None:
    given: dict[str, Any] = {
        "actor": "olga",
        "decider": "eva",
        "roles_held": {"approver"},
        "voters": ["ana"],
        "state": ApprovalState.APPROVED,
        "begun": False,
        "now": NOW,
        "execute_by": None,
        "reason": "a mistake",
        "decided_by": "ana",
        "decided_at": NOW,
    }
    may_revoke(TWO, **{**given, **changes})


def test_who_approved_or_could_have_may_revoke() -> None:
    revoke()
    revoke(decider="ana", roles_held=set())
    revoke(execute_by=NOW)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"decider": "olga"}, ActorMustNotDecide),
        ({"roles_held": {"operator"}}, BarrierNotMet),
        ({"state": ApprovalState.PENDING}, CannotRevoke),
        ({"begun": True}, CannotRevoke),
        ({"state": ApprovalState.USED}, CannotRevoke),
        ({"state": ApprovalState.REJECTED}, AlreadyDecided),
        ({"state": ApprovalState.REVOKED}, AlreadyDecided),
        ({"state": ApprovalState.WITHDRAWN}, ApprovalWithdrawn),
        ({"state": ApprovalState.EXPIRED}, ApprovalExpired),
        ({"execute_by": NOW - timedelta(microseconds=1)}, ApprovalExpired),
        ({"reason": " \n"}, ReasonRequired),
    ],
)
def test_who_may_not_revoke(changes: dict[str, Any], refusal: type[DecisionRefused]) -> None:
    with pytest.raises(DecisionRefused) as caught:
        revoke(**changes)
    assert type(caught.value) is refusal

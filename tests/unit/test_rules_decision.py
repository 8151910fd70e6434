"""Who may decide, who may resume, and until when."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.contracts import ApprovalRule
from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    ApprovalExpired,
    ApprovalWithdrawn,
    BarrierNotMet,
    DecisionRefused,
    ReasonRequired,
)
from governance.names import ApprovalState, Verdict
from governance.rules.barrier import matching
from governance.rules.decision import Accepted, may_decide
from governance.rules.duties import excluded, same_person
from governance.rules.limits import is_past, limit
from governance.rules.resume import admits

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
RULE = ApprovalRule(roles=("finance-approver", "cfo"))


def decide(rule: ApprovalRule = RULE, **changes: Any) -> Accepted:
    given: dict[str, Any] = {
        "actor": "olga",
        "decider": "ana",
        "roles_held": frozenset({"finance-approver", "operator"}),
        "state": ApprovalState.PENDING,
        "now": NOW,
        "decide_by": NOW,
        "verdict": Verdict.APPROVE,
        "reason": None,
    }
    return may_decide(rule, **{**given, **changes})


def test_somebody_else_with_the_role_may_decide() -> None:
    assert decide() == Accepted(("finance-approver",), needed=1, missing=0)
    assert decide(roles_held={"cfo", "finance-approver"}).roles == ("cfo", "finance-approver")
    assert decide(verdict=Verdict.REJECT, reason="Wrong payee.").missing == 0
    assert decide(decide_by=None).needed == 1


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"decider": "olga"}, ActorMustNotDecide, "olga must not decide: the flow was started for"),
        ({"decider": "Olga"}, ActorMustNotDecide, "Olga must not decide"),
        ({"roles_held": frozenset()}, BarrierNotMet, "ana holds no role, and deciding takes"),
        ({"roles_held": {"operator"}}, BarrierNotMet, "holds operator, and deciding takes"),
        ({"roles_held": {"Finance-Approver"}}, BarrierNotMet, "finance-approver or cfo"),
        ({"state": ApprovalState.WITHDRAWN}, ApprovalWithdrawn, "withdrawn"),
        ({"state": ApprovalState.EXPIRED}, ApprovalExpired, "run out"),
        ({"decide_by": NOW - timedelta(microseconds=1)}, ApprovalExpired, "ran out on 2026-11-30"),
        ({"verdict": Verdict.REJECT}, ReasonRequired, "needs a reason"),
        ({"verdict": Verdict.REJECT, "reason": " \n"}, ReasonRequired, "needs a reason"),
    ],
)
def test_refused(changes: dict[str, Any], error: type[DecisionRefused], words: str) -> None:
    with pytest.raises(error, match=words):
        decide(**changes)


@pytest.mark.parametrize("state", ["approved", "rejected", "used"])
def test_what_is_decided_names_who_did_it(state: str) -> None:
    with pytest.raises(AlreadyDecided) as caught:
        decide(state=ApprovalState(state), decided_by="eva", decided_at=NOW)
    assert "already by eva on 2026-11-30 12:00:00 UTC" in caught.value.message


def test_every_state_but_pending_is_closed() -> None:
    for state in ApprovalState:
        if state is not ApprovalState.PENDING:
            with pytest.raises(DecisionRefused):
                decide(state=state)


def test_who_may_not_decide_learns_nothing_else() -> None:
    decided: dict[str, Any] = {"state": ApprovalState.APPROVED, "decided_by": "eva"}
    with pytest.raises(ActorMustNotDecide):
        decide(decider="olga", roles_held=frozenset(), **decided)
    with pytest.raises(BarrierNotMet):
        decide(roles_held=frozenset(), **decided)


def test_the_contract_may_let_the_actor_decide() -> None:
    rule = ApprovalRule(roles=("operator",), duties=())
    assert decide(rule, decider="olga").roles == ("operator",)
    with pytest.raises(BarrierNotMet):
        decide(rule, decider="olga", roles_held=frozenset())


@pytest.mark.parametrize(
    "other",
    [
        "jose.muñoz",
        "JOSE.MUÑOZ",
        unicodedata.normalize("NFD", "jose.muñoz"),
        "\uff4a\uff4f\uff53\uff45.muñoz",
        "jose\u200b.muñoz",
        "\u202ejose.muñoz",
        " jose.muñoz ",
    ],
)
def test_spellings_of_one_person(other: str) -> None:
    assert same_person("jose.muñoz", other)
    assert excluded(RULE.duties, actor="jose.muñoz", decider=other)
    assert not excluded((), actor="jose.muñoz", decider=other)


@pytest.mark.parametrize("other", ["jose.munoz", "jose", "jose.muñoz2", ""])
def test_other_people(other: str) -> None:
    assert not same_person("jose.muñoz", other)


@given(st.text(), st.text())
def test_sameness_is_mutual(one: str, other: str) -> None:
    assert same_person(one, one)
    assert same_person(one, one.upper().lower()) == same_person(one.upper().lower(), one)
    assert same_person(one, other) == same_person(other, one)
    assert same_person(one, unicodedata.normalize("NFKC", one.casefold()))


ROLES = st.lists(st.sampled_from("abcd"), max_size=4)


@given(ROLES, ROLES)
def test_barrier_and_resume_ask_for_one_role_of_the_list(
    wanted: list[str], held: list[str]
) -> None:
    assert matching(wanted, held) == tuple(sorted(set(wanted) & set(held)))
    assert admits(wanted, held) == (not wanted or any(role in held for role in wanted))


def test_resume() -> None:
    assert admits((), frozenset())
    assert admits(("operator",), frozenset({"operator", "x"}))
    assert not admits(("operator",), frozenset())
    assert not admits(("operator",), frozenset({"Operator"}))


def test_limits() -> None:
    assert limit(NOW, None) is None
    assert limit(NOW, timedelta(days=4)) == datetime(2026, 12, 4, 12, 0, tzinfo=UTC)
    assert not is_past(None, NOW)
    assert not is_past(NOW, NOW)
    assert is_past(NOW, NOW + timedelta(microseconds=1))
    with pytest.raises(TypeError):
        is_past(NOW, NOW.replace(tzinfo=None))

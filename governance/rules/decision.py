"""Whether a person may decide an approval, now and with these words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

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
from governance.rules.barrier import matching
from governance.rules.duties import excluded
from governance.rules.limits import is_past
from governance.rules.quorum import is_among, what_is_missing

_MOMENT = "%Y-%m-%d %H:%M:%S %Z"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A decision that the rules let through.

    Attributes:
        roles: The decider's roles that met the barrier, sorted.
        needed: How many approvers it takes.
        missing: How many more it takes after this one.
    """

    roles: tuple[str, ...]
    needed: int = 1
    missing: int = 0


def may_decide(
    rule: ApprovalRule,
    *,
    actor: str,
    decider: str,
    roles_held: Collection[str],
    state: ApprovalState,
    now: datetime,
    decide_by: datetime | None,
    verdict: Verdict,
    reason: str | None,
    decided_by: str | None = None,
    decided_at: datetime | None = None,
    voters: Sequence[str] = (),
) -> Accepted:
    """Let a decision through, or say why not.

    First the person (duties, then barrier), then the approval (state, then limit), then the words:
    who may not decide learns nothing about the rest.

    Args:
        rule: The approval in the pinned contract.
        actor: For whom the execution was started.
        decider: Who decides.
        roles_held: The decider's roles, read in this transaction after its locks.
        state: Where the approval stands.
        now: The database clock, read after the locks.
        decide_by: The last moment at which it can be decided; None where there is no limit.
        verdict: Approve or reject.
        reason: Why; a rejection needs one.
        decided_by: Who decided it before, if somebody did.
        decided_at: When they did.
        voters: Who approved it before, each a person of their own; read after the locks too.

    Raises:
        DecisionRefused: `ActorMustNotDecide`, `BarrierNotMet`, `AlreadyDecided`,
            `AlreadyVoted`, `ApprovalWithdrawn`, `ApprovalExpired` or `ReasonRequired`.
    """
    roles = _admitted(rule, actor, decider, roles_held)
    refusal = closed(state, decided_by, decided_at)
    if refusal is not None:
        raise refusal
    if is_past(decide_by, now):
        raise ApprovalExpired(f"The time to decide ran out on {decide_by:{_MOMENT}}.")
    return _counted(rule, decider, verdict, reason, roles, voters)


def _counted(
    rule: ApprovalRule,
    decider: str,
    verdict: Verdict,
    reason: str | None,
    roles: tuple[str, ...],
    voters: Sequence[str],
) -> Accepted:
    """What a vote of this person adds to those before it."""
    if verdict is Verdict.REJECT:
        if not (reason or "").strip():
            raise ReasonRequired("A rejection needs a reason.", hint="Say why in a sentence.")
        return Accepted(roles, rule.needed)  # one is enough, also from somebody who had approved
    if is_among(decider, voters):
        missing = what_is_missing(rule.needed - len(voters), rule.needed, rule.roles)
        raise AlreadyVoted(
            f"{decider} has approved already; still needed: {missing}.",
            hint="Somebody else approves, or you reject.",
        )
    return Accepted(roles, rule.needed, rule.needed - len(voters) - 1)


def may_revoke(
    rule: ApprovalRule,
    *,
    actor: str,
    decider: str,
    roles_held: Collection[str],
    voters: Sequence[str],
    state: ApprovalState,
    begun: bool,
    now: datetime,
    execute_by: datetime | None,
    reason: str,
    decided_by: str | None,
    decided_at: datetime | None,
) -> None:
    """Let somebody take an approval back before it is used, or say why not.

    Who approved may, and whoever could. Arguments as for `may_decide`; `begun` says whether an
    attempt holds the step or its outcome is recorded.

    Raises:
        DecisionRefused: `ActorMustNotDecide`, `BarrierNotMet`, `CannotRevoke`, `AlreadyDecided`,
            `ApprovalWithdrawn`, `ApprovalExpired` or `ReasonRequired`.
    """
    if not is_among(decider, voters):
        _admitted(rule, actor, decider, roles_held)
    if state is ApprovalState.PENDING:
        raise CannotRevoke("Nothing has been decided yet.", hint="To stop it, reject it.")
    if state is ApprovalState.USED or (state is ApprovalState.APPROVED and begun):
        raise CannotRevoke("The step has begun: its approval is used.")
    if state is not ApprovalState.APPROVED and (refusal := closed(state, decided_by, decided_at)):
        raise refusal
    if is_past(execute_by, now):
        raise ApprovalExpired("The time of this approval has run out.")
    if not reason.strip():
        raise ReasonRequired("A revocation needs a reason.", hint="Say why in a sentence.")


def _admitted(
    rule: ApprovalRule, actor: str, decider: str, roles_held: Collection[str]
) -> tuple[str, ...]:
    wanted = " or ".join(rule.roles)
    if excluded(rule.duties, actor=actor, decider=decider):
        raise ActorMustNotDecide(
            f"{decider} must not decide: the flow was started for {actor}.",
            hint=f"Ask somebody else who holds {wanted}.",
        )
    roles = matching(rule.roles, roles_held)
    if not roles:
        held = ", ".join(sorted(roles_held)) or "no role"
        raise BarrierNotMet(
            f"{decider} holds {held}, and deciding takes {wanted}.",
            hint="Ask somebody who holds it, or an administrator to grant it.",
        )
    return roles


def closed(state: ApprovalState, by: str | None, at: datetime | None) -> DecisionRefused | None:
    """Say why nobody can decide an approval in this state any more; None if it waits.

    Args:
        state: Where it stands.
        by: Who decided it, if somebody did.
        at: When they did.
    """
    tail = f"{f' by {by}' if by else ''}{f' on {at:{_MOMENT}}' if at else ''}."
    match state:
        case ApprovalState.PENDING:
            return None
        case ApprovalState.WITHDRAWN:
            return ApprovalWithdrawn("The approval was withdrawn: nobody waits for it any more.")
        case ApprovalState.EXPIRED:
            return ApprovalExpired("The time of this approval has run out.")
        case ApprovalState.REVOKED:
            return AlreadyDecided("The approval was revoked already.")
        case ApprovalState.REJECTED:
            return AlreadyDecided(f"The approval was rejected already{tail}")
        case ApprovalState.APPROVED | ApprovalState.USED:
            return AlreadyDecided(f"The approval was approved already{tail}")

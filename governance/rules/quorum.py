"""How many people it takes, and which votes count."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from governance.contracts import ApprovalRule
from governance.rules.barrier import matching
from governance.rules.duties import excluded, same_person


@dataclass(frozen=True, slots=True)
class Counted:
    """A vote to approve: whose, whether it counts, and why or why not."""

    by: str
    counts: bool
    why: str


@dataclass(frozen=True, slots=True)
class Tally:
    """The votes to approve, in order, and how many people it takes."""

    needed: int
    votes: tuple[Counted, ...]

    @property
    def counted(self) -> int:
        """How many votes count."""
        return sum(vote.counts for vote in self.votes)

    @property
    def missing(self) -> int:
        """How many more it takes."""
        return max(0, self.needed - self.counted)


def tally(rule: ApprovalRule, actor: str, votes: Iterable[tuple[str, Collection[str]]]) -> Tally:
    """Count the votes of distinct people who meet the barrier and whom no duty excludes.

    Args:
        rule: The approval in the pinned contract.
        actor: For whom the execution was started.
        votes: Who approved, in order, each with the roles that are to count.
    """
    counted: list[Counted] = []
    for by, roles_held in votes:
        why_not = _why_not(rule, actor, by, roles_held, counted)
        roles = ", ".join(matching(rule.roles, roles_held))
        counted.append(Counted(by, not why_not, why_not or f"holding {roles}"))
    return Tally(rule.needed, tuple(counted))


def is_among(person: str, people: Iterable[str]) -> bool:
    """Tell whether a person is one of these, by any form of their id."""
    return any(same_person(person, other) for other in people)


def what_is_missing(missing: int, needed: int, roles: Collection[str]) -> str:
    """`1 of 2 finance-approver or cfo`."""
    return f"{missing} of {needed} {' or '.join(roles)}"


def _why_not(
    rule: ApprovalRule,
    actor: str,
    by: str,
    roles_held: Collection[str],
    before: Collection[Counted],
) -> str:
    if excluded(rule.duties, actor=actor, decider=by):
        return "the flow was started for them"
    if not matching(rule.roles, roles_held):
        return f"holds no {' or '.join(rule.roles)}"
    if is_among(by, (vote.by for vote in before if vote.counts)):
        return "has been counted"
    return ""

"""The role directory kept in Postgres.

A lock and what it protects are never in one statement: callers send `lock_statement`, whatever
other locks they need, and `read_statement` after all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from governance.db.queries import load
from governance.db.statements import Row, Statement

_Q = load("roles")


@dataclass(frozen=True, slots=True)
class Holding:
    """One role somebody holds: since when and by whose grant."""

    role: str
    since: datetime
    by: str


@dataclass(frozen=True, slots=True)
class Held:
    """The roles an actor held at one reading.

    Attributes:
        actor: Whose roles.
        holdings: The roles, ordered by name.
        head: Leaf of the newest entry about this actor's roles; None if there is none.
    """

    actor: str
    holdings: tuple[Holding, ...]
    head: bytes | None

    @property
    def roles(self) -> frozenset[str]:
        """The names of the roles held."""
        return frozenset(h.role for h in self.holdings)

    @property
    def observed(self) -> list[bytes]:
        """What an entry that rests on this reading names as observed."""
        return [] if self.head is None else [self.head]

    def record(self) -> list[dict[str, str]]:
        """The reading as an entry's payload states it."""
        return [
            {"role": h.role, "since": h.since.isoformat(), "granted_by": h.by}
            for h in self.holdings
        ]


def lock_statement(realm: str, actor: str) -> Statement:
    """The shared lock that makes role changes of this actor wait until commit."""
    return _Q["lock_actor_shared"], {"realm": realm, "actor": actor}


def lock_all_statement(realm: str, actors: Sequence[str]) -> Statement:
    """The same lock for several actors, in the order in which role changes take it."""
    return _Q["lock_actors_shared"], {"realm": realm, "actors": list(actors)}


def read_statement(realm: str, actor: str) -> Statement:
    """The read behind `to_held`."""
    return _Q["fetch_roles"], {"realm": realm, "actor": actor}


def to_held(actor: str, rows: list[Row]) -> Held:
    """What the rows of `read_statement` say."""
    holdings = tuple(
        Holding(r["role"], r["granted_at"], r["granted_by"]) for r in rows if r["role"] is not None
    )
    return Held(actor, holdings, rows[0]["head"])

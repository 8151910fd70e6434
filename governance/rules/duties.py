"""Segregation of duties: who must not decide."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from governance.contracts import Duty


def excluded(duties: Collection[Duty], *, actor: str, decider: str) -> bool:
    """Tell whether the duties keep the decider from deciding.

    Args:
        duties: The approval's `duties`; empty lets the actor decide.
        actor: For whom the execution was started.
        decider: Who wants to decide.
    """
    return "actor" in duties and same_person(actor, decider)


def same_person(one: str, other: str) -> bool:
    """Tell whether two ids may belong to one person.

    Equal ids do, and so do ids that differ only in case, in compatible forms of a character or in
    invisible characters (caseless matching of identifiers, Unicode Standard, D147, with every
    format character removed), or in space at either end. Saying yes to two strangers costs them a
    colleague's click; saying no to one person would undo the duty.
    """
    return one == other or _folded(one) == _folded(other)


def _folded(identity: str) -> str:
    text = identity
    # Twice: folding can produce what normalises again, and the other way round.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text).casefold()
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", text).strip()

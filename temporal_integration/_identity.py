"""For whom a caller acts, set by its own authentication code."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_ACTOR: ContextVar[str | None] = ContextVar("governance_actor", default=None)


@contextmanager
def acting_as(actor: str) -> Generator[None]:
    """Start workflows for this person or service inside the block.

    Set it where the caller was authenticated. The record says *attested*: the caller's word.

    Args:
        actor: Opaque id, as the role directory knows it; at most 512 characters, no name or mail
            address, since it travels in a header.

    Raises:
        ValueError: The id is empty, too long, or has characters that nobody can see.
    """
    if not 0 < len(actor) <= 512 or not actor.isprintable() or actor != actor.strip():
        raise ValueError(
            f"{actor[:60]!r} is no actor: an id has 1 to 512 printable characters and no space "
            "at either end"
        )
    token = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def current_actor() -> str | None:
    """For whom the caller acts now; None outside `acting_as`."""
    return _ACTOR.get()

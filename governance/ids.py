"""Identifiers made outside workflow code, and their one accepted text form.

Never call `new_id` or `new_nonce` in workflow code: a replay would draw another one.
"""

from __future__ import annotations

import re
import secrets
import uuid

_FORMS = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id() -> uuid.UUID:
    """Return a random UUID (version 4, RFC 9562)."""
    return uuid.uuid4()


def new_nonce() -> str:
    """Return 128 random bits as 32 lower-case hexadecimal digits."""
    return secrets.token_hex(16)


def parse_id(text: str) -> uuid.UUID:
    """Read a UUID from 32 lower-case hexadecimal digits, with or without the four hyphens.

    Raises:
        ValueError: Any other form, also those that `uuid.UUID` itself would take.
    """
    if not _FORMS.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a UUID")
    return uuid.UUID(hex=text)

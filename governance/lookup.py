"""Finding what a person named by hand: an id by its beginning, a role by its spelling."""

from __future__ import annotations

import difflib
import re
import uuid
from typing import Any, Final

from psycopg import AsyncConnection

from governance import ids
from governance.db.queries import load
from governance.db.statements import fetch_all
from governance.errors import ApprovalUnknown, ContractUnknown, RoleUnknown

SHORTEST: Final = 8
"""Fewest hexadecimal digits by which an approval or a contract can be named."""

_APPROVALS: Final = load("approvals")
_CONTRACTS: Final = load("contracts")
_ROLES: Final = load("roles")
_BEGINNING: Final = re.compile(r"[0-9a-f]+")


async def find_approval(conn: AsyncConnection[Any], realm: str, text: str) -> uuid.UUID:
    """The approval whose id this is, or begins with.

    Args:
        conn: A transaction.
        realm: The trust domain.
        text: A whole id, with or without hyphens, or at least its first 8 digits.

    Raises:
        ApprovalUnknown: None or several in this realm, or `text` is no beginning of an id.
    """
    digits = _digits(text, 32)
    if digits is None:
        raise ApprovalUnknown(
            f"{text[:60]!r} is not the id of an approval.",
            hint=f"Give its 32 hexadecimal digits, or at least the first {SHORTEST}.",
        )
    params = {
        "realm": realm,
        "low": ids.parse_id(digits.ljust(32, "0")),
        "high": ids.parse_id(digits.ljust(32, "f")),
    }
    rows = await fetch_all(conn, _APPROVALS["find_by_beginning"], params)
    if len(rows) == 1:
        found: uuid.UUID = rows[0]["id"]
        return found
    if rows:
        raise ApprovalUnknown(
            f'The ids of several approvals in realm "{realm}" begin with {digits}.',
            hint="Give more digits.",
        )
    raise ApprovalUnknown(
        f'There is no approval {digits} in realm "{realm}".',
        hint="`governance approvals list` shows those that wait.",
    )


async def find_contract_digest(conn: AsyncConnection[Any], realm: str, text: str) -> bytes:
    """The digest of the registered contract version whose digest this is, or begins with.

    Raises:
        ContractUnknown: None or several in this realm, or `text` is no beginning of a digest.
    """
    digits = _digits(text, 64)
    if digits is None:
        raise ContractUnknown(
            f"{text[:60]!r} is not the digest of a contract.",
            hint=f"Give its 64 hexadecimal digits, or at least the first {SHORTEST}.",
        )
    params = {
        "realm": realm,
        "low": bytes.fromhex(digits.ljust(64, "0")),
        "high": bytes.fromhex(digits.ljust(64, "f")),
    }
    rows = await fetch_all(conn, _CONTRACTS["find_by_beginning"], params)
    if len(rows) == 1:
        found: bytes = rows[0]["digest"]
        return found
    if rows:
        raise ContractUnknown(
            f'The digests of several contracts in realm "{realm}" begin with {digits}.',
            hint="Give more digits.",
        )
    raise ContractUnknown(
        f'No contract {digits[:12]}… is registered in realm "{realm}".',
        hint="`governance contracts list` shows those that are.",
    )


async def check_role(conn: AsyncConnection[Any], realm: str, role: str) -> None:
    """See that a role is one that somebody holds or that a contract of this realm names.

    Raises:
        RoleUnknown: It is not; names those there are, the closest first.
    """
    rows = await fetch_all(conn, _ROLES["list_role_names"], {"realm": realm})
    known = [row["role"] for row in rows]
    if role in known:
        return
    near = difflib.get_close_matches(role, known, n=1)
    raise RoleUnknown(
        f'Nobody in realm "{realm}" holds a role "{role}", and no contract names one.',
        hint=f'Did you mean "{near[0]}"?'
        if near
        else f"There are: {', '.join(known)}."
        if known
        else "No contract is registered there yet.",
    )


def _digits(text: str, most: int) -> str | None:
    """The beginning as lower-case digits without hyphens, if it is one."""
    digits = text.strip().lower().replace("-", "")
    if not SHORTEST <= len(digits) <= most or not _BEGINNING.fullmatch(digits):
        return None
    return digits

"""What administrators do: contracts and role grants. Two people for a contract, no self-grant.

Workers connect with a database role that can do none of this. `by` is the person who acts;
`submitted_by` whom the door itself saw, such as `os:ana@host`, and is recorded beside it.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from governance.chain.log import append_statement, find_stream
from governance.contracts import FlowContract
from governance.db.queries import load
from governance.db.statements import Row, Statement, fetch_all, fetch_one, pipelined, queued
from governance.errors import AdministrationRefused, ContractUnknown, RoleUnknown
from governance.names import ContractState
from governance.rules.duties import same_person

_Q = load("contracts")
_ROLES = load("roles")


async def register_contract(
    conn: AsyncConnection[Any],
    realm: str,
    contract: FlowContract,
    by: str,
    *,
    submitted_by: str = "",
) -> bool:
    """Make a contract version known; runs take it only once somebody else activates it.

    Returns:
        False if this very version was registered before.
    """
    stream = await _lock_flow(conn, realm, contract.flow)
    if await find_contract(conn, realm, contract.digest):
        return False
    payload = {
        "realm": realm,
        "flow": contract.flow,
        "contract": contract.digest.hex(),
        "body": contract.canonical().decode(),
        "by": by,
        "submitted_by": submitted_by,
    }
    row = {
        "realm": realm,
        "digest": contract.digest,
        "flow": contract.flow,
        "body": contract.canonical(),
        "by": by,
        "stream": stream,
    }
    await queued(
        conn,
        append_statement(stream, "contract.registered", payload),
        (_Q["insert_contract"], row),
    )
    return True


async def activate_contract(
    conn: AsyncConnection[Any], realm: str, digest: bytes, by: str, *, submitted_by: str = ""
) -> bool:
    """Make a registered version the one that new executions of its flow take.

    Returns:
        False if it is active already.

    Raises:
        ContractUnknown: No such version is registered.
        AdministrationRefused: `by` registered it.
    """
    contract = await find_contract(conn, realm, digest)
    if contract is None:
        raise ContractUnknown(
            f'No contract {digest.hex()[:12]}… is registered in realm "{realm}".',
            hint="Register it first: `governance contracts register FILE`.",
        )
    stream = await _lock_flow(conn, realm, contract["flow"])
    contract = await find_contract(conn, realm, digest)
    assert contract is not None
    if same_person(contract["registered_by"], by):
        raise AdministrationRefused(
            f"{by} registered this contract and cannot activate it too.",
            hint="Somebody else must activate it.",
        )
    if contract["state"] == ContractState.ACTIVE:
        return False
    change = {"realm": realm, "flow": contract["flow"], "digest": digest, "by": by}
    [retired] = await pipelined(conn, (_Q["retire_active"], change))
    payload = {"realm": realm, "flow": contract["flow"], "by": by, "submitted_by": submitted_by}
    statements = [
        append_statement(stream, "contract.retired", {**payload, "contract": row["digest"].hex()})
        for row in retired
    ]
    await queued(
        conn,
        *statements,
        (_Q["activate_contract"], change),
        append_statement(stream, "contract.activated", {**payload, "contract": digest.hex()}),
    )
    return True


async def find_contract(conn: AsyncConnection[Any], realm: str, digest: bytes) -> Row | None:
    """A registered version: digest, flow, body, state, who and when."""
    return await fetch_one(conn, _Q["fetch_contract"], {"realm": realm, "digest": digest})


async def list_contracts(
    conn: AsyncConnection[Any], realm: str, flow: str | None = None
) -> list[Row]:
    """Registered versions, by flow and age."""
    return await fetch_all(conn, _Q["list_contracts"], {"realm": realm, "flow": flow})


async def grant_role(
    conn: AsyncConnection[Any],
    realm: str,
    actor: str,
    role: str,
    by: str,
    reason: str = "",
    *,
    submitted_by: str = "",
) -> bool:
    """Grant a role. A trigger writes the entry and waits for steps that are beginning.

    Returns:
        False if the actor holds the role already.

    Raises:
        AdministrationRefused: `by` is the actor.
    """
    if same_person(actor, by):
        raise AdministrationRefused(
            f"{by} cannot grant a role to themselves.", hint="Somebody else must grant it."
        )
    row = {"realm": realm, "actor": actor, "role": role, "by": by, "reason": reason}
    _, granted = await pipelined(
        conn, _acting(by, reason, submitted_by), (_ROLES["grant_role"], row)
    )
    return bool(granted)


async def revoke_role(
    conn: AsyncConnection[Any],
    realm: str,
    actor: str,
    role: str,
    by: str,
    reason: str = "",
    *,
    submitted_by: str = "",
) -> None:
    """Revoke a role. Once this is committed, no step of the actor begins on it.

    Raises:
        RoleUnknown: The actor does not hold that role.
    """
    row = {"realm": realm, "actor": actor, "role": role}
    _, revoked = await pipelined(
        conn, _acting(by, reason, submitted_by), (_ROLES["revoke_role"], row)
    )
    if not revoked:
        raise RoleUnknown(
            f'{actor} does not hold the role "{role}" in realm "{realm}".',
            hint="`governance roles list` shows who holds what.",
        )


async def list_roles(conn: AsyncConnection[Any], realm: str, actor: str | None = None) -> list[Row]:
    """Who holds which role, since when, by whose grant and why."""
    return await fetch_all(conn, _ROLES["list_roles"], {"realm": realm, "actor": actor})


def _acting(by: str, reason: str, submitted_by: str) -> Statement:
    return _ROLES["set_acting"], {"by": by, "reason": reason, "submitted_by": submitted_by}


async def _lock_flow(conn: AsyncConnection[Any], realm: str, flow: str) -> Any:
    await queued(conn, (_Q["lock_contracts"], {"realm": realm, "flow": flow}))
    return await find_stream(conn, "contract", realm, flow)

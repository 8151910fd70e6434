"""What people name by hand, and administration, through the Python door."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator

import pytest

from governance import ids
from governance.client import GovernanceClient
from governance.db import Database
from governance.errors import (
    AdministrationRefused,
    ApprovalUnknown,
    ContractUnknown,
    RoleUnknown,
)
from tests.store import scenario as s


@pytest.fixture
async def client(dsn: str) -> AsyncGenerator[GovernanceClient]:
    """A client of the scenario's realm."""
    async with GovernanceClient(dsn, s.REALM) as opened:
        yield opened


@pytest.fixture
async def approval(client: GovernanceClient) -> uuid.UUID:
    """A payment of olga's that waits."""
    await s.prepare(client.database)
    run = await s.opened(client.database)
    return await s.pending(client.database, run, s.call(run))


# ------------------------------------------------------------------------ names given by hand


async def test_an_approval_is_found_by_its_beginning(
    client: GovernanceClient, approval: uuid.UUID
) -> None:
    for text in (approval.hex, str(approval), approval.hex[:8], f" {approval.hex[:9].upper()} "):
        assert await client.find_approval(text) == approval
    for text in (approval.hex[:7], "", "g" * 8, approval.hex + "0", "%" * 8):
        with pytest.raises(ApprovalUnknown, match="is not the id of an approval"):
            await client.find_approval(text)


async def test_a_beginning_of_two_is_refused(
    client: GovernanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await s.prepare(client.database)
    run = await s.opened(client.database)
    alike = [uuid.UUID(hex=f"{'ab' * 8}{n:016x}") for n in (0, 2**64 - 1)]
    given = iter(alike)
    monkeypatch.setattr(ids, "new_id", lambda: next(given))
    for n in (1, 2):
        await s.pending(client.database, run, s.call(run, n=n))
    with pytest.raises(ApprovalUnknown, match="several"):
        await client.find_approval("ab" * 8)
    assert await client.find_approval("ab" * 8 + "0") == alike[0]
    assert await client.find_approval("ab" * 8 + "f") == alike[1]


async def test_a_contract_is_found_by_its_beginning(client: GovernanceClient) -> None:
    one, two = s.contract("1"), s.contract("2")
    assert await client.register_contract(one, "ada")
    assert await client.register_contract(two, "ada")
    assert not await client.register_contract(one, "bob")
    for contract in (one, two):
        assert await client.find_contract(contract.digest.hex()[:8]) == contract.digest
        assert (await client.show_contract(contract.digest))["body"] == contract.canonical()
    for text in ("0" * 64, "00000000", "x" * 8, one.digest.hex() + "0"):
        with pytest.raises(ContractUnknown):
            await client.find_contract(text)
    with pytest.raises(ContractUnknown):
        await client.show_contract(bytes(32))


async def test_a_role_is_known_by_a_holder_or_a_contract(
    client: GovernanceClient, dsn: str
) -> None:
    with pytest.raises(RoleUnknown, match="No contract is registered"):
        await client.check_role("approver")
    await client.register_contract(s.contract(), "ada")
    await client.grant_role("zoe", "porter", "ada")
    for role in ("approver", "operator", "porter"):
        await client.check_role(role)
    with pytest.raises(RoleUnknown, match='Did you mean "approver"'):
        await client.check_role("aprover")
    async with GovernanceClient(dsn, "other") as other:
        with pytest.raises(RoleUnknown):
            await other.check_role("porter")


# ------------------------------------------------------------------------ administration


async def test_roles_are_granted_listed_and_revoked(client: GovernanceClient) -> None:
    assert await client.grant_role("zoe", "porter", "ada", "joined", submitted_by="session 1")
    assert not await client.grant_role("zoe", "porter", "ada")
    [row] = await client.list_roles("zoe")
    assert (row["role"], row["granted_by"], row["reason"]) == ("porter", "ada", "joined")
    await client.revoke_role("zoe", "porter", "bob", "left", submitted_by="session 2")
    assert await client.list_roles() == []
    with pytest.raises(RoleUnknown):
        await client.revoke_role("zoe", "porter", "bob")
    said = await recorded(client.database)
    assert [(one["by"], one["submitted_by"], one["reason"]) for one in said] == [
        ("ada", "session 1", "joined"),
        ("bob", "session 2", "left"),
    ]


@pytest.mark.parametrize("by", ["zoe", "Zoe", " zoe"])
async def test_nobody_grants_to_themselves(client: GovernanceClient, by: str) -> None:
    with pytest.raises(AdministrationRefused):
        await client.grant_role("zoe", "porter", by)


async def test_two_people_for_a_contract(client: GovernanceClient) -> None:
    contract = s.contract()
    await client.register_contract(contract, "ada", submitted_by="session 1")
    for by in ("ada", "ADA"):
        with pytest.raises(AdministrationRefused):
            await client.activate_contract(contract.digest, by)
    await client.activate_contract(contract.digest, "bob", submitted_by="session 2")
    assert [row["state"] for row in await client.list_contracts(s.FLOW)] == ["active"]
    said = await recorded(client.database)
    assert [(one["by"], one["submitted_by"]) for one in said] == [
        ("ada", "session 1"),
        ("bob", "session 2"),
    ]


async def recorded(db: Database) -> list[dict[str, str]]:
    """What all entries of the log say, in order."""
    async with db.reading() as conn:
        cursor = await conn.execute("SELECT body FROM governance.payload ORDER BY entry")
        return [json.loads(body) for (body,) in await cursor.fetchall()]

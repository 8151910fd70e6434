"""Administration: two people for a contract, no self-grant, an entry for whoever changes what."""

from __future__ import annotations

import asyncio
import time
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from governance import administration, canonical
from governance.db import Database
from governance.errors import AdministrationRefused, ContractUnknown, RoleUnknown
from tests.conftest import RoleDsn
from tests.store import scenario as s
from tests.store.audit import differences_seen

ODD = 'zoë "the\\boss"\t\x01\x1f\x7f\u2028</script> \U0001f600'
"""Every kind of character that JSON escapes or must not escape."""


async def said(db: Database, kind: str) -> list[dict[str, Any]]:
    """The payloads of entries of one type, in order."""
    found = await s.rows(
        db,
        "SELECT p.body FROM governance.entry e JOIN governance.payload p ON p.entry = e.id "
        "WHERE e.type = %s ORDER BY e.id",
        kind,
    )
    payloads = [canonical.loads(body) for (body,) in found]
    return [payload for payload in payloads if isinstance(payload, dict)]


def as_admin(role_dsn: RoleDsn, statement: LiteralString, *params: Any) -> None:
    """Run SQL as an administrator who does not use the product."""
    with psycopg.connect(role_dsn("admin")) as conn:
        conn.execute(statement, params or None)


# ---------------------------------------------------------------- roles


async def test_a_grant_and_a_revocation_name_who_and_why(world: Database) -> None:
    async with world.transaction() as conn:
        assert await administration.grant_role(
            conn, s.REALM, "kim", "auditor", "ada", "joined", submitted_by="os:ada@host"
        )
        assert not await administration.grant_role(conn, s.REALM, "kim", "auditor", "ada")
        [row] = await administration.list_roles(conn, s.REALM, "kim")
    assert (row["role"], row["granted_by"], row["reason"]) == ("auditor", "ada", "joined")
    async with world.transaction() as conn:
        await administration.revoke_role(
            conn, s.REALM, "kim", "auditor", "bob", "left", submitted_by="os:bob@host"
        )
        assert await administration.list_roles(conn, s.REALM, "kim") == []
    [*_, granted] = await said(world, "role.granted")
    [revoked] = await said(world, "role.revoked")
    grant = {"realm": s.REALM, "actor": "kim", "role": "auditor", "db_user": "postgres"}
    assert granted.items() >= {
        **grant, "by": "ada", "reason": "joined", "submitted_by": "os:ada@host",
    }.items()  # fmt: skip
    assert revoked.items() >= {
        **grant, "by": "bob", "reason": "left", "submitted_by": "os:bob@host",
    }.items()  # fmt: skip


async def test_revoking_what_nobody_holds(world: Database) -> None:
    with pytest.raises(RoleUnknown, match='ana does not hold the role "operator"'):
        await s.revoke(world, s.ANA, "operator")
    assert await said(world, "role.revoked") == []


@pytest.mark.parametrize("by", ["kim", "Kim", " kim"])
async def test_nobody_grants_a_role_to_themselves(world: Database, by: str) -> None:
    with pytest.raises(AdministrationRefused, match="themselves"):
        async with world.transaction() as conn:
            await administration.grant_role(conn, s.REALM, "kim", "operator", by)


async def test_not_in_sql_either(world: Database, role_dsn: RoleDsn) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        as_admin(
            role_dsn,
            "INSERT INTO governance.role_grant (realm, actor, role, granted_by) "
            "VALUES ('test', 'kim', 'operator', 'kim')",
        )


async def test_changes_in_plain_sql_have_entries_too(world: Database, role_dsn: RoleDsn) -> None:
    as_admin(
        role_dsn,
        "INSERT INTO governance.role_grant (realm, actor, role, granted_by, reason) "
        "VALUES ('test', %s, 'operator', 'ada', %s), ('test', 'kim', 'operator', 'ada', '')",
        ODD,
        ODD,
    )
    as_admin(role_dsn, "DELETE FROM governance.role_grant WHERE role = 'operator'")
    user = conninfo_to_dict(role_dsn("admin"))["user"]
    granted, revoked = await said(world, "role.granted"), await said(world, "role.revoked")
    assert {g["actor"]: g["reason"] for g in granted if g["db_user"] == user} == {
        ODD: ODD,
        "kim": "",
    }
    assert [(r["actor"], r["by"]) for r in revoked] == [
        (actor, f"db:{user}") for actor in ("kim", s.OLGA, ODD)
    ]


async def test_a_change_without_its_trigger_is_caught(world: Database) -> None:
    """The fixture compares tables and entries after each test: here it would object."""
    async with await world.connect() as conn, conn.transaction(force_rollback=True):
        await conn.execute("ALTER TABLE governance.role_grant DISABLE TRIGGER role_revoked")
        await conn.execute("DELETE FROM governance.role_grant WHERE actor = 'ana'")
        [found] = await differences_seen(conn)
    assert found == "grants: only in the entries: ('test', 'ana', 'approver')"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE governance.role_grant SET role = 'approver'",
        "UPDATE governance.role_grant SET actor = 'kim' WHERE false",
        "TRUNCATE governance.role_grant",
    ],
)
async def test_grants_are_never_changed_in_place(world: Database, statement: LiteralString) -> None:
    async with await world.connect() as conn:
        for replication in ("origin", "replica"):
            await conn.execute(f"SET session_replication_role = {replication}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await conn.execute(statement)


@pytest.mark.slow
async def test_a_bulk_change_of_100000_grants(db: Database, role_dsn: RoleDsn) -> None:
    changes: dict[str, LiteralString] = {
        "grant": "INSERT INTO governance.role_grant (realm, actor, role, granted_by) "
        "SELECT 'test', 'actor-' || n, 'operator', 'ada' FROM generate_series(1, 100000) n",
        "revoke": "DELETE FROM governance.role_grant",
    }
    for what, statement in changes.items():
        begun = time.monotonic()
        await asyncio.to_thread(as_admin, role_dsn, statement)
        print(f"{what} 100,000 roles in one statement: {time.monotonic() - begun:.1f} s")
    entries = "SELECT type, count(*), max(seq) FROM governance.entry GROUP BY type ORDER BY type"
    assert await s.rows(db, entries) == [
        ("role.granted", 100000, 1),
        ("role.revoked", 100000, 2),
    ]
    assert await s.rows(db, "SELECT FROM governance.role_grant") == []


# ---------------------------------------------------------------- contracts


async def contract_states(db: Database) -> dict[str | None, str]:
    async with db.reading() as conn:
        found = await administration.list_contracts(conn, s.REALM)
        bodies = [await administration.find_contract(conn, s.REALM, r["digest"]) for r in found]
    parsed = [canonical.loads(row["body"], any_keys=True) for row in bodies if row]
    versions = [str(body["version"]) for body in parsed if isinstance(body, dict)]
    return dict(zip(versions, (str(row["state"]) for row in found), strict=True))


async def activate(db: Database, digest: bytes, by: str) -> None:
    async with db.transaction() as conn:
        await administration.activate_contract(conn, s.REALM, digest, by)


async def test_a_version_takes_two_people(world: Database) -> None:
    new = s.contract("2")
    async with world.transaction() as conn:
        assert await administration.register_contract(conn, s.REALM, new, "ada")
        assert not await administration.register_contract(conn, s.REALM, new, "bob")
    for same in ("ada", "Ada"):
        with pytest.raises(AdministrationRefused, match="registered this contract"):
            await activate(world, new.digest, same)
    assert await contract_states(world) == {"1": "active", "2": "registered"}
    await activate(world, new.digest, "bob")
    assert await contract_states(world) == {"1": "retired", "2": "active"}
    await activate(world, new.digest, "bob")  # active already: nothing is changed or recorded
    await activate(world, s.contract().digest, "eve")
    assert await contract_states(world) == {"1": "active", "2": "retired"}
    kinds = ["contract.registered", "contract.activated", "contract.retired"]
    assert [len(await said(world, kind)) for kind in kinds] == [2, 3, 2]
    [first, *_] = await said(world, "contract.registered")
    assert first["body"].encode() == s.contract().canonical()


async def test_a_version_that_nobody_registered(world: Database) -> None:
    with pytest.raises(ContractUnknown, match="0000"):
        await activate(world, bytes(32), "bob")


async def test_two_activations_at_once_leave_one_active(world: Database) -> None:
    digests = []
    for version in "23456":
        async with world.transaction() as conn:
            await administration.register_contract(conn, s.REALM, s.contract(version), "ada")
        digests.append(s.contract(version).digest)
    await asyncio.gather(*(activate(world, digest, "bob") for digest in digests))
    states = list((await contract_states(world)).values())
    assert (states.count("active"), states.count("retired")) == (1, 5)


REFUSED_IN_SQL: list[tuple[LiteralString, type[psycopg.Error]]] = [
    (
        "INSERT INTO governance.contract "
        "(realm, digest, flow, body, state, registered_at, registered_by, leaf) "
        "SELECT realm, sha256('{}'), 'Other', '{}', 'active', now(), 'ada', leaf "
        "FROM governance.contract",
        psycopg.errors.CheckViolation,
    ),
    (
        "INSERT INTO governance.contract SELECT (c).* FROM governance.contract c",
        psycopg.errors.InsufficientPrivilege,
    ),
    ("UPDATE governance.contract SET activated_by = 'ada'", psycopg.errors.CheckViolation),
    ("UPDATE governance.contract SET activated_by = NULL", psycopg.errors.CheckViolation),
    ("UPDATE governance.contract SET body = '{}'", psycopg.errors.InsufficientPrivilege),
    ("UPDATE governance.contract SET registered_by = 'x'", psycopg.errors.InsufficientPrivilege),
    ("DELETE FROM governance.contract", psycopg.errors.InsufficientPrivilege),
]


async def test_in_sql_too_a_version_takes_two_people(world: Database, role_dsn: RoleDsn) -> None:
    for statement, refusal in REFUSED_IN_SQL:
        with pytest.raises(refusal):
            as_admin(role_dsn, statement)

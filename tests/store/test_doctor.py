"""Each problem that `governance doctor` names, caused; and none where all is well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import LiteralString

import psycopg
import psycopg.sql
import pytest

from governance import doctor
from governance.db import Database, expected
from governance.db.versions import migrations
from governance.doctor import Check, examine
from governance.errors import ConfigurationError
from governance.testing import EmbeddedPostgres
from tests.conftest import RoleDsn
from tests.servers import GROUPS
from tests.store import scenario as s
from tests.store.catalog import catalog

CHECKS = [
    "schema version",
    "durability",
    "primary",
    "prepared transactions",
    "clocks",
    "group roles",
    "tables",
    "triggers",
    "grants",
]


async def examined(dsn: str, *, ahead: float = 0) -> list[Check]:
    """What the doctor says, with a clock that is ahead of this machine's."""
    async with Database(dsn) as db, await db.connect() as conn:
        return await examine(conn, db.label, clock=lambda: time.time() + ahead)


async def problems(dsn: str, **how: float) -> dict[str, list[str]]:
    """The checks that found something, with what they found."""
    return {c.name: list(c.problems) for c in await examined(dsn, **how) if not c.ok}


async def test_all_is_well_in_a_fresh_database(dsn: str) -> None:
    before = catalog(dsn)
    checks = await examined(dsn)
    assert [check.name for check in checks] == CHECKS
    assert {check.name: check.problems for check in checks if not check.ok} == {}
    assert catalog(dsn) == before


@pytest.mark.parametrize("group", GROUPS)
async def test_any_login_may_look(world: Database, role_dsn: RoleDsn, group: str) -> None:
    assert await problems(role_dsn(group)) == {}


BROKEN: list[tuple[LiteralString, str, list[str]]] = [
    (
        "GRANT INSERT ON governance.entry TO governance_worker",
        "grants",
        ["too much: INSERT on governance.entry for governance_worker"],
    ),
    (
        "GRANT UPDATE (body) ON governance.payload TO PUBLIC",
        "grants",
        ["too much: UPDATE (body) on governance.payload for PUBLIC"],
    ),
    (
        "REVOKE INSERT ON governance.leaf FROM governance_sealer",
        "grants",
        ["missing: INSERT on governance.leaf for governance_sealer"],
    ),
    (
        "REVOKE UPDATE (holder) ON governance.step FROM governance_worker",
        "grants",
        ["missing: UPDATE (holder) on governance.step for governance_worker"],
    ),
    (
        "REVOKE SELECT ON governance.approval, governance.execution FROM governance_reader",
        "grants",
        [
            "missing: SELECT on governance.approval for governance_reader",
            "missing: SELECT on governance.execution for governance_reader",
        ],
    ),
    (
        "GRANT EXECUTE ON FUNCTION governance.append_unchecked(uuid, text, bytea, bytea[]) "
        "TO governance_decider",
        "grants",
        [
            "too much: EXECUTE on governance.append_unchecked(uuid, text, bytea, bytea[]) "
            "for governance_decider"
        ],
    ),
    (
        "GRANT USAGE ON SEQUENCE governance.entry_id TO governance_admin",
        "grants",
        ["too much: USAGE on governance.entry_id for governance_admin"],
    ),
    (
        "GRANT CREATE ON SCHEMA governance TO governance_worker",
        "grants",
        ["too much: CREATE on governance for governance_worker"],
    ),
    (
        "GRANT DELETE ON governance.role_grant TO governance_decider WITH GRANT OPTION",
        "grants",
        ["too much: DELETE on governance.role_grant for governance_decider"],
    ),
    (
        "DROP TRIGGER insert_only ON governance.checkpoint",
        "triggers",
        ["governance.checkpoint lacks the trigger insert_only"],
    ),
    (
        "ALTER TABLE governance.role_grant ENABLE TRIGGER role_revoked",
        "triggers",
        ["the trigger role_revoked of governance.role_grant is not ENABLE ALWAYS"],
    ),
    (
        "ALTER TABLE governance.payload DISABLE TRIGGER insert_only_truncate",
        "triggers",
        ["the trigger insert_only_truncate of governance.payload is not ENABLE ALWAYS"],
    ),
    (
        "CREATE TRIGGER aaa BEFORE INSERT ON governance.entry FOR EACH ROW "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "triggers",
        ["governance.entry has a trigger that is not of this release: aaa"],
    ),
    (
        "CREATE RULE swallow AS ON INSERT TO governance.entry DO INSTEAD NOTHING",
        "tables",
        ["governance.entry has the rule swallow, which can swallow rows"],
    ),
    (
        "ALTER TABLE governance.entry ENABLE ROW LEVEL SECURITY",
        "tables",
        ["governance.entry has row security, which can hide or refuse rows"],
    ),
    (
        "CREATE POLICY hide ON governance.decision USING (false)",
        "tables",
        ["governance.decision has row security, which can hide or refuse rows"],
    ),
    (
        "DELETE FROM governance.migration",
        "schema version",
        [f"the schema has version 0, this release needs {len(migrations())}"],
    ),
]


@pytest.mark.parametrize(
    ("change", "check", "found"), BROKEN, ids=[" ".join(c.split()[:4]) for c, _, _ in BROKEN]
)
async def test_what_is_wrong_is_named(
    dsn: str, change: LiteralString, check: str, found: list[str]
) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(change)
    assert await problems(dsn) == {check: found}


async def test_a_table_of_somebody_else(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("ALTER TABLE governance.log OWNER TO governance_admin")
    found = await problems(dsn)
    assert found["tables"] == ["governance.log belongs to governance_admin"]


async def test_no_schema(empty_dsn: str) -> None:
    [check] = [check for check in await examined(empty_dsn) if not check.ok]
    assert check.problems == ("there is no governance schema; run `governance migrate`",)


async def test_commits_that_are_not_on_disk(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(
                psycopg.sql.Identifier(conn.info.dbname)
            )
        )
    found = await problems(dsn)
    assert found == {"durability": ["synchronous_commit is off; set it to on"]}


@pytest.mark.parametrize(("ahead", "how"), [(60, "60 s ahead of"), (-60, "60 s behind")])
async def test_clocks_that_differ(dsn: str, ahead: float, how: str) -> None:
    assert await problems(dsn, ahead=ahead) == {
        "clocks": [f"this machine's clock is {how} the server's"]
    }
    assert await problems(dsn, ahead=ahead / 20) == {}


async def test_group_roles_that_log_in_or_lack(dsn: str) -> None:
    """In a transaction that is rolled back: the roles are the whole server's."""
    async with (
        Database(dsn) as db,
        await db.connect() as conn,
        conn.transaction(force_rollback=True),
    ):
        await conn.execute("ALTER ROLE governance_worker LOGIN")
        await conn.execute("ALTER ROLE governance_reader BYPASSRLS")
        await conn.execute("ALTER ROLE governance_decider RENAME TO somebody_else")
        found = {check.name: check.problems for check in await examine(conn, db.label)}
    assert found["group roles"] == (
        "governance_worker may log in",
        "governance_decider does not exist",
        "governance_reader is a superuser or bypasses row security",
    )


async def test_a_server_that_is_careless_and_then_a_standby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    careless = {"fsync": "off", "full_page_writes": "off", "max_prepared_transactions": "2"}
    server = EmbeddedPostgres(careless)
    try:
        with psycopg.connect(server.dsn) as conn:
            conn.execute("CREATE TABLE t (x int)")
            conn.execute("PREPARE TRANSACTION 'left'")
        off = ["fsync is off; set it to on", "full_page_writes is off; set it to on"]
        found = await problems(server.dsn)
        assert (found["durability"], "prepared transactions" in found) == (off, False)
        an_hour_later = doctor._Q["fetch_prepared"].replace("'1 hour'", "'0 s'")
        s.sabotage(monkeypatch, doctor, fetch_prepared=an_hour_later)
        found = await problems(server.dsn)
        assert found["prepared transactions"] == [
            "transaction 'left' was prepared over an hour ago; commit or roll it back"
        ]
        (server.folder / "standby.signal").touch()
        server.restart()
        found = await problems(server.dsn)
        assert found["primary"] == ["the server is a standby in recovery"]
    finally:
        server.close()


async def test_who_may_not_even_look(dsn: str) -> None:
    async with (
        Database(dsn) as db,
        await db.connect() as conn,
        conn.transaction(force_rollback=True),
    ):
        await conn.execute("CREATE ROLE nobody_at_all")
        await conn.execute("SET LOCAL ROLE nobody_at_all")
        with pytest.raises(ConfigurationError, match="permission denied"):
            await examine(conn, db.label)


def test_each_grant_of_the_file_is_understood() -> None:
    text = (Path(expected.__file__).parents[1] / "sql/grants.sql").read_text(encoding="utf-8")
    assert text.count("\nGRANT ") > 10
    assert {one.grantee for one in expected.privileges(["entry"])} == {
        f"governance_{group}" for group in GROUPS
    }

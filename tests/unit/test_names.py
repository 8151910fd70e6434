"""Words that are stored never change: they stand in evidence that others hold."""

from __future__ import annotations

import re

from governance import names
from governance.db import Database
from governance.db.migrate import ROLES
from governance.names import ApprovalState, ContractState, ExecutionState, Verdict

STATES = {
    ApprovalState: "pending approved rejected expired withdrawn revoked used",
    ExecutionState: "open denied completed failed cancelled",
    ContractState: "registered active retired",
    Verdict: "approve reject",
}

ENTRIES = """
    flow.started worker
    flow.continued worker
    flow.refused worker
    flow.completed worker
    flow.failed worker
    flow.cancelled worker
    approval.requested worker
    approval.vote decider
    approval.decided decider
    approval.refused decider
    approval.withdrawn worker decider
    approval.revoked decider
    approval.expired worker decider
    resume.admitted worker
    resume.denied worker
    step.claimed worker
    step.taken_over worker
    step.executed worker
    step.failed worker
    step.injected worker
    step.evicted worker
    step.refused worker
    role.granted admin
    role.revoked admin
    contract.registered admin
    contract.activated admin
    contract.retired admin
    freeze.set admin
    freeze.lifted admin
    log.opened owner
"""


def test_states() -> None:
    for kind, words in STATES.items():
        assert [member.value for member in kind] == words.split()
        assert [member.name.lower() for member in kind] == words.split()


def test_entry_types_and_their_writers() -> None:
    lines = [line.split() for line in ENTRIES.strip().splitlines()]
    assert {kind: tuple(writers) for kind, *writers in lines} == names.ENTRY_WRITERS


def test_every_word_fits_the_record_format() -> None:
    for kind, writers in names.ENTRY_WRITERS.items():
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", kind)
        assert {f"governance_{writer}" for writer in writers} <= set(ROLES)


async def test_the_database_has_the_same_entry_types(db: Database) -> None:
    async with db.reading() as conn:
        cursor = await conn.execute("SELECT type, writers FROM governance.entry_kind")
        stored = [(kind, tuple(writers)) for kind, writers in await cursor.fetchall()]
    assert dict(stored) == names.ENTRY_WRITERS


async def test_the_database_has_the_same_states(db: Database) -> None:
    query = """
        SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'governance'::regnamespace AND contype = 'c'
          AND conkey = ARRAY(SELECT attnum FROM pg_attribute
                             WHERE attrelid = conrelid AND attname IN ('state', 'verdict'))
    """
    async with db.reading() as conn:
        checks = await (await conn.execute(query)).fetchall()
    stored = {table: set(re.findall(r"'(\w+)'", check)) for table, check in checks}
    expected: dict[str, set[str]] = {
        "governance.approval": set(ApprovalState),
        "governance.execution": set(ExecutionState),
        "governance.contract": set(ContractState),
        "governance.decision": set(Verdict),
    }
    assert stored == expected

"""Appending, and a verifier that names what a superuser changed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from governance import canonical
from governance.chain.entry import NO_PREVIOUS, Entry
from governance.chain.log import append
from governance.chain.note import Checkpoint, sign_note
from governance.chain.tree import root
from governance.db import Database
from governance.signing import Ed25519Signer
from tests.servers import LOG_ORIGIN
from tests.store.logs import SIGNER, Superuser, new_stream, seal, story, verify, write

Attack = Callable[[Superuser], Awaitable[object]]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where checkpoints are kept outside the database."""
    return tmp_path / "kept"


@pytest.fixture
async def superuser(dsn: str) -> AsyncGenerator[Superuser]:
    """Whoever owns the server."""
    session = await Superuser.of(dsn)
    yield session
    await session.close()


# ---------------------------------------------------------------- append


async def test_an_entry_is_what_its_bytes_say(db: Database) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
        first = await append(conn, stream, "flow.started", {"actor": "zo\u00eb"})
        second = await append(conn, stream, "step.claimed", {}, [first, first])
    async with db.reading() as conn:
        rows = await (
            await conn.execute(
                "SELECT e.body, e.leaf, p.body FROM governance.entry e "
                "JOIN governance.payload p ON p.entry = e.id ORDER BY e.id"
            )
        ).fetchall()
    entries = [Entry.parse(body) for body, _, _ in rows]
    assert [leaf for _, leaf, _ in rows] == [first, second]
    assert [entry.leaf for entry in entries] == [first, second]
    assert [entry.encode() for entry in entries] == [body for body, _, _ in rows]
    assert [entry.payload for entry in entries] == [
        hashlib.sha256(payload).digest() for _, _, payload in rows
    ]
    assert [entry.prev for entry in entries] == [NO_PREVIOUS, first]
    assert [entry.seq for entry in entries] == [1, 2]
    assert {entry.stream for entry in entries} == {f"execution/{stream.hex}"}
    assert {entry.log for entry in entries} == {LOG_ORIGIN}
    assert entries[1].observed == (first, first)
    payload = canonical.loads(rows[0][2])
    assert isinstance(payload, dict)
    assert payload["actor"] == "zo\u00eb"
    assert len(str(payload["nonce"])) == 32


async def test_equal_payloads_have_different_digests(db: Database) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
        leaves = {await append(conn, stream, "step.failed", {"code": "x"}) for _ in range(2)}
        cursor = await conn.execute("SELECT body FROM governance.entry")
        entries = [Entry.parse(body) for [body] in await cursor.fetchall()]
    assert len(leaves) == len({entry.payload for entry in entries}) == 2


async def test_streams_grow_side_by_side(db: Database) -> None:
    async with db.transaction() as conn:
        streams = [await new_stream(conn) for _ in range(2)]
    async with db.transaction() as one, db.transaction() as other:
        await append(one, streams[0], "step.claimed", {})
        await append(other, streams[1], "step.claimed", {})
    assert (await verify(db)).entries == 2


# ---------------------------------------------------------------- an honest log


async def test_an_honest_log_verifies(db: Database, dsn: str, kept: Path) -> None:
    streams = await story(db, dsn, kept)
    await write(db, streams[0], times=2)
    report = await verify(db, since=(kept / "4.note").read_bytes())
    assert report.ok, report.first_problem
    assert (report.entries, report.streams, report.checkpoints) == (14, 3, 3)
    assert (report.sealed, report.unsealed) == (12, 2)
    assert report.checkpoint is not None
    assert report.checkpoint.size == 12


async def test_an_empty_log_verifies(db: Database) -> None:
    report = await verify(db)
    assert report.ok
    assert (report.entries, report.sealed, report.checkpoint) == (0, 0, None)


async def test_verifying_needs_one_snapshot(db: Database) -> None:
    from governance.evidence.verify_log import verify_log

    async with db.transaction() as conn:
        with pytest.raises(ValueError, match="one snapshot"):
            await verify_log(conn, verifiers=[], origin=LOG_ORIGIN)


# ---------------------------------------------------------------- changed by a superuser


def sql(*statements: str) -> Attack:
    """An attack made of plain statements."""

    async def run(superuser: Superuser) -> None:
        for statement in statements:
            await superuser.do(statement)

    return run


def entry_with_other_type(superuser: Superuser) -> Awaitable[object]:
    return superuser.do(
        "UPDATE governance.entry SET type = 'step.failed', body = convert_to(replace("
        "convert_from(body, 'UTF8'), 'step.executed', 'step.failed'), 'UTF8') WHERE id = 6"
    )


def whole_entry_gone(number: int) -> Attack:
    return sql(
        f"DELETE FROM governance.payload WHERE entry = {number}",
        f"DELETE FROM governance.leaf WHERE entry = {number}",
        f"DELETE FROM governance.entry WHERE id = {number}",
    )


async def stream_gone(superuser: Superuser) -> None:
    """A whole execution disappears and the tree closes the gap."""
    [[stream]] = await superuser.do("SELECT stream FROM governance.entry WHERE id = 2")
    ids = "(SELECT id FROM governance.entry WHERE stream = %s)"
    await superuser.do(f"DELETE FROM governance.payload WHERE entry IN {ids}", stream)
    await superuser.do(f"DELETE FROM governance.leaf WHERE entry IN {ids}", stream)
    await superuser.do("DELETE FROM governance.entry WHERE stream = %s", stream)
    await superuser.do("DELETE FROM governance.stream WHERE id = %s", stream)
    await superuser.do(
        "UPDATE governance.leaf l SET idx = n.n + 999 "
        "FROM (SELECT idx, row_number() OVER (ORDER BY idx) n FROM governance.leaf) n "
        "WHERE n.idx = l.idx"
    )
    await superuser.do("UPDATE governance.leaf SET idx = idx - 1000")


async def forked(superuser: Superuser) -> None:
    """Two entries in one place of a stream."""
    await superuser.do("ALTER TABLE governance.entry DROP CONSTRAINT entry_stream_seq_key")
    for table, columns in (
        ("entry", "id + 100, stream, seq, type, body, leaf, at"),
        ("payload", "entry + 100, body"),
    ):
        key = "id" if table == "entry" else "entry"
        await superuser.do(
            f"INSERT INTO governance.{table} SELECT {columns} FROM governance.{table} "
            f"WHERE {key} = 12"
        )


async def swapped_bodies(superuser: Superuser) -> None:
    [[a], [b]] = await superuser.do(
        "SELECT body FROM governance.entry WHERE id IN (5, 6) ORDER BY id"
    )
    await superuser.do("UPDATE governance.entry SET body = %s WHERE id = 5", b)
    await superuser.do("UPDATE governance.entry SET body = %s WHERE id = 6", a)


async def signed_by_another(superuser: Superuser) -> None:
    other = Ed25519Signer.generate(LOG_ORIGIN)
    rows = await superuser.do("SELECT size, root FROM governance.checkpoint")
    for size, root_hash in rows:
        note = sign_note(Checkpoint(LOG_ORIGIN, size, root_hash).text, [other]).decode()
        await superuser.do("UPDATE governance.checkpoint SET note = %s WHERE size = %s", note, size)


SETTLE = "UPDATE governance.leaf SET idx = idx - 1000 WHERE idx >= 1000"

ATTACKS: dict[str, tuple[Attack, int, str, dict[str, int]]] = {
    "another log": (
        sql("UPDATE governance.log SET origin = 'other.example/log'"),
        1, "The log is other.example/log", {},
    ),
    "payload edited": (
        sql("UPDATE governance.payload SET body = '{}' WHERE entry = 6"),
        2, "its payload is not the one that was hashed", {"entry": 6},
    ),
    "payload gone": (
        sql("DELETE FROM governance.payload WHERE entry = 6"),
        2, "its payload is missing", {"entry": 6},
    ),
    "column edited": (
        sql("UPDATE governance.entry SET at = at - interval '1 day' WHERE id = 6"),
        2, "its body says at ", {"entry": 6},
    ),
    "time out of this world": (
        sql("UPDATE governance.entry SET at = 'infinity' WHERE id = 6"),
        2, "its body says at ", {"entry": 6},
    ),
    "moved to another stream": (
        sql("UPDATE governance.entry SET seq = 9, stream = (SELECT stream FROM governance.entry "
            "WHERE id = 1) WHERE id = 6"),
        2, "its body says stream", {"entry": 6},
    ),
    "its stream's row gone": (
        sql("DELETE FROM governance.stream WHERE id = (SELECT stream FROM governance.entry "
            "WHERE id = 2)"),
        2, "its body says stream", {"entry": 2},
    ),
    "body edited": (
        entry_with_other_type, 2, "its leaf is not the hash of its body", {"entry": 6},
    ),
    "body of another form": (
        sql("UPDATE governance.entry SET body = body || ' ' WHERE id = 6"),
        2, "not an entry in its canonical form", {"entry": 6},
    ),
    "bodies swapped": (swapped_bodies, 2, "its body says stream", {"entry": 5}),
    "entry gone": (whole_entry_gone(5), 3, "its stream has no seq 2", {"entry": 9}),
    "leaf gone": (
        sql("DELETE FROM governance.leaf WHERE entry = 5"),
        3, "it has a leaf, seq 2 has none", {"entry": 9},
    ),
    "last leaf of its stream gone": (
        sql("DELETE FROM governance.leaf WHERE entry = 10"),
        5, "Leaf 9 is missing", {"leaf": 9},
    ),
    "last entry of its stream gone": (whole_entry_gone(12), 3, "ends with seq 6", {}),
    "head edited": (
        sql("UPDATE governance.stream SET head = sha256('x') WHERE id = (SELECT stream FROM "
            "governance.entry WHERE id = 2)"),
        3, "but with another leaf", {},
    ),
    "forked": (forked, 3, "have seq 6", {"entry": 112}),
    "links out of order": (
        sql("UPDATE governance.leaf SET idx = CASE entry WHEN 1 THEN 1004 ELSE 1000 END "
            "WHERE entry IN (1, 5)", SETTLE),
        3, "its leaf stands before that of seq 1", {"entry": 5},
    ),
    "leaves swapped": (
        sql("UPDATE governance.leaf SET idx = CASE entry WHEN 5 THEN 1005 ELSE 1004 END "
            "WHERE entry IN (5, 6)", SETTLE),
        6, "The checkpoint of size 8 signs the root", {"size": 8},
    ),
    "leaf edited": (
        sql("UPDATE governance.leaf SET hash = sha256('x') WHERE idx = 6"),
        5, "Leaf 6 is not the hash of its entry 7", {"leaf": 6, "entry": 7},
    ),
    "edited and hashed again": (
        lambda superuser: superuser.rewrite(6),
        6, "The checkpoint of size 8 signs the root", {"size": 8},
    ),
    "whole execution gone": (
        stream_gone, 6, "The checkpoint of size 4 signs the root", {"size": 4},
    ),
    "signed by another key": (
        signed_by_another, 6, "None of the given keys signed this note", {"size": 4},
    ),
    "checkpoint edited": (
        sql("UPDATE governance.checkpoint SET note = replace(note, E'\\n8\\n', E'\\n7\\n')"),
        6, "does not hold", {"size": 8},
    ),
    "checkpoint column edited": (
        sql("UPDATE governance.checkpoint SET root = sha256('x') WHERE size = 8"),
        6, "on record with another size or root", {"size": 8},
    ),
    "end cut off, checkpoints left": (
        sql("DELETE FROM governance.leaf WHERE idx >= 10"),
        6, "its end is gone", {"size": 12},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
async def test_what_was_changed_is_named(
    db: Database, dsn: str, kept: Path, superuser: Superuser, name: str
) -> None:
    attack, step, words, place = ATTACKS[name]
    await story(db, dsn, kept)
    await attack(superuser)
    problem = (await verify(db)).first_problem
    assert problem is not None
    assert words in problem.what
    assert problem.step == step
    assert {key: getattr(problem, key) for key in place} == place


async def test_an_observed_leaf_that_comes_later(
    db: Database, dsn: str, kept: Path, superuser: Superuser
) -> None:
    [stream, *_] = await story(db, dsn, kept)
    await write(db, stream, observed=[hashlib.sha256(b"nothing").digest()])
    assert (await verify(db)).ok  # of the unsealed tail nothing is said
    await superuser.do("INSERT INTO governance.leaf SELECT 12, id, leaf FROM governance.entry "
                       "WHERE id = 13")  # fmt: skip
    problem = (await verify(db)).first_problem
    assert problem is not None
    assert (problem.step, problem.entry) == (4, 13)
    assert "not in the tree" in problem.what


async def test_a_cut_end_is_seen_from_outside_only(
    db: Database, dsn: str, kept: Path, superuser: Superuser
) -> None:
    await story(db, dsn, kept)
    await superuser.cut(8)
    assert (await verify(db)).ok
    report = await verify(db, since=(kept / "latest").read_bytes())
    assert report.first_problem is not None
    assert report.first_problem.step == 6
    assert "its end is gone" in report.first_problem.what


async def test_a_log_rolled_back_and_gone_on_with_is_another_log(
    db: Database, dsn: str, kept: Path, superuser: Superuser, tmp_path: Path
) -> None:
    streams = await story(db, dsn, kept)
    await superuser.cut(8)
    await write(db, streams[0], times=6)
    await seal(dsn, tmp_path / "elsewhere", new_sinks=True)
    assert (await verify(db)).ok
    report = await verify(db, since=(kept / "latest").read_bytes())
    assert report.first_problem is not None
    assert "The given checkpoint signs the root" in report.first_problem.what


async def test_a_kept_note_of_another_log_or_key(db: Database, dsn: str, kept: Path) -> None:
    await story(db, dsn, kept)
    other = sign_note(Checkpoint("other.example/log", 0, root([])).text, [SIGNER])
    problem = (await verify(db, since=other)).first_problem
    assert problem is not None
    assert "is of the log other.example/log" in problem.what
    stranger = Ed25519Signer.generate(LOG_ORIGIN).verifier
    problem = (await verify(db, verifier=stranger)).first_problem
    assert problem is not None
    assert "None of the given keys" in problem.what
    assert (await verify(db)).ok

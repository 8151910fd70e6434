"""Sealing on a real Postgres: order, duty, refusal, one at a time."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from governance.chain.log import append
from governance.chain.note import Checkpoint, open_note, sign_note
from governance.chain.sealer import Sealed, Sealer
from governance.chain.sinks import FileSink
from governance.db import Database
from governance.errors import (
    ChainBroken,
    ConfigurationError,
    LogRolledBack,
    NoteInvalid,
)
from governance.signing import Ed25519Signer
from tests.servers import LOG_ORIGIN
from tests.store.logs import (
    SIGNER,
    Superuser,
    new_stream,
    seal,
    story,
    verify,
    write,
)


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


def checkpoint(file: Path) -> Checkpoint:
    return Checkpoint.parse(open_note(file.read_bytes(), [SIGNER.verifier]).text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------- what a round does


async def test_a_round_seals_signs_keeps_and_records(db: Database, dsn: str, kept: Path) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    await write(db, stream, times=3)
    sealed = await seal(dsn, kept)
    assert (sealed.entries, sealed.more) == (3, False)
    assert sealed.checkpoint == checkpoint(kept / "3.note") == checkpoint(kept / "latest")
    async with db.reading() as conn:
        row = await (await conn.execute("SELECT size, key_name, root FROM governance.checkpoint")
                     ).fetchone()  # fmt: skip
    assert sealed.checkpoint is not None
    assert row == (3, LOG_ORIGIN, sealed.checkpoint.root)
    assert (await verify(db)).sealed == 3


async def test_nothing_new_is_nothing_signed(db: Database, dsn: str, kept: Path) -> None:
    assert await seal(dsn, kept) == Sealed(0, None, False)
    await story(db, dsn, kept)
    assert await seal(dsn, kept) == Sealed(0, None, False)
    assert names(kept) == ["12.note", "4.note", "8.note", "latest"]


async def test_a_long_tail_takes_more_rounds(db: Database, dsn: str, kept: Path) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    await write(db, stream, times=7)
    async with Sealer(dsn, SIGNER, [FileSink(kept)], limit=3) as sealer:
        rounds = [await sealer.seal_once() for _ in range(4)]
    assert [(one.entries, one.more) for one in rounds] == [
        (3, True), (3, True), (1, False), (0, False),
    ]  # fmt: skip
    assert (await verify(db)).ok


async def test_the_sealer_s_role_is_enough(
    db: Database, role_dsn: Callable[[str], str], kept: Path
) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    await write(db, stream, times=2)
    assert (await seal(role_dsn("sealer"), kept)).entries == 2
    assert (await verify(db)).ok
    await write(db, stream)
    with pytest.raises(ConfigurationError, match="permission denied"):
        await seal(role_dsn("reader"), kept)


async def test_every_sink_gets_every_checkpoint(db: Database, dsn: str, tmp_path: Path) -> None:
    first, second = FileSink(tmp_path / "a"), FileSink(tmp_path / "b")
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    await write(db, stream)
    async with Sealer(dsn, SIGNER, [first]) as sealer:
        await sealer.seal_once()
    async with Sealer(dsn, SIGNER, [first, second]) as sealer:
        assert (await sealer.seal_once()).checkpoint == checkpoint(tmp_path / "b" / "1.note")
        await write(db, stream)
        await sealer.seal_once()
    for folder in ("a", "b"):
        assert checkpoint(tmp_path / folder / "latest").size == 2


async def test_a_sealer_without_a_place_outside_is_refused(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="outside the database"):
        Sealer(dsn, SIGNER, [])


# ---------------------------------------------------------------- order


async def test_an_entry_that_commits_late_is_sealed(db: Database, dsn: str, kept: Path) -> None:
    """Its id is smaller than a sealed one and its transaction's id larger than the last ended one.

    The upper bound of a snapshot is one above the last transaction that *ended*. A low-water mark
    built on it passes the transaction that is still open here, and loses its entry.
    """
    async with db.transaction() as conn:
        early, late = await new_stream(conn), await new_stream(conn)
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer:
        async with db.transaction() as older:
            await older.execute("SELECT pg_current_xact_id()")
            async with db.transaction() as younger:
                await append(younger, late, "step.claimed", {})
                await append(older, early, "step.claimed", {})
                await older.commit()
                await older.execute("BEGIN")
                sealed = [(await sealer.seal_once()).entries for _ in range(4)]
        sealed += [(await sealer.seal_once()).entries for _ in range(3)]
    assert sealed == [1, 0, 0, 0, 1, 0, 0]
    report = await verify(db)
    assert (report.ok, report.sealed, report.unsealed) == (True, 2, 0)


async def test_the_low_water_mark_rises_and_rests(db: Database, dsn: str, kept: Path) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer:
        for _ in range(3):
            await write(db, stream, times=2)
            await sealer.seal_once()
        await sealer.seal_once()
        await sealer.seal_once()
        async with db.reading() as conn:
            before = await (await conn.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())")
                            ).fetchone()  # fmt: skip
            await sealer.seal_once()
        async with db.reading() as conn:
            after = await (await conn.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())")
                           ).fetchone()  # fmt: skip
        session = sealer._session
        assert session is not None
        assert session.low.id == 6
    assert before == after  # an idle sealer uses no transaction ids


# ---------------------------------------------------------------- refusal


async def test_a_broken_entry_is_refused_and_nothing_sealed(
    db: Database, dsn: str, kept: Path, superuser: Superuser
) -> None:
    streams = await story(db, dsn, kept)
    for stream in streams:
        await write(db, stream)
    await superuser.do("UPDATE governance.payload SET body = '{}' WHERE entry = 14")
    with pytest.raises(ChainBroken, match=r"entry 14 .*payload is not the one"):
        await seal(dsn, kept)
    assert (await verify(db, since=(kept / "latest").read_bytes())).sealed == 0
    assert await superuser.do("SELECT count(*) FROM governance.leaf") == [(12,)]
    assert checkpoint(kept / "latest").size == 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE governance.entry SET leaf = sha256('x') WHERE id = 13", "its leaf is not the"),
        ("UPDATE governance.entry SET type = 'step.failed' WHERE id = 13", "says type"),
        ("DELETE FROM governance.payload WHERE entry = 13", "its payload is missing"),
        ("DELETE FROM governance.leaf WHERE idx = 11", "now has 11"),
        ("INSERT INTO governance.leaf SELECT 12, 13, sha256('x')", "now has 13"),
        ("DELETE FROM governance.stream", "its body says stream"),
    ],
)
async def test_what_the_sealer_refuses(
    db: Database, dsn: str, kept: Path, superuser: Superuser, change: str, words: str
) -> None:
    [stream, *_] = await story(db, dsn, kept)
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer:
        await sealer.seal_once()
        await write(db, stream)
        await superuser.do(change)
        with pytest.raises(ChainBroken, match=words):
            await sealer.seal_once()
    assert checkpoint(kept / "latest").size == 12


async def test_links_and_observed_leaves_must_be_sealed_first(
    db: Database, dsn: str, kept: Path, superuser: Superuser
) -> None:
    [first, second, _] = await story(db, dsn, kept)
    await write(db, first, observed=[bytes(32)])
    with pytest.raises(ChainBroken, match=f"entry 13 .* observed {bytes(32).hex()}, which is not"):
        await seal(dsn, kept)
    await superuser.do("DELETE FROM governance.payload WHERE entry = 13")
    await superuser.do("DELETE FROM governance.entry WHERE id = 13")
    await superuser.do("UPDATE governance.stream SET head = %s WHERE id = %s", bytes(32), second)
    await write(db, second)
    with pytest.raises(ChainBroken, match=f"entry 14 .* prev is {bytes(32).hex()}, but the leaf"):
        await seal(dsn, kept)
    await superuser.do("UPDATE governance.stream SET seq = 8 WHERE id = %s", first)
    await superuser.do("DELETE FROM governance.payload WHERE entry = 14")
    await superuser.do("DELETE FROM governance.entry WHERE id = 14")
    await write(db, first)
    with pytest.raises(ChainBroken, match=r"entry 15 .* seq 8 is not sealed before it"):
        await seal(dsn, kept)


async def test_a_log_that_went_back_is_refused(
    db: Database, dsn: str, kept: Path, superuser: Superuser
) -> None:
    [stream, *_] = await story(db, dsn, kept)
    await superuser.cut(4)
    for times in (0, 2):
        await write(db, stream, times=times)
        with pytest.raises(LogRolledBack, match=r"went back from size 12 .* to size 4"):
            await seal(dsn, kept)
    assert checkpoint(kept / "latest").size == 12


async def test_a_log_that_went_back_and_grew_again_is_refused(
    db: Database, dsn: str, kept: Path, superuser: Superuser, tmp_path: Path
) -> None:
    [stream, *_] = await story(db, dsn, kept)
    await superuser.cut(4)
    await write(db, stream, times=9)
    await seal(dsn, tmp_path / "elsewhere", new_sinks=True)
    with pytest.raises(ChainBroken, match="first 12 leaves have the root"):
        await seal(dsn, kept)


async def test_an_emptied_sink_is_refused_unless_said_to_be_new(
    db: Database, dsn: str, kept: Path
) -> None:
    await story(db, dsn, kept)
    shutil.rmtree(kept)
    with pytest.raises(ChainBroken, match="checkpoint of size 12, but none is kept"):
        await seal(dsn, kept)
    assert (await seal(dsn, kept, new_sinks=True)).checkpoint == checkpoint(kept / "12.note")


async def test_kept_checkpoints_of_other_keys_and_logs(db: Database, dsn: str, kept: Path) -> None:
    streams = await story(db, dsn, kept)
    other = Ed25519Signer.generate(LOG_ORIGIN)
    with pytest.raises(NoteInvalid, match="None of the given keys"):
        await seal(dsn, kept, signer=other)
    await write(db, streams[0])
    rotated = await seal(dsn, kept, signer=other, trusted=[SIGNER.verifier])
    assert rotated.checkpoint is not None
    strange = sign_note(Checkpoint("other.example/log", 1, bytes(32)).text, [other])
    (kept / "latest").write_bytes(strange)
    with pytest.raises(NoteInvalid, match=r"of the log other\.example/log"):
        await seal(dsn, kept, signer=other, trusted=[SIGNER.verifier])


async def test_somebody_else_s_checkpoint_in_the_sink(db: Database, dsn: str, kept: Path) -> None:
    [stream, *_] = await story(db, dsn, kept)
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer:
        await sealer.seal_once()
        strange = sign_note(Checkpoint(LOG_ORIGIN, 13, bytes(32)).text, [SIGNER])
        await FileSink(kept).publish(13, strange)
        await write(db, stream, times=2)
        with pytest.raises(ChainBroken, match="Somebody else put a checkpoint of size 13"):
            await sealer.seal_once()

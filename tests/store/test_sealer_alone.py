"""One sealer at a time; killed and cut off, it leaves no contradiction."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psycopg
import pytest

from governance.chain.note import Checkpoint, open_note
from governance.chain.sealer import Sealed, Sealer
from governance.chain.sinks import FileSink
from governance.db import Database
from governance.errors import DatabaseUnavailable, SealerRunning
from governance.signing import KEY_VARIABLE
from tests.store import stuck_sealer
from tests.store.logs import SIGNER, new_stream, seal, story, until_unlocked, verify, write


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where checkpoints are kept outside the database."""
    return tmp_path / "kept"


def checkpoint(file: Path) -> Checkpoint:
    return Checkpoint.parse(open_note(file.read_bytes(), [SIGNER.verifier]).text)


async def test_a_second_sealer_is_told(db: Database, dsn: str, kept: Path) -> None:
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as first:
        await first.seal_once()
        with pytest.raises(SealerRunning, match="Another sealer is running"):
            await seal(dsn, kept)
        assert await first.seal_once() == Sealed(0, None, False)
    assert await seal(dsn, kept) == Sealed(0, None, False)


async def test_two_sealers_at_once_seal_each_entry_once(db: Database, dsn: str, kept: Path) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    await write(db, stream, times=5)
    rounds = await asyncio.gather(*(seal(dsn, kept) for _ in range(4)), return_exceptions=True)
    done = [one for one in rounds if isinstance(one, Sealed)]
    assert all(isinstance(one, (Sealed, SealerRunning)) for one in rounds)
    assert sum(one.entries for one in done) == 5
    assert (await verify(db)).sealed == 5


@pytest.mark.parametrize("stage", stuck_sealer.STAGES)
async def test_a_killed_sealer_leaves_work_and_no_contradiction(
    db: Database, dsn: str, kept: Path, stage: str
) -> None:
    [stream, *_] = await story(db, dsn, kept)
    await write(db, stream, times=2)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.stuck_sealer", dsn, str(kept), stage,
        env={**os.environ, KEY_VARIABLE: SIGNER.private_text()},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"here\n"
    process.kill()
    await process.wait()
    await until_unlocked(dsn)
    report = await verify(db)
    assert (report.ok, report.sealed, report.unsealed) == (True, 12, 2)
    again = await seal(dsn, kept)
    assert again.entries == 0
    assert again.checkpoint == checkpoint(kept / "14.note") == checkpoint(kept / "latest")
    report = await verify(db, since=(kept / "latest").read_bytes())
    assert (report.ok, report.sealed, report.checkpoints) == (True, 14, 4)


async def test_following_survives_a_lost_connection(db: Database, dsn: str, kept: Path) -> None:
    async with db.transaction() as conn:
        stream = await new_stream(conn)
    stop, rounds = asyncio.Event(), asyncio.Queue[Sealed]()
    async with Sealer(dsn, SIGNER, [FileSink(kept)]) as sealer, asyncio.TaskGroup() as tasks:
        tasks.create_task(sealer.follow(0.01, stop, told=rounds.put))
        await write(db, stream)
        assert (await rounds.get()).entries == 1
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                "AND classid = 7174 AND objid = 2"
            )
        await write(db, stream)
        assert (await rounds.get()).entries == 1
        stop.set()
    assert (await verify(db)).sealed == 2


async def test_following_says_at_once_that_there_is_no_database(kept: Path) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(DatabaseUnavailable):
        await Sealer(nowhere, SIGNER, [FileSink(kept)]).follow(0.01, asyncio.Event())

"""Sealed order never contradicts what a lock decided, whatever else is open in the database."""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path

import psycopg
import pytest

from governance.chain.entry import Entry
from governance.chain.log import append
from governance.chain.sealer import Sealer
from governance.chain.sinks import FileSink
from governance.db import Database
from tests.store.logs import SIGNER, Connection, new_stream, verify

SECONDS = 2.5
LOCK_CLASS = 7001


async def read_head(conn: Connection, actor: uuid.UUID) -> bytes:
    row = await (
        await conn.execute("SELECT head FROM governance.stream WHERE id = %s", [actor])
    ).fetchone()
    assert row is not None
    return bytes(row[0])


async def change_role(conn: Connection, number: int, actor: uuid.UUID) -> None:
    await conn.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, number])
    await append(conn, actor, "role.revoked", {})


async def claim(
    conn: Connection, dice: random.Random, number: int, actor: uuid.UUID, stream: uuid.UUID
) -> None:
    await conn.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [LOCK_CLASS, number])
    head = await read_head(conn, actor)
    for _ in range(dice.choice((1, 1, 2))):
        try:
            async with conn.transaction():  # a savepoint
                await append(conn, stream, "step.claimed", {}, [head])
                if dice.random() < 0.1:
                    raise psycopg.Rollback
        except psycopg.Rollback:
            pass


async def writer(
    dsn: str, seed: int, actors: list[uuid.UUID], streams: list[uuid.UUID], stop: asyncio.Event
) -> int:
    """Claims and role changes, with early transaction ids, pauses, savepoints and rollbacks."""
    dice, lost = random.Random(seed), 0
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        while not stop.is_set():
            number = dice.randrange(len(actors))
            try:
                async with conn.transaction():
                    if dice.random() < 0.5:
                        await conn.execute("SELECT pg_current_xact_id()")
                    if dice.random() < 0.2:
                        await asyncio.sleep(dice.random() * 0.03)
                    if dice.random() < 0.1:
                        await change_role(conn, number, actors[number])
                    else:
                        await claim(conn, dice, number, actors[number], dice.choice(streams))
                    if dice.random() < 0.1:
                        await asyncio.sleep(dice.random() * 0.05)
                    if dice.random() < 0.1:
                        raise psycopg.Rollback
            except psycopg.errors.DeadlockDetected:
                lost += 1
    return lost


async def blocker(dsn: str, stop: asyncio.Event) -> None:
    """Somebody's transaction that wrote something and does nothing more."""
    async with (
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn,
        conn.transaction(force_rollback=True),
    ):
        await conn.execute("SELECT pg_current_xact_id()")
        await stop.wait()


async def claims_after_the_change_they_preceded(db: Database) -> int:
    async with db.reading() as conn:
        cursor = await conn.execute(
            "SELECT l.idx, e.stream, e.seq, e.leaf, e.body FROM governance.leaf l "
            "JOIN governance.entry e ON e.id = l.entry"
        )
        rows = await cursor.fetchall()
    place = {(stream, seq): idx for idx, stream, seq, _, _ in rows}
    by_leaf = {leaf: (stream, seq) for _, stream, seq, leaf, _ in rows}
    wrong = 0
    for idx, _, _, _, body in rows:
        for leaf in Entry.parse(body).observed:
            actor, seq = by_leaf[leaf]
            wrong += place.get((actor, seq + 1), idx + 1) < idx
    return wrong


@pytest.mark.slow
async def test_sealed_order_and_lag_beside_a_blocked_transaction(
    db: Database, dsn: str, tmp_path: Path
) -> None:
    async with db.transaction() as conn:
        actors = [await new_stream(conn, "actor") for _ in range(5)]
        streams = [await new_stream(conn) for _ in range(20)]
        for actor in actors:
            await append(conn, actor, "role.granted", {})
    stop_writing, stop_blocking, stop_sealing = (asyncio.Event() for _ in range(3))
    async with Sealer(dsn, SIGNER, [FileSink(tmp_path)], limit=200) as sealer:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(sealer.follow(0.02, stop_sealing))
            blocking = tasks.create_task(blocker(dsn, stop_blocking))
            writing = [
                tasks.create_task(writer(dsn, seed, actors, streams, stop_writing))
                for seed in range(8)
            ]
            await asyncio.sleep(SECONDS)
            stop_writing.set()
            await asyncio.gather(*writing)
            stop_sealing.set()
            await following
            stop_blocking.set()
            await blocking
        while (await sealer.seal_once()).entries:
            pass
    report = await verify(db, since=(tmp_path / "latest").read_bytes())
    assert report.ok, report.first_problem
    assert report.unsealed == 0
    assert report.sealed > 200
    assert await claims_after_the_change_they_preceded(db) == 0
    async with db.reading() as conn:
        cursor = await conn.execute(
            "SELECT max(extract(epoch FROM l.sealed_at - e.at))::float8 FROM governance.leaf l "
            "JOIN governance.entry e ON e.id = l.entry"
        )
        [lag] = await cursor.fetchone() or [None]
    assert lag is not None
    assert lag < 2, f"an entry waited {lag:.2f} s for its leaf"

"""Small logs for tests: streams, entries, and what a superuser can do to them."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from governance.chain.entry import Entry
from governance.chain.log import append
from governance.chain.sealer import Sealed, Sealer
from governance.chain.sinks import FileSink
from governance.db import Database
from governance.evidence.report import Report
from governance.evidence.verify_log import verify_log
from governance.signing import Ed25519Signer, Verifier
from tests.servers import LOG_ORIGIN

SIGNER = Ed25519Signer.generate(LOG_ORIGIN)
TABLES = ("log", "stream", "entry", "payload", "leaf", "checkpoint")

Connection = psycopg.AsyncConnection[Any]


async def new_stream(conn: Connection, kind: str = "execution") -> uuid.UUID:
    """A stream of its own."""
    stream = uuid.uuid4()
    await conn.execute(
        "INSERT INTO governance.stream (id, kind, realm, name) VALUES (%s, %s, 'test', %s)",
        [stream, kind, stream.hex],
    )
    return stream


async def write(
    db: Database, stream: uuid.UUID, *, times: int = 1, observed: Sequence[bytes] = ()
) -> list[bytes]:
    """Entries of one stream, each in a transaction of its own."""
    leaves: list[bytes] = []
    for number in range(times):
        async with db.transaction() as conn:
            payload = {"n": number}
            leaves.append(await append(conn, stream, "step.executed", payload, observed))
    return leaves


async def seal(dsn: str, kept: Path, **options: Any) -> Sealed:
    """One round of a sealer of its own."""
    async with Sealer(dsn, options.pop("signer", SIGNER), [FileSink(kept)], **options) as sealer:
        return await sealer.seal_once()


async def verify(
    db: Database, *, since: bytes | None = None, verifier: Verifier = SIGNER.verifier
) -> Report:
    """The verdict over the test's log."""
    async with db.snapshot() as conn:
        return await verify_log(conn, verifiers=[verifier], origin=LOG_ORIGIN, since=since)


async def story(db: Database, dsn: str, kept: Path) -> list[uuid.UUID]:
    """Three streams, twelve entries, three checkpoints: of sizes 4, 8 and 12."""
    async with db.transaction() as conn:
        streams = [await new_stream(conn) for _ in range(3)]
    for _ in range(3):
        for stream, times in zip(streams, (1, 1, 2), strict=True):
            await write(db, stream, times=times)
        await seal(dsn, kept)
    return streams


class Superuser:
    """Whoever owns the server: changes what triggers and constraints protect."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @classmethod
    async def of(cls, dsn: str) -> Superuser:
        """A session with every trigger off, those of foreign keys too."""
        conn: Connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        for table in TABLES:
            await conn.execute(f"ALTER TABLE governance.{table} DISABLE TRIGGER ALL")
        return cls(conn)

    async def do(self, statement: Any, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement."""
        cursor = await self._conn.execute(statement, parameters or None)
        return await cursor.fetchall() if cursor.description else []

    async def close(self) -> None:
        """End the session."""
        await self._conn.close()

    async def rewrite(self, entry_id: int) -> None:
        """Change what an entry says and make everything after it fit: hashes, links, head."""
        [[stream, seq]] = await self.do(
            "SELECT stream, seq FROM governance.entry WHERE id = %s", entry_id
        )
        rows = await self.do(
            "SELECT id, body FROM governance.entry WHERE stream = %s AND seq >= %s ORDER BY seq",
            stream,
            seq,
        )
        payload = b'{"n":99,"nonce":"00000000000000000000000000000000"}'
        await self.do("UPDATE governance.payload SET body = %s WHERE entry = %s", payload, entry_id)
        leaf: bytes | None = None
        for number, body in rows:
            entry = Entry.parse(body)
            if number == entry_id:
                entry = replace(entry, payload=hashlib.sha256(payload).digest())
            if leaf is not None:
                entry = replace(entry, prev=leaf)
            leaf = entry.leaf
            await self.do(
                "UPDATE governance.entry SET body = %s, leaf = %s WHERE id = %s",
                entry.encode(),
                leaf,
                number,
            )
            await self.do("UPDATE governance.leaf SET hash = %s WHERE entry = %s", leaf, number)
        await self.do("UPDATE governance.stream SET head = %s WHERE id = %s", leaf, stream)

    async def cut(self, size: int) -> None:
        """Take the log back to a size, as a restored backup would be."""
        await self.do(
            "CREATE TEMP TABLE gone AS SELECT entry FROM governance.leaf WHERE idx >= %s", size
        )
        await self.do("DELETE FROM governance.payload WHERE entry IN (SELECT entry FROM gone)")
        await self.do("DELETE FROM governance.leaf WHERE idx >= %s", size)
        await self.do("DELETE FROM governance.entry WHERE id IN (SELECT entry FROM gone)")
        await self.do("DELETE FROM governance.checkpoint WHERE size > %s", size)
        await self.do(
            """UPDATE governance.stream s SET
                seq = coalesce((SELECT max(seq) FROM governance.entry e WHERE e.stream = s.id), 0),
                head = (SELECT leaf FROM governance.entry e WHERE e.stream = s.id
                        ORDER BY seq DESC LIMIT 1)"""
        )
        await self.do("DROP TABLE gone")


async def until_unlocked(dsn: str) -> None:
    """Wait until no session holds the sealer's lock: a killed one's server side takes a moment."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        query = """SELECT count(*) FROM pg_locks
            WHERE locktype = 'advisory' AND classid = 7174 AND objid = 2 AND granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
        while (await (await conn.execute(query)).fetchone()) != (0,):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # nothing in Postgres tells of a lock that is free

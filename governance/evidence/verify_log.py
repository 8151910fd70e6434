"""Verify a whole log in its database: derive everything again from the stored bytes.

Nothing is believed but the keys and the log's name that the caller gives. What the database says
of itself (columns, links, positions, roots) is computed again and compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from governance.db import Connection
from governance.db.queries import load
from governance.evidence.report import Difference, Problem, Report
from governance.evidence.walk import LogWalk
from governance.signing import Verifier

_SQL: Final = load("verifying")


async def verify_log(
    conn: Connection,
    *,
    verifiers: Iterable[Verifier],
    origin: str,
    since: bytes | None = None,
) -> Report:
    """Verify every entry, link, leaf and checkpoint of the log.

    Memory does not grow with the log.

    Args:
        conn: In a REPEATABLE READ transaction (`Database.snapshot`): the log must not grow while
            it is read.
        verifiers: The keys that may have signed checkpoints.
        origin: The log's name.
        since: A note kept outside the database, which must be of this log. Without one, nobody
            can tell that the end was cut off.

    Raises:
        ValueError: The transaction does not keep one snapshot.
    """
    await _refuse_moving_ground(conn)
    walk = LogWalk(conn, origin, tuple(verifiers))
    problem: Problem | None = None
    try:
        # 1. The log is the one that was asked for.
        await walk.check_origin()
        # 2. The bytes of each entry hold: canonical, as its columns say, payload and leaf hashed.
        # 3. Each stream counts from 1 without a gap, and every entry names the one before it.
        # 4. What an entry observed stands in the tree before it.
        async for rows in walk.entries():
            for row in rows:
                walk.check_link(row, walk.check_bytes(row))
            await walk.check_observed()
        await walk.check_streams()
        # 5. The leaves are the entries' hashes, without a gap.
        # 6. Each checkpoint is signed by a given key, over the root of just these leaves.
        async with walk.checkpoints(since) as checkpoints:
            async for leaf in walk.leaves():
                await checkpoints.check(walk.tree)
                walk.check_leaf(leaf)
            await checkpoints.check(walk.tree)
            checkpoints.check_all_reached(walk.tree)
        # 7. What no checkpoint covers yet is not sealed; the report counts it.
    except Difference as found:
        problem = found.problem
    return walk.report(problem)


async def _refuse_moving_ground(conn: Connection) -> None:
    row = await (await conn.execute(_SQL["fetch_isolation"])).fetchone()
    if row not in (("repeatable read",), ("serializable",)):
        raise ValueError("verify_log needs a transaction with one snapshot (REPEATABLE READ)")

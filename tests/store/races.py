"""Begin against revoke, many times, and what the record says of it afterwards."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from dataclasses import dataclass, field

from governance import canonical
from governance.chain.entry import Entry
from governance.db import Database
from governance.executions import Actor, Run, open_run
from governance.steps import Permit
from tests.store import scenario as s

RACERS = 12
_TOGETHER = 250


@dataclass
class Race:
    """One actor who loses the role while two steps begin.

    Attributes:
        acknowledged: When the revocation's commit was acknowledged, by the monotonic clock.
        permits: When each attempt that was let through had started.
        refused: How many were not let through.
    """

    run: Run
    acknowledged: float = 0.0
    permits: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def violations(self) -> int:
        """Attempts let through though they started after the acknowledgement."""
        return sum(started > self.acknowledged for started in self.permits)


async def at_the_start(db: Database, count: int) -> list[Race]:
    """As many actors with the role and executions of theirs."""
    actors = [f"actor-{number}-{uuid.uuid4().hex[:6]}" for number in range(count)]
    async with db.transaction() as conn:
        await conn.execute(
            "INSERT INTO governance.role_grant (realm, actor, role, granted_by) "
            "SELECT %s, unnest(%s::text[]), 'operator', 'ada'",
            [s.REALM, actors],
        )
    batches = [actors[i : i + _TOGETHER] for i in range(0, count, _TOGETHER)]
    return [Race(run) for runs in [await _opened(db, batch) for batch in batches] for run in runs]


async def _opened(db: Database, actors: list[str]) -> list[Run]:
    runs: list[Run] = []
    async with db.transaction() as conn:
        for actor in actors:
            run = await open_run(conn, s.facts(workflow_id=actor), Actor(actor))
            assert isinstance(run, Run)
            runs.append(run)
    return runs


async def run_all(db: Database, races: list[Race], seed: int = 1) -> None:
    """Run them, some at a time."""
    waiting = iter(races)

    async def racer(dice: random.Random) -> None:
        for race in waiting:
            await _run(db, race, dice)

    await asyncio.gather(*(racer(random.Random(seed * 1000 + n)) for n in range(RACERS)))


async def _run(db: Database, race: Race, dice: random.Random) -> None:
    early = dice.random() * 0.008
    first = asyncio.create_task(_begin(db, race, 1, max(0.0, early - 0.004)))
    await _revoke(db, race, max(0.0, 0.004 - early))
    race.acknowledged = time.monotonic()
    await _begin(db, race, 2, 0)
    await first


async def _begin(db: Database, race: Race, n: int, pause: float) -> None:
    if pause:
        await asyncio.sleep(pause)
    asked = s.call(race.run, "notify", n=n)
    started = time.monotonic()
    if isinstance(await s.begin(db, race.run, asked), Permit):
        race.permits.append(started)
    else:
        race.refused += 1


async def _revoke(db: Database, race: Race, pause: float) -> None:
    if pause:
        await asyncio.sleep(pause)
    await s.revoke(db, race.run.actor, "operator")


@dataclass(frozen=True)
class Verdict:
    """What the record says: claims that stand after the revocation, or rest on no role."""

    claims: int
    after_revocation: int
    without_role: int

    @property
    def wrong(self) -> int:
        return self.after_revocation + self.without_role


async def judged(db: Database, *, sealed: bool = True) -> Verdict:
    """Compare each claim with the role entries of its actor.

    Args:
        db: With the record.
        sealed: Compare places in the tree; otherwise the ids of entries.
    """
    place = "l.idx" if sealed else "e.id"
    found = await s.rows(
        db,
        f"SELECT {place}, e.stream, e.seq, e.type, e.body, e.leaf, p.body "
        "FROM governance.entry e JOIN governance.payload p ON p.entry = e.id "
        "LEFT JOIN governance.leaf l ON l.entry = e.id ORDER BY e.id",
    )
    places = {(stream, seq): at for at, stream, seq, *_ in found}
    assert None not in places.values()
    heads = {leaf: (stream, seq, kind) for _, stream, seq, kind, _, leaf, _ in found}
    claims = late = bare = 0
    for at, _, _, kind, body, _, payload in found:
        if kind not in ("step.claimed", "step.taken_over"):
            continue
        claims += 1
        [leaf] = Entry.parse(body).observed
        stream, seq, last = heads[leaf]
        said = canonical.loads(payload)
        assert isinstance(said, dict)
        late += places.get((stream, seq + 1), at + 1) < at
        bare += last != "role.granted" or not said["roles_held"]
    return Verdict(claims, late, bare)

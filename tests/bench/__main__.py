"""`make bench`: every row, printed as a table and kept in bench-results.json."""

from __future__ import annotations

import asyncio
import sys

from governance.db import Database
from governance.db.migrate import migrate
from governance.testing import embedded_postgres
from temporal_integration.testing import dev_server
from tests.bench import decision_to_result, free_steps
from tests.bench.rows import keep, show

DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


async def check_durable(db: Database) -> dict[str, str]:
    """The settings that make a commit durable; a benchmark without them says nothing."""
    async with db.transaction() as conn:
        found = {}
        for name in DURABLE:
            row = await (await conn.execute("SELECT current_setting(%s)", (name,))).fetchone()
            found[name] = row[0] if row else ""
    if any(value != "on" for value in found.values()):
        sys.exit(f"not measured: the database is not durable: {found}")
    return found


async def main() -> None:
    """Measure everything."""
    with embedded_postgres() as postgres:
        async with Database(postgres.dsn) as db:
            conn = await db.connect()
            async with conn:
                await migrate(conn, log_origin="bench.example/governance")
            settings = await check_durable(db)
            async with dev_server() as server:
                rows = [await decision_to_result.measure(postgres.dsn, server.address)]
                rows += await free_steps.measure(postgres.dsn, server.address)
    print(show(rows))
    keep(rows, settings)


if __name__ == "__main__":
    asyncio.run(main())

"""A worker in a process of its own, to be killed or stopped in the middle of a step.

python -m tests.temporal.worker_process ADDRESS DSN QUEUE LEDGER
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from temporal_integration import GovernancePlugin, governed_step
from tests.temporal.contracts import free

CONTRACT = free("PayUnderLimit")


class SlowBank:
    """Writes a line when it pays and answers once the file `go` is beside the ledger."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    @activity.defn
    async def pay(self, what: str) -> str:
        step = governed_step()
        line = {"what": what, "key": step.idempotency_key, "token": step.token}
        with self._ledger.open("a") as file:
            file.write(json.dumps(line | {"pid": os.getpid()}) + "\n")
        try:
            while not self._ledger.with_name("go").exists():  # noqa: ASYNC110 - another's file
                await asyncio.sleep(0.02)
        finally:
            self._ledger.with_name(f"left-{os.getpid()}").touch()
        return f"paid by {os.getpid()}"


def bank_worker(client: Client, queue: str, ledger: Path) -> Worker:
    """A worker for this activity alone, which takes one task and then asks for no other."""
    activities = [SlowBank(ledger).pay]
    return Worker(client, task_queue=queue, activities=activities, max_concurrent_activities=1)


async def main(address: str, dsn: str, queue: str, ledger: str) -> None:
    client = await Client.connect(
        address, plugins=[GovernancePlugin(contracts=[CONTRACT], database_url=dsn)]
    )
    await bank_worker(client, queue, Path(ledger)).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""The sample's worker: an ordinary one, with the plugin given to its client.

    python -m samples.payment.worker

Reads TEMPORAL_ADDRESS (default localhost:7233), GOVERNANCE_DATABASE_URL and BANK_LEDGER (a file).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from governance.errors import GovernanceError, TemporalUnavailable
from samples.payment.activities import Bank
from samples.payment.workflows import PayInvoice
from temporal_integration import GovernancePlugin

CONTRACT = Path(__file__).parent / "contract.toml"
TASK_QUEUE = "payments"


def new_worker(client: Client, bank: Bank) -> Worker:
    """A worker for payments; the plugin comes with the client."""
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[PayInvoice],
        activities=[bank.pay, bank.send_receipt],
    )


async def main() -> None:
    """Run until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    address = os.environ.get("TEMPORAL_ADDRESS", "localhost:7233")
    plugin = GovernancePlugin(contracts=[CONTRACT])
    try:
        client = await Client.connect(address, plugins=[plugin])
    except RuntimeError as error:  # the SDK's, for a server that does not answer
        raise TemporalUnavailable(
            f"No Temporal at {address}.", hint="Start one, or set TEMPORAL_ADDRESS."
        ) from error
    bank = Bank(Path(os.environ.get("BANK_LEDGER", "ledger.jsonl")))
    async with new_worker(client, bank):
        await stop.wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except GovernanceError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        sys.exit(2)

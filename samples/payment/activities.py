"""The activities: a bank that is one file. Each payment is a line, written with its key."""

from __future__ import annotations

import json
import os
from pathlib import Path

from temporalio import activity

from samples.payment.workflows import Payment
from temporal_integration import governed_step


class Bank:
    """A ledger file; a payment with a key it has seen is not made again, as at a real bank."""

    def __init__(self, ledger: Path) -> None:
        """Write to this file."""
        self._ledger = ledger

    @activity.defn
    async def pay(self, payment: Payment) -> str:
        """Pay once per idempotency key, in the name of the person who started the flow."""
        step = governed_step()
        known = {line["key"]: line["reference"] for line in self.lines()}
        if step.idempotency_key in known:
            return known[step.idempotency_key]
        reference = f"P-{len(known) + 1:04d}"
        self._write(
            {
                "key": step.idempotency_key,
                "reference": reference,
                "invoice": payment.invoice,
                "amount": payment.amount,
                "as": step.actor,
            }
        )
        return reference

    @activity.defn
    async def send_receipt(self, payment: Payment, reference: str) -> None:
        """Tell the payee."""
        activity.logger.info("receipt %s for invoice %s", reference, payment.invoice)

    def lines(self) -> list[dict[str, str]]:
        """Every payment made, in order."""
        if not self._ledger.exists():
            return []
        return [json.loads(line) for line in self._ledger.read_text().splitlines()]

    def _write(self, line: dict[str, str]) -> None:
        with self._ledger.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

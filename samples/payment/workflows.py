"""A payment workflow as any team writes it: no word of governance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow


@dataclass
class Payment:
    """What is to be paid. `amount` is a decimal number as text."""

    invoice: str
    payee: str
    amount: str
    currency: str


@workflow.defn
class PayInvoice:
    """Pay an invoice, then send the receipt."""

    @workflow.run
    async def run(self, payment: Payment) -> str:
        """Return the bank's reference."""
        reference: str = await workflow.execute_activity(
            "pay", payment, result_type=str, start_to_close_timeout=timedelta(seconds=30)
        )
        await workflow.execute_activity(
            "send_receipt",
            args=[payment, reference],
            start_to_close_timeout=timedelta(seconds=30),
        )
        return reference

"""A payment that waits, and the people around it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

from governance import approvals
from governance.client import GovernanceClient
from governance.contracts import from_toml
from governance.executions import Actor, Run, RunFacts, open_run
from governance.rules.template import render_title, shown_values

T = TypeVar("T")

REALM = "payments"
DIGEST = "ab" * 32
CONTRACT = """
flow = "PayInvoice"
version = "2026-11"
resume = ["operator"]

[approvals.finance]
roles = ["finance-approver", "cfo"]
decide_by = "4d"
execute_by = "12h"
title = "Pay {/0/amount} to {/0/payee}"
show = ["/0/payee", "/0/amount"]
links = { Invoice = "https://erp.example/{/0/payee}" }
instructions = "Compare the payee with the register."

[[steps]]
activity = "pay"
approval = "finance"
"""


def with_client(url: str, work: Callable[[GovernanceClient], Awaitable[T]]) -> T:
    """Run `work` with a client of the tests' realm."""

    async def run() -> T:
        async with GovernanceClient(url, REALM) as client:
            return await work(client)

    return asyncio.run(run())


async def ask(
    client: GovernanceClient, workflow_id: str = "pay-1", payee: str = "ACME", actor: str = "ana"
) -> uuid.UUID:
    """A payment of `actor` that waits for its approval; the approval."""
    facts = RunFacts(client.realm, workflow_id, uuid.uuid4().hex, "PayInvoice")
    rule = from_toml(CONTRACT).approvals["finance"]
    shown = shown_values(rule, [{"payee": payee, "amount": "4200.00"}])
    async with client.database.transaction() as conn:
        run = await open_run(conn, facts, Actor(actor))
        assert isinstance(run, Run), run
        wanted = approvals.Request(
            key=uuid.uuid4().bytes * 2,
            step="pay",
            approval="finance",
            n=1,
            round=1,
            input_digest=bytes.fromhex(DIGEST),
            binds_digest=bytes(32),
            title=render_title(rule, shown, "pay"),
            shown=shown,
        )
        state, approval = await approvals.request(conn, run, wanted)
    assert (state, approval is None) == ("pending", False)
    assert approval is not None
    return approval


async def prepare(client: GovernanceClient) -> None:
    """Contract and people: ana starts payments, bruno and carla decide, dora may do neither."""
    contract = from_toml(CONTRACT)
    await client.register_contract(contract, "adam")
    await client.activate_contract(contract.digest, "eve")
    await client.grant_role("ana", "operator", "adam")
    await client.grant_role("ana", "finance-approver", "adam")
    await client.grant_role("bruno", "finance-approver", "adam", "team lead")
    await client.grant_role("carla", "cfo", "adam")

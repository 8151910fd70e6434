"""When a worker starts, and when it does not."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from governance.errors import ConfigurationError, ContractUnknown, DatabaseUnavailable
from temporal_integration import GovernancePlugin
from tests.proxy import Proxy
from tests.temporal.contracts import contract
from tests.temporal.flows.pay import PayOnce
from tests.temporal.ledger import Ledger

CONTRACT = contract("PayOnce")


def a_worker(client: Client) -> Worker:
    return Worker(client, task_queue="nobody", workflows=[PayOnce], activities=Ledger().activities)


async def test_not_with_an_unregistered_contract(dsn: str, temporal_address: str) -> None:
    plugin = GovernancePlugin(contracts=[CONTRACT], database_url=dsn)
    client = await Client.connect(temporal_address, plugins=[plugin])
    with pytest.raises(ContractUnknown, match="contracts register"):
        await a_worker(client).run()


async def test_not_with_an_unregistered_contract_in_a_block(
    dsn: str, temporal_address: str
) -> None:
    """The block is left at once, with the reason."""
    plugin = GovernancePlugin(contracts=[CONTRACT], database_url=dsn)
    client = await Client.connect(temporal_address, plugins=[plugin])
    with pytest.raises(ContractUnknown, match="contracts register"):
        async with a_worker(client):
            await asyncio.Event().wait()


async def test_not_without_a_database_url(
    temporal_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOVERNANCE_DATABASE_URL", raising=False)
    client = await Client.connect(
        temporal_address, plugins=[GovernancePlugin(contracts=[CONTRACT])]
    )
    with pytest.raises(ConfigurationError, match="GOVERNANCE_DATABASE_URL"):
        a_worker(client)


async def test_not_while_the_database_is_away(temporal_address: str, proxy: Proxy) -> None:
    proxy.refuse()
    plugin = GovernancePlugin(contracts=[CONTRACT], database_url=proxy.dsn)
    client = await Client.connect(temporal_address, plugins=[plugin])
    with pytest.raises(DatabaseUnavailable):
        await a_worker(client).run()

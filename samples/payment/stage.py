"""Servers, people and helpers for the demo."""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle

from governance.client import GovernanceClient
from governance.contracts import load_toml
from governance.db.migrate import migrate
from governance.errors import ConfigurationError, DatabaseUnavailable
from governance.testing import embedded_postgres
from samples.payment.activities import Bank
from samples.payment.worker import CONTRACT, TASK_QUEUE, new_worker
from samples.payment.workflows import PayInvoice, Payment
from temporal_integration import GovernancePlugin, acting_as
from temporal_integration.testing import dev_server

T = TypeVar("T")

LOG = "demo.example/governance"
OPERATOR, APPROVER, OUTSIDER = "olga", "felix", "victor"
ADMINS = ("ada", "bert")


class NotObserved(Exception):
    """Something the demo promises did not happen."""


@dataclass
class Stage:
    """Everything the acts play on."""

    governance: GovernanceClient
    temporal: Client
    bank: Bank
    database_url: str
    address: str
    folder: Path

    async def start_payment(self, amount: str, invoice: str) -> WorkflowHandle[Any, str]:
        """The operator starts a payment."""
        payment = Payment(invoice=invoice, payee="ACME Ltd", amount=amount, currency="EUR")
        with acting_as(OPERATOR):
            return await self.temporal.start_workflow(
                PayInvoice.run,
                payment,
                id=f"payment-{invoice}-{uuid.uuid4().hex[:6]}",
                task_queue=TASK_QUEUE,
            )

    async def waiting_approval(self, workflow_id: str) -> uuid.UUID:
        """The approval this workflow waits for."""

        async def look() -> uuid.UUID | None:
            rows = await self.governance.list_approvals()
            return next((r["id"] for r in rows if r["workflow_id"] == workflow_id), None)

        return await until(look, f"{workflow_id} asks for an approval")

    async def entries(self, workflow_id: str) -> list[dict[str, Any]]:
        """All entries of the workflow's execution."""
        [execution] = await self.governance.executions(workflow_id)
        return await self.governance.timeline(execution["id"])

    async def until_entry(self, workflow_id: str, kind: str, count: int = 1) -> None:
        """Wait until the chain has so many entries of a kind."""

        async def look() -> bool:
            found = [e for e in await self.entries(workflow_id) if e["type"] == kind]
            return len(found) >= count

        await until(look, f"{kind} of {workflow_id} is on the chain")

    async def reset(self, workflow_id: str) -> WorkflowHandle[Any, str]:
        """Reset the workflow to its first workflow task, before the payment."""
        handle = self.temporal.get_workflow_handle(workflow_id)
        history = await handle.fetch_history()
        first = next(
            e.event_id
            for e in history.events
            if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        )
        answer = await self.temporal.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=self.temporal.namespace,
                workflow_execution=WorkflowExecution(workflow_id=workflow_id),
                reason="demo",
                request_id=uuid.uuid4().hex,
                workflow_task_finish_event_id=first,
            )
        )
        return self.temporal.get_workflow_handle(workflow_id, run_id=answer.run_id)


async def until(look: Callable[[], Awaitable[T | None]], what: str, seconds: float = 30) -> T:
    """Look until there is something.

    Raises:
        NotObserved: There is nothing after so many seconds.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    while not (found := await look()):
        if asyncio.get_running_loop().time() > deadline:
            raise NotObserved(f"waited {seconds:.0f} s in vain until {what}")
        await asyncio.sleep(0.05)
    return found


@asynccontextmanager
async def stage(say: Callable[[str], None]) -> AsyncGenerator[Stage]:
    """Start what is not there already, set the people and the contract up, run a worker."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="governance-demo-")))
        url = os.environ.get("GOVERNANCE_DATABASE_URL")
        say("Postgres: " + ("yours" if url else "an embedded one starts"))
        url = await own_database(url) if url else stack.enter_context(embedded_postgres()).dsn
        given = os.environ.get("TEMPORAL_ADDRESS")
        say("Temporal: " + ("yours" if given else "a dev server starts"))
        async with dev_server() as server, GovernanceClient(url) as governance:
            say("migrating, registering the contract, granting roles")
            await _prepare(governance)
            plugin = GovernancePlugin(contracts=[CONTRACT], database_url=url)
            temporal = await Client.connect(server.address, plugins=[plugin])
            bank = Bank(folder / "ledger.jsonl")
            async with new_worker(temporal, bank):
                say(f'a worker with the plugin runs on task queue "{TASK_QUEUE}"')
                yield Stage(governance, temporal, bank, url, server.address, folder)


async def own_database(url: str) -> str:
    """Make a database for the demo on the user's server: theirs is left alone.

    Raises:
        ConfigurationError: The login may not.
    """
    name = f"governance_demo_{uuid.uuid4().hex[:8]}"
    try:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
            await conn.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            "GOVERNANCE_DATABASE_URL names no database that can be reached.",
            hint="Unset it to let the demo start its own.",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            "The login in GOVERNANCE_DATABASE_URL may not create a database for the demo.",
            hint="Use one that may, or unset it to let the demo start its own.",
        ) from error
    return make_conninfo(url, dbname=name)


async def _prepare(governance: GovernanceClient) -> None:
    conn = await governance.database.connect()
    async with conn:
        await migrate(conn, log_origin=LOG)
    contract = load_toml(CONTRACT)
    await governance.register_contract(contract, ADMINS[0])
    await governance.activate_contract(contract.digest, ADMINS[1])
    for person, role in (
        (OPERATOR, "operator"),
        (OPERATOR, "finance-approver"),
        (APPROVER, "finance-approver"),
        (OUTSIDER, "operator"),
    ):
        await governance.grant_role(person, role, ADMINS[0], "demo")

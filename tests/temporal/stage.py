"""Plays governed flows on real servers: people, their decisions, and what is on record."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from governance import administration, approvals, decisions, executions, turns
from governance.db import Connection, Database
from governance.db.statements import Row
from governance.decisions import Decider
from governance.errors import DecisionRefused
from governance.names import ApprovalState, ExecutionState, Verdict
from temporal_integration import GovernancePlugin, acting_as
from tests.temporal.ledger import Ledger
from tests.temporal.server import reset_request, run_id_of

T = TypeVar("T")

OPERATOR, APPROVER, STRANGER = "olga", "felix", "vera"
ADMIN = "ada"
WITHIN = 15.0
Handle = WorkflowHandle[Any, Any]
SIGNALS = ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL


class Entry(NamedTuple):
    """One entry of an execution's timeline."""

    type: str
    payload: dict[str, Any]


@dataclass
class Stage:
    """One worker of one client on one database."""

    db: Database
    client: Client
    queue: str
    plugin: GovernancePlugin
    realm: str = "default"
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """One transaction of a service."""
        return await self.db.run(lambda conn: work(conn, *args, **options))

    async def read(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """One reading."""
        async with self.db.reading() as conn:
            return await work(conn, *args, **options)

    async def start(
        self, flow: Any, *args: Any, actor: str | None = OPERATOR, **options: Any
    ) -> Handle:
        """Start a workflow for somebody."""
        options.setdefault("id", f"wf-{uuid.uuid4().hex[:12]}")
        options.setdefault("task_queue", self.queue)
        if actor is None:
            return await self.client.start_workflow(flow, args=args, **options)
        with acting_as(actor):
            return await self.client.start_workflow(flow, args=args, **options)

    # What people do.

    async def pending(self, count: int = 1) -> list[Row]:
        """The approvals that wait, oldest first, once there are that many."""

        async def look() -> list[Row] | None:
            found = await self.read(approvals.list_approvals, self.realm)
            return found if len(found) >= count else None

        return await until(look)

    async def decide(
        self, approval: Row, verdict: Verdict, by: str = APPROVER, reason: str = ""
    ) -> DecisionRefused | None:
        """Decide as a person."""
        return await self.run(
            decisions.decide, self.realm, approval["id"], verdict, Decider(by), reason
        )

    async def approve(self, count: int = 1) -> list[Row]:
        """Wait for that many approvals and approve them all."""
        waiting = await self.pending(count)
        for one in waiting:
            assert await self.decide(one, Verdict.APPROVE) is None
        return waiting

    async def reject(self, count: int = 1) -> None:
        """Wait for that many approvals and reject them all."""
        for one in await self.pending(count):
            assert await self.decide(one, Verdict.REJECT, reason="no") is None

    async def revoke(self, actor: str = OPERATOR, role: str = "operator") -> None:
        """Take a role away."""
        await self.run(administration.revoke_role, self.realm, actor, role, ADMIN)

    async def grant(self, actor: str = OPERATOR, role: str = "operator") -> None:
        """Give a role."""
        await self.run(administration.grant_role, self.realm, actor, role, ADMIN)

    async def paid(self, count: int) -> None:
        """Wait until that many payments were made."""

        async def look() -> bool:
            return len(self.ledger.paid) >= count

        await until(look)

    # What is on record.

    async def executions(self, handle: Handle) -> list[Row]:
        """The executions of a workflow id, oldest first."""
        found = await self.read(executions.find_executions, self.realm, handle.id)
        return found[::-1]

    async def execution(self, handle: Handle) -> Row:
        """The only execution of a workflow id."""
        [only] = await self.executions(handle)
        return only

    async def ended(self, handle: Handle) -> str:
        """How the only execution of a workflow id ended, once the server's word is on record."""

        async def look() -> str | None:
            state = str((await self.execution(handle))["state"])
            return None if state == ExecutionState.OPEN else state

        return await until(look)

    async def timeline(self, handle: Handle) -> list[Entry]:
        """The entries of the only execution of a workflow id."""
        only = await self.execution(handle)
        return await self.entries(only["id"])

    async def entries(self, execution: uuid.UUID) -> list[Entry]:
        """The entries of an execution."""
        rows = await self.read(executions.fetch_timeline, execution)
        return [Entry(row["type"], json.loads(row["payload"])) for row in rows]

    async def types(self, handle: Handle) -> list[str]:
        """The entry types of the only execution of a workflow id."""
        return [entry.type for entry in await self.timeline(handle)]

    async def turns(self, handle: Handle) -> list[turns.Turn]:
        """The turns of the only execution of a workflow id."""
        return await self.read(turns.list_turns, (await self.execution(handle))["id"])

    async def approvals(self, state: ApprovalState | None = None) -> list[Row]:
        """All approvals, in one state if one is given."""
        return await self.read(approvals.list_approvals, self.realm, state=state)

    async def rows(self, query: Any, *params: Any) -> list[tuple[Any, ...]]:
        """What a superuser sees."""

        async def fetch(conn: Connection) -> list[tuple[Any, ...]]:
            return await (await conn.execute(query, params)).fetchall()

        return await self.read(fetch)

    async def change(self, statement: Any) -> None:
        """What a superuser does."""

        async def execute(conn: Connection) -> None:
            await conn.execute(statement)

        await self.run(execute)

    # What the server has.

    async def events(self, handle: Handle) -> list[HistoryEvent]:
        """The history of a run: the one that was started, where the handle names none."""
        run = self.client.get_workflow_handle(handle.id, run_id=run_id_of(handle))
        return [event async for event in run.fetch_history_events()]

    async def event_ids(self, handle: Handle, kind: EventType.ValueType) -> list[int]:
        """The ids of the events of one kind."""
        return [e.event_id for e in await self.events(handle) if e.event_type == kind]

    async def tasks(self, handle: Handle) -> list[int]:
        """Where a run can be reset to: its completed workflow tasks."""
        return await self.event_ids(handle, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)

    async def reset(
        self,
        handle: Handle,
        event: int | None = None,
        *,
        exclude: Collection[ResetReapplyExcludeType.ValueType] = (),
    ) -> Handle:
        """Reset a run to a completed workflow task, the first by default; returns the new run."""
        if event is None:
            event = (await until(lambda: self.tasks(handle)))[0]
        request = reset_request(handle, event, exclude)
        answer = await self.client.workflow_service.reset_workflow_execution(request)
        return self.client.get_workflow_handle(handle.id, run_id=answer.run_id)


async def result(handle: Handle, within: float = WITHIN) -> Any:
    """The workflow's result."""
    return await asyncio.wait_for(handle.result(), within)


async def failure(handle: Handle, within: float = WITHIN) -> BaseException:
    """What the workflow failed with."""
    try:
        value = await result(handle, within)
    except WorkflowFailureError as error:
        return error.cause
    raise AssertionError(f"the workflow returned {value!r}")


async def until(
    look: Callable[[], Awaitable[T | None]], within: float = WITHIN, every: float = 0.02
) -> T:
    """What `look` finds, as soon as it finds something true."""
    deadline = time.monotonic() + within
    while True:
        found = await look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {within} s; last seen: {found!r}")
        await asyncio.sleep(every)

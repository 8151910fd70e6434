"""Sends wake-ups from the database to workflows, from inside the worker.

Many workers may do it. One of them leads and sends new wake-ups as it is told of them; all of them
look every few seconds and lease what is due. No transaction is open during a call.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final

from psycopg import OperationalError
from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.converter import PayloadConverter
from temporalio.service import RPCError, RPCStatusCode

from governance import approvals, outbox
from governance.db.statements import pipelined
from governance.errors import Unavailable
from temporal_integration._endings import Endings
from temporal_integration._names import WAKE_SIGNAL
from temporal_integration._runtime import Runtime

logger = logging.getLogger(__name__)

_BATCH: Final = 50
_LOOK_EVERY: Final = 5.0
_SENT_BY: Final = 0.1


class Dispatcher:
    """Delivers what is due, when it is told or when it looks."""

    def __init__(self, runtime: Runtime, endings: Endings) -> None:
        """Keep the runtime; nothing is opened."""
        self._runtime = runtime
        self._endings = endings
        self._look_again = asyncio.Event()
        self._delivering: set[asyncio.Task[Any]] = set()

    async def run_forever(self) -> None:
        """Listen and deliver until cancelled; a database or server that is away is tried again."""
        listening = asyncio.create_task(self._listen_forever())
        try:
            while True:
                self._look_again.clear()
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await self._look_again.wait()
        finally:
            tasks = [listening, *self._delivering]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _told(self, payload: str, leads: bool) -> None:
        """Send a new wake-up at once if this dispatcher leads, and lease its row meanwhile.

        A crash between the two costs nothing: the row is due, and the second signal of the same try
        has the same request id.
        """
        wake = outbox.told(payload, self._runtime.realm)
        if wake is True:
            self._look_again.set()
        elif isinstance(wake, outbox.WakeUp) and leads:
            for work in (self._send(wake), self._lease_soon(wake.row)):
                task = asyncio.create_task(work)
                self._delivering.add(task)
                task.add_done_callback(self._delivering.discard)

    async def _look(self) -> None:
        """Deliver all that is due, and tell workflows whose approval nobody decided in time."""
        realm, database = self._runtime.realm, self._runtime.database
        try:
            async with database.reading() as conn:
                due = await outbox.find_due(conn, realm, _BATCH)
                overdue = await approvals.find_overdue(conn, realm)
            for approval, execution in overdue:
                async with database.transaction() as conn:
                    await approvals.expire(conn, realm, approval, execution)
        except Unavailable as error:
            logger.warning("wake-ups wait: %s", error)
            return
        await asyncio.gather(*(self._deliver(row) for row in due))
        if len(due) == _BATCH:
            self._look_again.set()

    async def _deliver(self, row: int) -> None:
        wake = await self._lease(row)
        if wake is not None:
            await self._send(wake)

    async def _lease_soon(self, row: int) -> None:
        await asyncio.sleep(_SENT_BY)  # by then it is often used already, and nothing is to do
        await self._lease(row)

    async def _lease(self, row: int) -> outbox.WakeUp | None:
        realm = self._runtime.realm
        try:
            return await self._runtime.database.alone(lambda conn: outbox.lease(conn, realm, row))
        except Unavailable as error:
            logger.warning("a wake-up waits: %s", error)
            return None

    async def _send(self, wake: outbox.WakeUp) -> None:
        """Signal the workflow, without a run id: it reaches whichever run goes on.

        The request id makes Temporal drop a duplicate of the same try, not of a later one.
        """
        client = self._runtime.client
        arguments = PayloadConverter.default.to_payloads([wake.topic, wake.hint])
        if client.data_converter.payload_codec is not None:
            arguments = await client.data_converter.payload_codec.encode(arguments)
        request = SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=wake.workflow_id),
            signal_name=WAKE_SIGNAL,
            input=Payloads(payloads=arguments),
            identity="governance",
            request_id=f"governance-{wake.row}-{wake.tries}",
        )
        try:
            await client.workflow_service.signal_workflow_execution(request)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                # Whatever was asked is asked no more, once the server says how it ended.
                await self._endings.look_at_execution(wake.execution, wake.workflow_id)
            else:
                logger.warning("workflow %s not reached: %s", wake.workflow_id, error.message)

    async def _listen_forever(self) -> None:
        while True:
            try:
                await self._listen()
            except (Unavailable, OperationalError) as error:
                logger.warning("not told of wake-ups, looking every few seconds: %s", error)
            await asyncio.sleep(_LOOK_EVERY)

    async def _listen(self) -> None:
        conn = await self._runtime.database.connect()
        async with conn:
            await pipelined(conn, outbox.listen())
            self._look_again.set()  # for what came before we listened
            leads = False
            while True:
                leads = leads or await outbox.try_to_lead(conn, self._runtime.realm)
                async for told in conn.notifies(timeout=_LOOK_EVERY):
                    self._told(told.payload, leads)

"""Sends wake-ups from the database to workflows, from inside the worker.

Many workers may do it: each row is leased by one. No transaction is open during a call.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from psycopg import OperationalError
from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.converter import PayloadConverter
from temporalio.service import RPCError, RPCStatusCode

from governance import executions, outbox
from governance.db.statements import pipelined
from governance.errors import Unavailable
from temporal_integration._names import WAKE_SIGNAL
from temporal_integration._runtime import Runtime

logger = logging.getLogger(__name__)

_BATCH: Final = 50
_LONGEST_PAUSE: Final = 5.0


class Dispatcher:
    """Delivers what is due, when it is told or when it looks."""

    def __init__(self, runtime: Runtime) -> None:
        """Keep the runtime; nothing is opened."""
        self._runtime = runtime
        self._told = asyncio.Event()

    async def run_forever(self) -> None:
        """Listen and deliver until cancelled; a database or server that is away is tried again."""
        listening = asyncio.create_task(self._listen_forever())
        try:
            while True:
                pause = _LONGEST_PAUSE
                try:
                    pause = await self._deliver_due()
                except Unavailable as error:
                    logger.warning("wake-ups wait: %s", error)
                try:
                    await asyncio.wait_for(self._told.wait(), pause)
                except TimeoutError:
                    continue
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    async def _deliver_due(self) -> float:
        """Deliver everything due now; return after how many seconds to look again."""
        self._told.clear()
        realm = self._runtime.realm
        while True:
            async with self._runtime.database.transaction() as conn:
                due = await outbox.lease_due(conn, realm, _BATCH)
            if not due:
                break
            await asyncio.gather(*(self._send(wake) for wake in due))
        async with self._runtime.database.reading() as conn:
            seconds = await outbox.seconds_until_due(conn, realm)
        return _LONGEST_PAUSE if seconds is None else min(max(seconds, 0.05), _LONGEST_PAUSE)

    async def _send(self, wake: outbox.WakeUp) -> None:
        """Signal the workflow, without a run id: it reaches whichever run goes on.

        The request id makes Temporal drop a duplicate of the same try, not of a later one.
        """
        client = self._runtime.client
        topic = PayloadConverter.default.to_payloads([wake.topic])
        if client.data_converter.payload_codec is not None:
            topic = await client.data_converter.payload_codec.encode(topic)
        request = SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=wake.workflow_id),
            signal_name=WAKE_SIGNAL,
            input=Payloads(payloads=topic),
            identity="governance",
            request_id=f"governance-{wake.id}-{wake.tries}",
        )
        try:
            await client.workflow_service.signal_workflow_execution(request)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                await self._workflow_gone(wake)
            else:
                logger.warning("workflow %s not reached: %s", wake.workflow_id, error.message)

    async def _workflow_gone(self, wake: outbox.WakeUp) -> None:
        """No run is open: whatever was asked is asked no more."""
        async with self._runtime.database.transaction() as conn:
            await executions.end_unseen(conn, wake.execution)

    async def _listen_forever(self) -> None:
        while True:
            try:
                await self._listen()
            except (Unavailable, OperationalError) as error:
                logger.warning("not told of wake-ups, looking every few seconds: %s", error)
            await asyncio.sleep(_LONGEST_PAUSE)

    async def _listen(self) -> None:
        conn = await self._runtime.database.connect()
        async with conn:
            await pipelined(conn, outbox.listen())
            self._told.set()
            async for told in conn.notifies():
                if told.payload == self._runtime.realm:
                    self._told.set()

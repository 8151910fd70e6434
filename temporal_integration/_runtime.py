"""What one worker process shares: the database, its realm, what it knows of runs.

Nothing here is opened before it is used: a Replayer needs no database.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from governance.db import Database
from governance.errors import ExecutionUnknown, NotGoverned, StepRefused, TemporalUnavailable
from governance.executions import Actor, Run, RunFacts, find_run, open_run
from temporal_integration._headers import read_continued

_LONGEST_LINEAGE: Final = 50
_CACHED_RUNS: Final = 10_000


class Runtime:
    """The database and the server, as one worker sees them."""

    def __init__(self, database: Database, realm: str | None) -> None:
        """Keep the settings; nothing is opened."""
        self.database = database
        self._realm = realm
        self._client: Client | None = None
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def attach(self, client: Client) -> None:
        """Use this client, of the worker that runs, to ask the server."""
        self._client = client

    @property
    def client(self) -> Client:
        """The worker's client."""
        assert self._client is not None, "used inside a running worker only"
        return self._client

    @property
    def realm(self) -> str:
        """The trust domain; the Temporal namespace unless the plugin was told another."""
        return self._realm or self.client.namespace

    async def find_run(self, run_id: str) -> Run | None:
        """The run with its execution, from memory or the database. Only `state` may be old."""
        if run_id in self._runs:
            self._runs.move_to_end(run_id)
            return self._runs[run_id]
        async with self.database.reading() as conn:
            run = await find_run(conn, self.realm, run_id)
        return run if run is None else self._keep(run)

    async def resolve(self, workflow_id: str, run_id: str) -> Run:
        """The run with its execution; a run not known yet is resolved by what the server says.

        Raises:
            NotGoverned: It belongs to no execution: it began without us.
            TemporalUnavailable: The server did not answer.
        """
        run = await self.find_run(run_id)
        if run is not None:
            return run
        facts = await self.facts(workflow_id, run_id)
        if facts.predecessor() is None:
            raise NotGoverned(
                f'Run {run_id} of workflow "{workflow_id}" belongs to no governed execution.',
                hint="It began before its flow was governed, or on a worker without the plugin.",
            )
        opened = await self.open(facts, None)
        if not isinstance(opened, StepRefused):
            return opened
        raise opened

    async def open(self, facts: RunFacts, actor: Actor | None) -> Run | StepRefused:
        """Open a run; runs before it that are not known yet are opened first."""
        lineage = [facts]
        while True:
            opened = await self._open_one(lineage[-1], actor)
            if isinstance(opened, StepRefused):
                return opened
            if opened is None:
                before = lineage[-1].predecessor()
                if before is None or len(lineage) >= _LONGEST_LINEAGE:
                    raise ExecutionUnknown(f"The runs before {facts.run_id} are not known.")
                lineage.append(await self.facts(facts.workflow_id, before[0]))
                continue
            lineage.pop()
            if not lineage:
                return self._keep(opened)

    async def _open_one(self, facts: RunFacts, actor: Actor | None) -> Run | StepRefused | None:
        """Open one run; None if the run before it is not known yet."""
        try:
            return await self.database.run(lambda conn: open_run(conn, facts, actor))
        except ExecutionUnknown:
            return None

    async def facts(self, workflow_id: str, run_id: str) -> RunFacts:
        """What the server says of a run: its start event.

        Raises:
            TemporalUnavailable: The server did not answer, or does not know the run.
        """
        started = await self._start_event(workflow_id, run_id)
        continued = started.continued_execution_run_id or None
        return RunFacts(
            realm=self.realm,
            workflow_id=workflow_id,
            run_id=run_id,
            flow=started.workflow_type.name,
            attempt=max(1, started.attempt),
            original_run_id=started.original_execution_run_id or None,
            continued_run_id=continued,
            continued_by_code=continued is not None
            and read_continued(started.header.fields) == continued,
        )

    async def _start_event(
        self, workflow_id: str, run_id: str
    ) -> WorkflowExecutionStartedEventAttributes:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=self.client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
            maximum_page_size=1,
        )
        try:
            answer = await self.client.workflow_service.get_workflow_execution_history(request)
        except RPCError as error:
            raise TemporalUnavailable(
                f'The server says nothing of run {run_id} of workflow "{workflow_id}".'
            ) from error
        events = answer.history.events
        if not events or events[0].event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            raise TemporalUnavailable(f"Run {run_id} has no start event.")
        return events[0].workflow_execution_started_event_attributes

    def _keep(self, run: Run) -> Run:
        self._runs[run.run_id] = run
        if len(self._runs) > _CACHED_RUNS:
            self._runs.popitem(last=False)
        return run

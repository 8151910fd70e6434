"""The plugin's local activities: what workflow code asks the database.

Each takes the ids it acts on from `activity.info()`, never from its argument, and refuses to run
as anything but a local activity: a stranger's workflow and any client could call it otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import activity

from governance import approvals, resume
from governance.errors import ConfigurationError, NotGoverned, StepRefused, Unavailable
from governance.executions import Actor, Run, RunFacts
from governance.ids import parse_id
from governance.names import ExecutionState
from governance.rules.step_key import step_key
from temporal_integration import _failures
from temporal_integration._ask import UNAVAILABLE
from temporal_integration._names import OPEN, REQUEST, RESUME, WITHDRAW
from temporal_integration._runtime import Runtime

Answer = dict[str, Any]


class LocalActivities:
    """Bound to one worker's runtime; `all` are registered with the worker."""

    def __init__(self, runtime: Runtime) -> None:
        """Keep the runtime."""
        self._runtime = runtime

    @property
    def all(self) -> list[Callable[..., Any]]:
        """The activities to register."""
        return [self.open, self.request, self.resume, self.withdraw]

    @activity.defn(name=OPEN)
    async def open(self, text: str) -> str:
        """Make the run known; pin contract and actor if it opens an execution."""
        return await _answer(self._open, text)

    @activity.defn(name=REQUEST)
    async def request(self, text: str) -> str:
        """Ask for an approval, or say what became of it."""
        return await _answer(self._request, text)

    @activity.defn(name=RESUME)
    async def resume(self, text: str) -> str:
        """After a wake-up: may the run go on?"""
        return await _answer(self._resume, text)

    @activity.defn(name=WITHDRAW)
    async def withdraw(self, text: str) -> str:
        """Stop asking for a step that was cancelled."""
        return await _answer(self._withdraw, text)

    async def _open(self, asked: Answer) -> Answer:
        info = activity.info()
        workflow_id, run_id = _ids()
        facts = RunFacts(
            realm=self._runtime.realm,
            workflow_id=workflow_id,
            run_id=run_id,
            flow=info.workflow_type or "",
            attempt=asked["attempt"],
            original_run_id=asked["original_run_id"],
            continued_run_id=asked["continued_run_id"],
            continued_by_code=asked["continued_by"] == asked["continued_run_id"],
        )
        if facts.predecessor() is not None:
            # Another run's execution is inherited on the server's word only.
            facts = await self._runtime.facts(workflow_id, run_id)
        actor = None if asked["actor"] is None else Actor(asked["actor"])
        run = await self._runtime.open(facts, actor)
        if isinstance(run, StepRefused):
            return {"status": "refused", "code": run.code, "message": str(run)}
        if run.state is ExecutionState.DENIED:
            return {"status": "denied"}
        return {
            "status": "opened",
            "execution": run.execution.hex,
            "generation": run.generation,
            "contract": run.contract.canonical().decode(),
        }

    async def _request(self, asked: Answer) -> Answer:
        run = await self._run()
        bound = bytes.fromhex(asked["binds_digest"])
        request = approvals.Request(
            key=step_key(run.execution, run.generation, asked["step"], bound, asked["n"]),
            step=asked["step"],
            approval=asked["approval"],
            n=asked["n"],
            round=asked["round"],
            input_digest=bytes.fromhex(asked["input_digest"]),
            binds_digest=bound,
            title=asked["title"],
            shown=asked["shown"],
        )
        status, approval = await self._runtime.database.run(
            lambda conn: approvals.request(conn, run, request)
        )
        return {"status": status, "approval": approval.hex if approval else ""}

    async def _resume(self, asked: Answer) -> Answer:
        run, approval = await self._run(), parse_id(asked["approval"])
        status = await self._runtime.database.run(lambda conn: resume.resume(conn, run, approval))
        return {"status": status, "approval": asked["approval"]}

    async def _withdraw(self, asked: Answer) -> Answer:
        run = await self._run()
        await self._runtime.database.run(
            lambda conn: approvals.withdraw_step(conn, run, asked["step"], asked["n"], asked["why"])
        )
        return {"status": "withdrawn"}

    async def _run(self) -> Run:
        return await self._runtime.resolve(*_ids())


def _ids() -> tuple[str, str]:
    info = activity.info()
    assert info.workflow_id is not None
    assert info.workflow_run_id is not None
    return info.workflow_id, info.workflow_run_id


async def _answer(work: Callable[[Answer], Awaitable[Answer]], text: str) -> str:
    """Do the work and give its answer as JSON; say `unavailable` fast when a server is away."""
    if not activity.info().is_local:
        refused = NotGoverned(
            f"{activity.info().activity_type} is the plugin's own: nothing else may call it."
        )
        raise _failures.application_error(refused)
    try:
        answer = await work(json.loads(text))
    except Unavailable as error:
        activity.logger.warning("%s", error)
        answer = {"status": UNAVAILABLE}
    except (StepRefused, ConfigurationError) as error:
        raise _failures.application_error(error) from error
    return json.dumps(answer, sort_keys=True)

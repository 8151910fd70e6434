"""The plugin: one object given to `Client.connect(plugins=[…])`."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client, ClientConfig
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ActivityInboundInterceptor,
    Interceptor,
    ReplayerConfig,
    Worker,
    WorkerConfig,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from governance.administration import find_contract
from governance.contracts import FlowContract, load_toml
from governance.db import Database
from governance.errors import ConfigurationError, ContractUnknown
from temporal_integration._border import Border, BorderInterceptor
from temporal_integration._capture import with_capture
from temporal_integration._claims import Claims
from temporal_integration._client import GovernedClient
from temporal_integration._dispatch import Dispatcher
from temporal_integration._endings import Endings
from temporal_integration._inbound import GovernedInbound
from temporal_integration._local_activities import LocalActivities
from temporal_integration._names import PLUGIN
from temporal_integration._outcomes import Outcomes
from temporal_integration._runtime import Runtime

DATABASE_VARIABLE: Final = "GOVERNANCE_DATABASE_URL"
_CANCEL_AGAIN: Final = 0.5


class GovernancePlugin(SimplePlugin):
    """Governs the flows that its contracts name, in every worker of the client it is given to.

    Give it once, to `Client.connect(plugins=[…])`; workers made from that client inherit it. A
    `Replayer(plugins=[…])` takes it too and needs no database. Workflows and activities that no
    contract names are not touched.

    Args:
        contracts: TOML files or `FlowContract` objects. Each must be registered in the database
            before a worker starts; the database says which version new executions take.
        database_url: libpq connection string or URI; by default `GOVERNANCE_DATABASE_URL`.
        realm: The trust domain; by default the client's namespace.
        max_connections: Connections of one worker process at most; one more listens.
        password: Called for each new connection, for short-lived tokens.

    Raises:
        ContractInvalid: A contract file cannot be read or is not valid.
    """

    def __init__(
        self,
        *,
        contracts: Sequence[FlowContract | str | Path],
        database_url: str | None = None,
        realm: str | None = None,
        max_connections: int = 10,
        password: Callable[[], str | Awaitable[str]] | None = None,
    ) -> None:
        """Read the contracts; nothing is opened."""
        self._contracts: Final = tuple(
            c if isinstance(c, FlowContract) else load_toml(Path(c)) for c in contracts
        )
        self._flows: Final = frozenset(c.flow for c in self._contracts)
        self._database_url: Final = database_url
        self._realm: Final = realm
        self._max_connections: Final = max_connections
        self._password: Final = password
        super().__init__(PLUGIN, workflow_runner=_pass_through)

    def __repr__(self) -> str:
        """The flows it governs; never a connection string."""
        return f"<GovernancePlugin {', '.join(sorted(self._flows))}>"

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """Attach the actor to the starts of governed flows."""
        config = super().configure_client(config)
        config["interceptors"] = [*config.get("interceptors", ()), GovernedClient(self._flows)]
        return config

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Put the interceptors and local activities into one worker.

        Raises:
            ConfigurationError: It has been put in already, or it knows no database.
        """
        if any(isinstance(i, _WorkerInterceptor) for i in config.get("interceptors", ())):
            raise ConfigurationError(
                "The GovernancePlugin was given twice.",
                hint="Give it to Client.connect alone: the client's workers inherit it.",
            )
        config = super().configure_worker(config)
        client = with_capture(worker_client(config))
        runtime = Runtime(self._new_database(), self._realm)
        runtime.attach(client)
        config["client"] = client
        interceptor = _WorkerInterceptor(self._flows, _Parts.of(runtime, self._contracts))
        config["interceptors"] = [*config.get("interceptors", ()), interceptor]
        if config.get("workflows"):
            activities = list(config.get("activities") or ())
            if not activities:
                # Local activities alone must not make this worker poll for remote ones.
                config["no_remote_activities"] = True
            config["activities"] = [*activities, *LocalActivities(runtime).all]
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Put the workflow interceptors in; a replay asks nobody."""
        config = super().configure_replayer(config)
        interceptor = _WorkerInterceptor(self._flows, None)
        config["interceptors"] = [*config.get("interceptors", ()), interceptor]
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Check that the contracts are registered, then deliver wake-ups while the worker runs.

        Raises:
            ContractUnknown: A contract of this worker is not registered.
            DatabaseUnavailable: The database cannot be asked.
        """
        mine = [
            i
            for i in worker.config(active_config=True).get("interceptors", ())
            if isinstance(i, _WorkerInterceptor)
        ]
        parts = mine[-1].parts if mine else None
        if parts is None:
            await next(worker)
            return
        work: list[asyncio.Task[None]] = []
        try:
            with _never_started(worker):
                await self._check_registered(parts.runtime)
            work += [asyncio.create_task(one) for one in parts.in_background()]
            await next(worker)
        finally:
            await _to_its_end(_stop(work, parts.runtime.database))

    def _new_database(self) -> Database:
        url = self._database_url or os.environ.get(DATABASE_VARIABLE)
        if not url:
            raise ConfigurationError(
                "The GovernancePlugin has no database.",
                hint=f"Pass database_url or set {DATABASE_VARIABLE}.",
            )
        return Database(url, max_size=self._max_connections, password=self._password)

    async def _check_registered(self, runtime: Runtime) -> None:
        async with runtime.database.reading() as conn:
            for contract in self._contracts:
                if await find_contract(conn, runtime.realm, contract.digest) is None:
                    raise ContractUnknown(
                        f'The contract for flow "{contract.flow}" (digest '
                        f"{contract.digest.hex()[:12]}…) is not registered in realm "
                        f'"{runtime.realm}".',
                        hint="Register it: `governance contracts register FILE`.",
                    )


@dataclasses.dataclass(frozen=True)
class _Parts:
    """What one worker runs on."""

    runtime: Runtime
    claims: Claims
    endings: Endings
    border: Border

    def in_background(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What runs while the worker does."""
        return (
            Dispatcher(self.runtime, self.endings).run_forever(),
            self.endings.run_forever(),
            self.claims.renew_forever(),
        )

    @classmethod
    def of(cls, runtime: Runtime, contracts: tuple[FlowContract, ...]) -> _Parts:
        claims = Claims(runtime.database)
        outcomes = Outcomes(runtime.client.data_converter)
        border = Border(runtime, claims, outcomes, contracts)
        return cls(runtime, claims, Endings(runtime, border.flows), border)


class _WorkerInterceptor(Interceptor):
    """Made for one worker; without its parts it serves a replay."""

    def __init__(self, flows: frozenset[str], parts: _Parts | None) -> None:
        self._flows = flows
        self.parts = parts

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        assert self.parts is not None, "a replay runs no activities"
        return BorderInterceptor(next, self.parts.border)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        members: dict[str, Any] = {"flows": self._flows}
        if self.parts is not None:
            members["tell_ending"] = staticmethod(self.parts.endings.hint)
        return type("GovernedInbound", (GovernedInbound,), members)


def _pass_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Our packages are not loaded again in the sandbox: exception classes must be the same."""
    if runner is None:
        raise ValueError("The GovernancePlugin was given no workflow runner.")
    if isinstance(runner, SandboxedWorkflowRunner):
        return dataclasses.replace(
            runner,
            restrictions=runner.restrictions.with_passthrough_modules(
                "governance", "temporal_integration"
            ),
        )
    return runner


def worker_client(config: WorkerConfig) -> Client:
    """The client a worker is made with; the SDK always fills it in."""
    client = config.get("client")
    if client is None:
        raise ValueError("The GovernancePlugin was given no client.")
    return client


@contextmanager
def _never_started(worker: Worker) -> Generator[None]:
    """If this fails, tell a worker that never ran that it has been shut down.

    The SDK does so only for its own checks; without it `async with worker` would be left never.
    """
    try:
        yield
    except BaseException:
        # There is no public name for it.
        complete = vars(worker).get("_shutdown_complete_event")
        if isinstance(complete, asyncio.Event):
            complete.set()
        raise


async def _stop(work: Sequence[asyncio.Task[None]], database: Database) -> None:
    """End what runs in the background; none of it ends by itself."""
    while running := [task for task in work if not task.done()]:
        for task in running:
            task.cancel()
        # Python 3.11's wait_for, which drivers use, loses one that comes with its result. One of
        # this task, from a loop that is closed, is no reason to leave the others running.
        with suppress(asyncio.CancelledError):
            await asyncio.wait(running, timeout=_CANCEL_AGAIN)
    await asyncio.gather(*work, return_exceptions=True)
    await database.close()


async def _to_its_end(cleaning: Coroutine[Any, Any, None]) -> None:
    """Clean up whatever happens meanwhile.

    Before 1.35 the SDK cancels the task of a worker that has shut down, and a cancellation that
    comes out of it cancels whoever has just left `async with worker`.
    """
    task = asyncio.create_task(cleaning)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)

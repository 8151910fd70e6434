"""Workers that die or freeze in the middle of a step."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.temporal.flows.crashing import PayUnderLimit
from tests.temporal.playing import Scene, new_worker
from tests.temporal.stage import Handle, Stage, result, until
from tests.temporal.worker_process import CONTRACT, bank_worker

ROOT = Path(__file__).resolve().parents[2]
Spawn: TypeAlias = Callable[[Stage], subprocess.Popen[bytes]]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def spawn(temporal_address: str, dsn: str, ledger: Path) -> Generator[Spawn]:
    """Starts a worker process; it is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(stage: Stage) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.temporal.worker_process"]
        process = subprocess.Popen(
            [*command, temporal_address, dsn, f"{stage.queue}-bank", str(ledger)], cwd=ROOT
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


async def test_killed_in_the_middle_of_a_step(scene: Scene, spawn: Spawn, ledger: Path) -> None:
    async with scene(contracts=[CONTRACT]) as stage:
        victim, handle = await _in_the_middle(stage, spawn, ledger)
        victim.kill()
        await _paid_by_another(stage, handle, ledger)
        first, second = await lines(ledger, 2)
        assert first["key"] == second["key"]
        assert (first["token"], second["token"]) == (1, 2)
        assert await _steps(stage, handle) == ["step.claimed", "step.taken_over", "step.executed"]


async def test_frozen_in_the_middle_of_a_step(scene: Scene, spawn: Spawn, ledger: Path) -> None:
    """Another worker takes the step over; the frozen one wakes up and records nothing."""
    async with scene(contracts=[CONTRACT]) as stage:
        victim, handle = await _in_the_middle(stage, spawn, ledger)
        victim.send_signal(signal.SIGSTOP)
        await _paid_by_another(stage, handle, ledger)
        victim.send_signal(signal.SIGCONT)
        await found(ledger.with_name(f"left-{victim.pid}"))
        victim.send_signal(signal.SIGINT)
        victim.wait(20)
        steps = await _steps(stage, handle)
        assert steps[:3] == ["step.claimed", "step.taken_over", "step.executed"]
        # Temporal cancels the late attempt, or it still answers and is told what counts.
        assert steps[3:] in ([], ["step.evicted", "step.injected"])


async def _in_the_middle(
    stage: Stage, spawn: Spawn, ledger: Path
) -> tuple[subprocess.Popen[bytes], Handle]:
    """A worker process that has begun to pay and does not answer."""
    victim = spawn(stage)
    async with new_worker(stage, PayUnderLimit, activities=[]):
        handle = await stage.start(PayUnderLimit.run, "42", f"{stage.queue}-bank")
        await lines(ledger, 1)
    return victim, handle


async def _paid_by_another(stage: Stage, handle: Handle, ledger: Path) -> None:
    ledger.with_name("go").touch()
    async with (
        new_worker(stage, PayUnderLimit, activities=[]),
        bank_worker(stage.client, f"{stage.queue}-bank", ledger),
    ):
        assert await result(handle, 30) == f"paid by {os.getpid()}"


async def _steps(stage: Stage, handle: Handle) -> list[str]:
    return [t for t in await stage.types(handle) if t.startswith("step.")]


async def lines(ledger: Path, count: int) -> list[dict[str, Any]]:
    """The ledger's lines, once there are that many."""

    async def look() -> list[dict[str, Any]] | None:
        found = await asyncio.to_thread(_read, ledger)
        return found if len(found) >= count else None

    return await until(look, 30)


async def found(file: Path) -> None:
    """Wait until the file is there."""

    async def look() -> bool:
        return await asyncio.to_thread(file.exists)

    await until(look, 30)


def _read(ledger: Path) -> list[dict[str, Any]]:
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [json.loads(line) for line in lines]

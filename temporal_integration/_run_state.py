"""What the interceptors of one run share. Lives in the workflow's sandbox, never stored."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from governance.contracts import FlowContract
from governance.rules.step_key import CallTracker
from temporal_integration._ask import Wakes


class RunState:
    """One governed run: its pinned contract, its open calls, whether it was denied."""

    def __init__(self) -> None:
        """Start before `open`: nothing is known yet."""
        self.contract: FlowContract | None = None
        self.governed = False
        self.tracker = CallTracker()
        self.wakes = Wakes()
        self.denied: ApplicationError | None = None
        self._opened: asyncio.Future[None] | None = None
        self._settled = False
        self._calls = 0
        # A dict, not a set: the order of a set differs between replays.
        self._holding: dict[asyncio.Task[Any], None] = {}

    def settle(self, contract: FlowContract | None) -> None:
        """`open` was answered: governed under a contract, or not governed at all."""
        self.contract = contract
        self.governed = contract is not None
        self._settled = True
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    @property
    def settled(self) -> bool:
        """Whether `open` was answered."""
        return self._settled

    async def opened(self) -> None:
        """Wait until `open` was answered: signal handlers may call activities before."""
        if self._settled:
            return
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._opened)

    async def unless_denied(self) -> None:
        """Return at once, or never: a denied run is about to end and calls nothing governed.

        Answering would let code that tries again and again keep the run from ending.
        """
        if self.denied is not None:
            await asyncio.get_running_loop().create_future()

    @contextmanager
    def holding(self) -> Generator[None]:
        """Mark the current task as one that `drain` cancels and awaits."""
        task = asyncio.current_task()
        assert task is not None
        self._holding[task] = None
        try:
            yield
        finally:
            self._holding.pop(task, None)

    @contextmanager
    def calling(self) -> Generator[None]:
        """Count a governed activity that was called."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @property
    def busy(self) -> bool:
        """Whether a call may still find that the execution was denied, without a wake-up."""
        asking = len(self._holding) > self.wakes.waiting
        return self.denied is None and (asking or self._calls > 0)

    async def drain(self) -> None:
        """Cancel what is held and wait until no local activity of ours is outstanding."""
        current = asyncio.current_task()
        while tasks := [t for t in self._holding if t is not current and not t.done()]:
            for task in tasks:
                task.cancel()
            await workflow.wait(tasks)

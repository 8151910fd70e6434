"""Workflow code asking the database, through local activities.

Requests and answers are JSON text in one string, so that no team's converter shapes them.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy

UNAVAILABLE: Final = "unavailable"
_LONGEST_PAUSE: Final = 300
_MOST_SEEN: Final = 1000
_LONGEST_TOPIC: Final = 64
_ATTEMPT: Final = timedelta(seconds=30)
_RETRY: Final = RetryPolicy(maximum_attempts=3)


async def ask(activity: str, request: dict[str, Any], summary: str) -> dict[str, Any]:
    """Run a local activity of ours and return its answer.

    While the database is away it answers `unavailable` at once; then a durable timer, doubling to
    five minutes, waits between tries. So an outage costs few history events and holds no worker.
    """
    pause = 1
    while True:
        answer = await ask_once(activity, request, summary)
        if answer["status"] != UNAVAILABLE:
            return answer
        await workflow.sleep(timedelta(seconds=pause), summary="governance: database unavailable")
        pause = min(pause * 2, _LONGEST_PAUSE)


async def ask_once(activity: str, request: dict[str, Any], summary: str) -> dict[str, Any]:
    """Run a local activity of ours once and return its answer, `unavailable` included.

    A cancellation is raised only when the local activity has ended: a run that ends while one is
    outstanding can stall for tens of seconds, again and again.
    """
    handle = workflow.start_local_activity(
        activity,
        json.dumps(request, sort_keys=True),
        result_type=str,
        start_to_close_timeout=_ATTEMPT,
        retry_policy=_RETRY,
        summary=summary,
    )
    try:
        text: str = await asyncio.shield(handle)
    except asyncio.CancelledError:
        if not handle.done():
            await workflow.wait([handle])
        raise
    answer: dict[str, Any] = json.loads(text)
    return answer


class Wakes:
    """Wake-ups of one run, by topic. A wake-up is a hint; many of one topic are one."""

    def __init__(self) -> None:
        """Start with none."""
        self._seen: dict[str, str] = {}
        self._waiting: dict[str, asyncio.Future[str]] = {}

    def wake(self, topic: str, hint: str) -> None:
        """Let whoever waits for this topic look again. Others are kept, to a bound."""
        waiting = self._waiting.get(topic)
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(hint)
        elif len(self._seen) < _MOST_SEEN and len(topic) <= _LONGEST_TOPIC:
            self._seen[topic] = hint

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(not future.done() for future in self._waiting.values())

    def wake_all(self) -> None:
        """Let everybody look again."""
        for topic in list(self._waiting):
            self.wake(topic, "")

    async def wait(self, topic: str) -> str:
        """Wait for the next wake-up of this topic; returns what it hints at."""
        if topic in self._seen:
            return self._seen.pop(topic)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[topic] = future
        try:
            return await future
        finally:
            if self._waiting.get(topic) is future:
                del self._waiting[topic]

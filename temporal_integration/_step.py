"""What activity code can know of the governed step it runs as."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from temporalio.worker import ExecuteActivityInput


@dataclass(frozen=True, slots=True)
class GovernedStep:
    """The governed step that runs.

    Attributes:
        name: Step name in the contract.
        actor: For whom it runs: the original actor of the execution.
        idempotency_key: For the outside system: the same in every retry, reset and new run.
        approval: Id of the approval that allowed it, 32 hexadecimal digits; None if none was asked.
        token: Fencing token of this attempt; a later attempt has a higher one.
    """

    name: str
    actor: str
    idempotency_key: str
    approval: str | None
    token: int


_STEP: ContextVar[GovernedStep | None] = ContextVar("governance_step", default=None)


def governed_step() -> GovernedStep:
    """The governed step that runs now.

    Raises:
        RuntimeError: Called outside an activity that a contract selects.
    """
    step = _STEP.get()
    if step is None:
        raise RuntimeError("governed_step() is for activities that a contract selects")
    return step


@contextmanager
def running_as(step: GovernedStep, input: ExecuteActivityInput) -> Generator[None]:
    """Let the activity's code see its step, in a thread or another process too.

    A pooled process keeps the context of its fork, another step's idempotency key included, so
    the step travels with the function.
    """
    token = _STEP.set(step)
    if input.executor is not None and not isinstance(input.executor, ThreadPoolExecutor):
        input.fn = functools.partial(_call_as, step, input.fn)
    try:
        yield
    finally:
        _STEP.reset(token)


def _call_as(step: GovernedStep, function: Callable[..., Any], *args: Any) -> Any:
    token = _STEP.set(step)
    try:
        return function(*args)
    finally:
        _STEP.reset(token)

"""Headers: opaque ids only. What cannot be read counts as absent, never as an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter

from temporal_integration._names import CONTINUED_HEADER, START_HEADER, STEP_HEADER

_MAX_BYTES = 4096
_MAX_ID = 512


@dataclass(frozen=True, slots=True)
class StepClaim:
    """The workflow's claim which step a call is; the border checks it.

    Attributes:
        n: Which of equal calls, from 1.
        round: How often this step was called, from 1.
    """

    n: int
    round: int


def with_start(headers: Mapping[str, Payload], actor: str) -> dict[str, Payload]:
    """Add who starts the workflow."""
    return _with(headers, START_HEADER, {"v": 1, "actor": actor})


def read_start(headers: Mapping[str, Payload]) -> str | None:
    """Who starts the workflow, if a header of ours says so."""
    actor = _read(headers, START_HEADER).get("actor")
    return actor if isinstance(actor, str) and 0 < len(actor) <= _MAX_ID else None


def with_continued(headers: Mapping[str, Payload], run_id: str) -> dict[str, Payload]:
    """Add which run continues as new."""
    return _with(headers, CONTINUED_HEADER, {"v": 1, "run": run_id})


def read_continued(headers: Mapping[str, Payload]) -> str | None:
    """Which run continued as new, if a header of ours says so."""
    run = _read(headers, CONTINUED_HEADER).get("run")
    return run if isinstance(run, str) and 0 < len(run) <= _MAX_ID else None


def with_step(headers: Mapping[str, Payload], claim: StepClaim) -> dict[str, Payload]:
    """Add which step a call is."""
    return _with(headers, STEP_HEADER, {"v": 1, "n": claim.n, "round": claim.round})


def read_step(headers: Mapping[str, Payload]) -> StepClaim | None:
    """Which step a call claims to be, if a header of ours says so."""
    found = _read(headers, STEP_HEADER)
    n, rounds = found.get("n"), found.get("round")
    return StepClaim(n, rounds) if _ordinal(n) and _ordinal(rounds) else None


def _ordinal(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31


def _with(headers: Mapping[str, Payload], name: str, value: dict[str, Any]) -> dict[str, Payload]:
    # Always the default converter: a team's own must not decide what our headers look like.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return {**headers, name: PayloadConverter.default.to_payloads([text])[0]}


def _read(headers: Mapping[str, Payload], name: str) -> dict[str, Any]:
    payload = headers.get(name)
    if payload is None or len(payload.data) > _MAX_BYTES:
        return {}
    if payload.metadata.get("encoding") != b"json/plain":
        return {}
    try:
        value = json.loads(json.loads(payload.data))
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) and value.get("v") == 1 else {}

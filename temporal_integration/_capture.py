"""Keeps the payloads an activity was called with, as they were before the team's codec.

Activity interceptors see decoded arguments only, and encoding them again gives other bytes for a
third of all forms. A codec is the last thing that sees the payloads; this one hands everything on
to the team's and remembers what it decoded first in an activity's task: its input.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from contextvars import ContextVar
from typing import cast

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

_INPUT: ContextVar[tuple[Payload, ...] | None] = ContextVar("governance_input", default=None)


class CapturingCodec(PayloadCodec, WithSerializationContext):
    """The team's codec, or none, with a memory for one task."""

    def __init__(self, inner: PayloadCodec | None) -> None:
        """Wrap the team's codec."""
        self._inner = inner

    def with_context(self, context: SerializationContext) -> CapturingCodec:
        """Hand the context to the team's codec."""
        inner: object = self._inner
        if not isinstance(inner, WithSerializationContext):
            return self
        return CapturingCodec(cast("PayloadCodec", inner.with_context(context)))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encode with the team's codec."""
        return list(payloads) if self._inner is None else await self._inner.encode(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decode with the team's codec and keep the first result of this task."""
        decoded = list(payloads) if self._inner is None else await self._inner.decode(payloads)
        if _INPUT.get() is None:
            _INPUT.set(tuple(decoded))
        return decoded


def captured_input(count: int) -> tuple[Payload, ...] | None:
    """The input payloads of the activity that runs in this task; None if they were not seen.

    Args:
        count: How many arguments the activity was called with.
    """
    if count == 0:
        return ()
    payloads = _INPUT.get()
    return payloads if payloads is not None and len(payloads) == count else None


def with_capture(client: Client) -> Client:
    """The same client, for a worker, whose activities' inputs are remembered."""
    config = client.config(active_config=True)
    config["data_converter"] = _capturing(config["data_converter"])
    # The plugins have had their say on this configuration; they are not asked twice.
    config["plugins"] = []
    return Client(**config)


def _capturing(converter: DataConverter) -> DataConverter:
    """The team's converter, with our codec in the context of an activity and nowhere else.

    Workflow tasks then go the same way as without the plugin.
    """
    team = type(converter)

    def with_context(self: DataConverter, context: SerializationContext) -> DataConverter:
        found = team.with_context(self, context)
        if isinstance(context, ActivitySerializationContext):
            found = copy.copy(found)
            # The class is frozen; the SDK sets a context's codec in the same way.
            object.__setattr__(found, "payload_codec", CapturingCodec(found.payload_codec))
        return found

    kind = type(team.__name__, (team,), {"with_context": with_context})
    given = {f.name: getattr(converter, f.name) for f in dataclasses.fields(converter) if f.init}
    capturing: DataConverter = kind(**given)
    return capturing

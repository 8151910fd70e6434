"""Keeps the payloads an activity was called with, as they were before the team's codec.

Activity interceptors see decoded arguments only, and encoding them again gives other bytes for a
third of all forms. A codec is the last thing that sees the payloads; this one hands everything on
to the team's and remembers what it decoded first in an activity's task: its input.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextvars import ContextVar
from typing import cast

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
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
    """The same client, for a worker, with a codec that remembers inputs."""
    config = client.config(active_config=True)
    converter = config["data_converter"]
    config["data_converter"] = dataclasses.replace(
        converter, payload_codec=CapturingCodec(converter.payload_codec)
    )
    # The plugins have had their say on this configuration; they are not asked twice.
    config["plugins"] = []
    return Client(**config)

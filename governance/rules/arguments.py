"""The arguments of a call, read from their payloads as exactly as they were sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from governance import canonical
from governance.canonical import Exact

Payload: TypeAlias = tuple[Mapping[str, bytes], bytes]
"""Metadata and data of one payload, before any codec."""

_JSON = (b"json/plain", b"json/protobuf")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An argument that is not JSON, or JSON that cannot be read without doubt.

    Attributes:
        digest: SHA-256 of its data, 32 bytes.
        why: What stood in the way, for people.
    """

    digest: bytes
    why: str


Argument: TypeAlias = Exact | Unreadable
"""One argument as the rules see it."""


def read_arguments(payloads: Sequence[Payload]) -> tuple[Argument, ...]:
    """Read payloads as arguments.

    Args:
        payloads: As Temporal's converters write them: `json/plain`, `json/protobuf` and
            `binary/null` are read, every other encoding is unreadable.

    Returns:
        One argument per payload, in order.
    """
    return tuple(_read(metadata, data) for metadata, data in payloads)


def _read(metadata: Mapping[str, bytes], data: bytes) -> Argument:
    encoding = metadata.get("encoding", b"")
    if encoding == b"binary/null":
        return None
    if encoding not in _JSON:
        name = encoding.decode("utf-8", "replace") or "none"
        return Unreadable(canonical.sha256(data), f"its encoding is {name}")
    try:
        return canonical.parse_exact(data)
    except ValueError as error:
        return Unreadable(canonical.sha256(data), str(error))

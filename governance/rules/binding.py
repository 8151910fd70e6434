"""Digests of a call's input: of all its bytes, and of what the contract says it binds.

Taken on the workflow side at the call and on the activity side at the border; the two must be
equal, so nothing here depends on the process it runs in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import cast

from governance import canonical
from governance.canonical import Exact
from governance.contracts import StepRule
from governance.contracts.glob import is_glob
from governance.contracts.pointer import MISSING, parse, resolve
from governance.rules.arguments import Argument, Payload, Unreadable, read_arguments

_INPUT = b"governance/input/1"
_BINDS = b"governance/binds/1"
_ACTIVITY = b"governance/activity/1"
# The metadata that says how to read the data; the rest is the business of codecs and converters.
_METADATA = ("encoding", "messageType")


def input_digest(payloads: Sequence[Payload]) -> bytes:
    """Digest all bytes of a call's input.

    Args:
        payloads: The payloads before the codec, in order.

    Returns:
        SHA-256, 32 bytes, over `governance/input/1`, the number of payloads and, of each, the
        metadata `encoding` and `messageType` and the data; every part is preceded by its length
        (8 bytes, big-endian), a metadata key that is absent by 2**64 - 1 alone.
    """
    digest = hashlib.sha256()
    digest.update(_part(_INPUT))
    digest.update(len(payloads).to_bytes(8, "big"))
    for metadata, data in payloads:
        for key in _METADATA:
            digest.update(_part(metadata.get(key)))
        digest.update(_part(data))
    return digest.digest()


def bound_call(step: StepRule, activity: str, payloads: Sequence[Payload]) -> bytes:
    """Digest what makes two calls of a step the same action, the activity included.

    A step that names one activity binds it by its own name, and the result is `binds_digest`. One
    that selects by a pattern covers several, so the name of the one called is bound too.

    Returns:
        SHA-256, 32 bytes; for a pattern over `governance/activity/1`, the name and `binds_digest`,
        each preceded by its length.
    """
    bound = binds_digest(step, payloads)
    if not is_glob(step.activity):
        return bound
    return canonical.sha256(_part(_ACTIVITY) + _part(activity.encode()) + _part(bound))


def binds_digest(step: StepRule, payloads: Sequence[Payload]) -> bytes:
    """Digest what makes two calls of a step the same action.

    Without `binds` that is every byte, and the result is `input_digest`. With it the digest is over
    the canonical JSON list of, per pointer, `[pointer, "value", value]`, `[pointer, "missing"]`, or
    `[pointer, "bytes", digest]` where the argument cannot be read: then all its bytes are bound.
    Numbers are compared as decimals.

    Args:
        step: The step that the call is.
        payloads: The payloads before the codec, in order.

    Returns:
        SHA-256, 32 bytes.
    """
    if not step.binds:
        return input_digest(payloads)
    arguments = read_arguments(payloads)
    bound: Exact = [_bound(pointer, arguments, payloads) for pointer in step.binds]
    return canonical.sha256(_part(_BINDS) + canonical.exact_dumps(bound))


def _bound(path: str, arguments: Sequence[Argument], payloads: Sequence[Payload]) -> Exact:
    tokens = parse(path)
    if not tokens:
        readable = [one for one in arguments if not isinstance(one, Unreadable)]
        if len(readable) < len(arguments):
            return [path, "bytes", input_digest(payloads).hex()]
        return [path, "value", readable]
    argument = resolve(arguments, f"/{tokens[0]}")
    if isinstance(argument, Unreadable):
        return [path, "bytes", input_digest([payloads[int(tokens[0])]]).hex()]
    found = resolve(arguments, path)
    return [path, "missing"] if found is MISSING else [path, "value", cast("Exact", found)]


def _part(data: bytes | None) -> bytes:
    if data is None:
        return b"\xff" * 8
    return len(data).to_bytes(8, "big") + data

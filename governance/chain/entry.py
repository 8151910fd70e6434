"""One entry of the chain: its bytes, read and written.

The body of an entry has one form only. `Entry.parse` accepts exactly the bytes that `Entry.encode`
writes, so a body that was read is canonical. See docs/reference/record-format.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from governance.chain.tree import HASH_SIZE, leaf_hash
from governance.errors import ChainBroken

VERSION: Final = "governance/entry/1"
"""The `v` of every entry of this form."""

NO_PREVIOUS: Final = bytes(HASH_SIZE)
"""The `prev` of a stream's first entry."""

MAX_BODY: Final = 65_535
"""Longest body in bytes: what a tiled log (c2sp.org/tlog-tiles) can hold."""

_BODY: Final = re.compile(
    rb'\{"at":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)"'
    rb',"log":"([a-z0-9][a-z0-9._/-]{2,199})"'
    rb',"observed":\[((?:"[0-9a-f]{64}"(?:,"[0-9a-f]{64}")*)?)\]'
    rb',"payload":"([0-9a-f]{64})"'
    rb',"prev":"([0-9a-f]{64})"'
    rb',"seq":([1-9][0-9]{0,15})'
    rb',"stream":"((?:execution|actor|contract|log)/[0-9a-f]{32})"'
    rb',"type":"([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+)"'
    rb',"v":"governance/entry/1"\}'
)
_SEQ_LIMIT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Entry:
    """What the body of an entry says.

    Args:
        at: When it was written, by the database's clock; UTC.
        log: Origin of the log.
        observed: Leaves that it rests on.
        payload: SHA-256 of the payload's bytes.
        prev: Leaf of the stream's previous entry, or `NO_PREVIOUS`.
        seq: Position in the stream, from 1.
        stream: Kind and id of the stream, `execution/<32 hex digits>`.
        type: What happened, `approval.decided`.
    """

    at: datetime
    log: str
    observed: tuple[bytes, ...]
    payload: bytes
    prev: bytes
    seq: int
    stream: str
    type: str

    @classmethod
    def parse(cls, body: bytes) -> Entry:
        """Read the body of an entry.

        Raises:
            ChainBroken: The bytes are not those of an entry in its canonical form.
        """
        match = _BODY.fullmatch(body) if len(body) <= MAX_BODY else None
        if match is None:
            raise ChainBroken("the body is not an entry in its canonical form")
        at, log, observed, payload, prev, seq, stream, kind = match.groups()
        entry = cls(
            at=_time(at.decode()),
            log=log.decode(),
            observed=tuple(bytes.fromhex(part[1:-1].decode()) for part in _parts(observed)),
            payload=bytes.fromhex(payload.decode()),
            prev=bytes.fromhex(prev.decode()),
            seq=int(seq),
            stream=stream.decode(),
            type=kind.decode(),
        )
        if entry.seq >= _SEQ_LIMIT:
            raise ChainBroken("the body's seq is not below 2^53")
        return entry

    def encode(self) -> bytes:
        """Return the body: canonical JSON, ASCII."""
        observed = ",".join(f'"{leaf.hex()}"' for leaf in self.observed)
        return (
            f'{{"at":"{time_text(self.at)}","log":"{self.log}","observed":[{observed}]'
            f',"payload":"{self.payload.hex()}","prev":"{self.prev.hex()}","seq":{self.seq}'
            f',"stream":"{self.stream}","type":"{self.type}","v":"{VERSION}"}}'
        ).encode("ascii")

    @property
    def leaf(self) -> bytes:
        """The leaf hash of the body: the entry's identity."""
        return leaf_hash(self.encode())


def time_text(at: datetime) -> str:
    """Write a time as entries do: UTC, microseconds, `Z`."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _parts(observed: bytes) -> list[bytes]:
    return observed.split(b",") if observed else []


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ChainBroken(f"the body's time {text} does not exist") from None
    if at.isoformat(timespec="microseconds") != f"{text[:-1]}+00:00":
        raise ChainBroken(f"the body's time {text} is not in its canonical form")
    return at

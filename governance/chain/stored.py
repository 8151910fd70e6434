"""An entry as the database holds it, read back from its bytes."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

from governance.chain.entry import Entry, time_text
from governance.chain.tree import leaf_hash
from governance.errors import ChainBroken


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """The columns of one entry with its payload.

    Args:
        id: Number that the database gave it.
        kind: Kind of its stream.
        stream: Id of its stream.
        seq: Position in the stream.
        type: What happened.
        body: The evidence: the bytes that are hashed.
        leaf: Leaf hash as stored.
        at: When it was written, in the form of entries.
        payload: The payload's bytes; None if there are none.
    """

    id: int
    kind: str
    stream: uuid.UUID
    seq: int
    type: str
    body: bytes
    leaf: bytes
    at: str
    payload: bytes | None

    @property
    def stream_text(self) -> str:
        """The stream as entries name it."""
        return f"{self.kind}/{self.stream.hex}"

    @property
    def place(self) -> str:
        """Names the entry in messages."""
        return f"entry {self.id} ({self.stream_text}, seq {self.seq})"

    def read(self, origin: str) -> Entry:
        """Derive everything again from the stored bytes.

        Raises:
            ChainBroken: Body, columns, payload or leaf contradict each other, or the entry is of
                another log; names the entry and the difference.
        """
        try:
            entry = Entry.parse(self.body)
        except ChainBroken as error:
            raise ChainBroken(f"{self.place}: {error.message}") from None
        compared = (
            ("log", entry.log, origin),
            ("stream", entry.stream, self.stream_text),
            ("seq", entry.seq, self.seq),
            ("type", entry.type, self.type),
            ("at", time_text(entry.at), self.at),
        )
        for name, said, stored in compared:
            if said != stored:
                raise ChainBroken(f"{self.place}: its body says {name} {said}, not {stored}")
        if self.payload is None:
            raise ChainBroken(f"{self.place}: its payload is missing")
        if hashlib.sha256(self.payload).digest() != entry.payload:
            raise ChainBroken(f"{self.place}: its payload is not the one that was hashed")
        if leaf_hash(self.body) != self.leaf:
            raise ChainBroken(f"{self.place}: its leaf is not the hash of its body")
        return entry

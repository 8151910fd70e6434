"""C2SP signed notes, and the checkpoint that such a note carries.

A note is a text, a blank line, and one line per signature. See c2sp.org/signed-note and
c2sp.org/tlog-checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from governance.chain.tree import HASH_SIZE
from governance.errors import NoteInvalid
from governance.signing import Signer, Verifier
from governance.signing.keys import decode_base64, encode_base64

MAX_NOTE: Final = 256 * 1024
"""Longest note that is read, in bytes; 16 post-quantum signatures fit."""

MAX_SIGNATURES: Final = 100
"""Most signature lines that are read."""

_DASH: Final = "\u2014 "
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_MAX_SIZE: Final = 2**63 - 1
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_BAD_NAME: Final = re.compile(r"[\s+]")


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: who signed, and what."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A note that at least one known key signed.

    Args:
        text: What was signed, with its last newline.
        signatures: Those that a known key made; checked.
        ignored: Those of unknown keys; not checked.
    """

    text: str
    signatures: tuple[Signature, ...]
    ignored: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tree of one log at one size.

    Args:
        origin: Name of the log.
        size: Number of leaves.
        root: Root hash over them, 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{encode_base64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read the text of a checkpoint; extension lines are refused.

        Raises:
            NoteInvalid: It is not three lines of origin, size and root.
        """
        lines = text.split("\n")
        if len(lines) != 4 or lines[3] or not lines[0]:
            raise NoteInvalid("A checkpoint has three lines: origin, size, root.")
        origin, size, encoded = lines[:3]
        if not _SIZE.fullmatch(size) or int(size) > _MAX_SIZE:
            raise NoteInvalid("The size of the checkpoint is not a decimal number.")
        try:
            root = decode_base64(encoded)
        except ValueError:
            root = b""
        if len(root) != HASH_SIZE:
            raise NoteInvalid("The root of the checkpoint is not a SHA-256 hash in base64.")
        return cls(origin, int(size), root)


def sign_note(text: str, signers: Sequence[Signer]) -> bytes:
    """Return the note of `text` signed by every signer, in their order.

    Raises:
        NoteInvalid: The text does not end in a newline or holds other control characters, or
            there is no signer.
    """
    _check_text(text)
    if not signers:
        raise NoteInvalid("A note needs a signature.")
    message = text.encode()
    lines: list[str] = []
    for signer in signers:
        signed = signer.verifier.key_id + signer.sign(message)
        lines.append(f"{_DASH}{signer.verifier.name} {encode_base64(signed)}\n")
    return message + b"\n" + "".join(lines).encode()


def open_note(data: bytes, verifiers: Iterable[Verifier]) -> Note:
    """Check a note against the keys known.

    Signatures of unknown keys are ignored. Every signature of a known key must hold.

    Args:
        data: The whole note.
        verifiers: The keys known; the same one twice is one.

    Raises:
        NoteInvalid: The note is malformed or too large, a known key's signature does not hold, or
            no known key signed.
    """
    text, signatures = split_note(data)
    known = {(verifier.name, verifier.key_id): verifier for verifier in verifiers}
    held: list[Signature] = []
    ignored: list[Signature] = []
    for signature in signatures:
        verifier = known.get((signature.name, signature.key_id))
        if verifier is None:
            ignored.append(signature)
        elif verifier.verify(text.encode(), signature.signature):
            held.append(signature)
        else:
            raise NoteInvalid(
                f"The signature of {signature.name}+{signature.key_id.hex()} does not hold."
            )
    if not held:
        names = ", ".join(f"{s.name}+{s.key_id.hex()}" for s in ignored)
        raise NoteInvalid(f"None of the given keys signed this note; signed by {names}.")
    return Note(text, tuple(dict.fromkeys(held)), tuple(dict.fromkeys(ignored)))


def split_note(data: bytes) -> tuple[str, list[Signature]]:
    """Split a note into its text and its signatures, checking none of them.

    Raises:
        NoteInvalid: The note is malformed or too large.
    """
    if len(data) > MAX_NOTE:
        raise NoteInvalid(f"The note has more than {MAX_NOTE} bytes.")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError:
        raise NoteInvalid("The note is not UTF-8.") from None
    text, blank, tail = whole.rpartition("\n\n")
    if not blank or not tail.endswith("\n"):
        raise NoteInvalid("The note has no signatures after a blank line.")
    text += "\n"
    _check_text(text)
    lines = tail.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteInvalid(f"The note has more than {MAX_SIGNATURES} signatures.")
    return text, [_signature(line) for line in lines]


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not name or _BAD_NAME.search(name):
        raise NoteInvalid("A signature line of the note is malformed.")
    try:
        data = decode_base64(encoded)
    except ValueError:
        data = b""
    if len(data) < 5:
        raise NoteInvalid("A signature of the note is not in base64.") from None
    return Signature(name, data[:4], data[4:])


def _check_text(text: str) -> None:
    if not text.endswith("\n") or _CONTROL.search(text):
        raise NoteInvalid(
            "The text of a note ends in a newline and has no other control characters."
        )

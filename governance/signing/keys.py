"""Ed25519 keys that sign and verify, and their text form.

The text forms are those of C2SP signed notes as Go's `sumdb/note` writes them, one line each:

    verifier  <name>+<key id, 8 hex digits>+<base64 of 0x01 || public key>
    signer    PRIVATE+KEY+<name>+<key id, 8 hex digits>+<base64 of 0x01 || seed>

No private key appears in a repr, a message or an error of this package.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from governance.errors import KeyInvalid

MAX_KEY_TEXT: Final = 1024
"""Longest text form of a key, in characters."""

_ED25519: Final = b"\x01"
_PRIVATE: Final = "PRIVATE+KEY+"
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}")


class Signer(Protocol):
    """What signs checkpoints: a key in this process, or a service that holds one."""

    @property
    def verifier(self) -> Verifier:
        """The public half."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the signature of `message`."""
        ...


@dataclass(frozen=True, slots=True)
class Verifier:
    """A named public key.

    Args:
        name: Key name; for the key of a log, the log's origin.
        public_key: The 32 bytes of RFC 8032.
    """

    name: str
    public_key: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.public_key) != 32:
            raise KeyInvalid(f'The public key "{self.name}" has not 32 bytes.')

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Read the text form of a verifier.

        Raises:
            KeyInvalid: It is not one, of another algorithm, or its key id does not fit.
        """
        parts = _key_text(text).split("+", 2)
        if len(parts) != 3:
            raise KeyInvalid("A verifier key reads NAME+KEYID+BASE64, on one line.")
        name, key_id, encoded = parts
        verifier = cls(name, _key_bytes(encoded, "verifier key"))
        _check_id(verifier, key_id)
        return verifier

    @property
    def key_id(self) -> bytes:
        """The first 4 bytes of SHA-256(name || 0x0A || 0x01 || public key)."""
        named = self.name.encode() + b"\n" + _ED25519 + self.public_key
        return hashlib.sha256(named).digest()[:4]

    @property
    def text(self) -> str:
        """The text form, without a newline."""
        return f"{self.name}+{self.key_id.hex()}+{encode_base64(_ED25519 + self.public_key)}"

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Say whether `signature` is this key's over `message` (RFC 8032)."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Ed25519Signer:
    """A private key in this process."""

    verifier: Verifier
    _key: Ed25519PrivateKey = field(repr=False, compare=False)

    @classmethod
    def generate(cls, name: str) -> Ed25519Signer:
        """Make a new key of this name.

        Raises:
            KeyInvalid: The name cannot name a key.
        """
        return cls._from(name, Ed25519PrivateKey.generate())

    @classmethod
    def parse(cls, text: str) -> Ed25519Signer:
        """Read the text form of a signer.

        Raises:
            KeyInvalid: It is not one, of another algorithm, or its key id does not fit.
        """
        text = _key_text(text)
        parts = text.removeprefix(_PRIVATE).split("+", 2)
        if not text.startswith(_PRIVATE) or len(parts) != 3:
            raise KeyInvalid("A signing key reads PRIVATE+KEY+NAME+KEYID+BASE64, on one line.")
        name, key_id, encoded = parts
        seed = _key_bytes(encoded, "signing key")
        signer = cls._from(name, Ed25519PrivateKey.from_private_bytes(seed))
        _check_id(signer.verifier, key_id)
        return signer

    @classmethod
    def _from(cls, name: str, key: Ed25519PrivateKey) -> Ed25519Signer:
        return cls(Verifier(name, key.public_key().public_bytes_raw()), key)

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the Ed25519 signature of `message` (RFC 8032)."""
        return self._key.sign(message)

    def private_text(self) -> str:
        """Return the text form with the private key, for its file and for nothing else."""
        verifier = self.verifier
        seed = encode_base64(_ED25519 + self._key.private_bytes_raw())
        return f"{_PRIVATE}{verifier.name}+{verifier.key_id.hex()}+{seed}"


def check_name(name: str) -> None:
    """Refuse what cannot name a key: nothing, spaces, plus signs, control characters.

    Raises:
        KeyInvalid: Says so.
    """
    if not name or "+" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise KeyInvalid(
            f"{name!r} cannot name a key: a key name is not empty and has no spaces and no plus."
        )


def _key_text(text: str) -> str:
    if len(text) > MAX_KEY_TEXT:
        raise KeyInvalid(f"A key has at most {MAX_KEY_TEXT} characters.")
    return text.removesuffix("\n")


def _key_bytes(encoded: str, what: str) -> bytes:
    """Decode algorithm and key; only Ed25519's 32 bytes pass."""
    try:
        data = decode_base64(encoded)
    except ValueError:
        data = b""
    if len(data) != 33 or data[:1] != _ED25519:
        raise KeyInvalid(f"The {what} is not an Ed25519 key in base64.") from None
    return data[1:]


def _check_id(verifier: Verifier, key_id: str) -> None:
    if not _KEY_ID.fullmatch(key_id) or key_id != verifier.key_id.hex():
        raise KeyInvalid(f'The key id of "{verifier.name}" does not belong to its key.')


def decode_base64(text: str) -> bytes:
    """Decode standard base64 in its one canonical form (RFC 4648, sections 3.5 and 4).

    Raises:
        ValueError: It is not that.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if encode_base64(data) != text:
        raise ValueError("not canonical base64")
    return data


def encode_base64(data: bytes) -> str:
    """Encode as standard base64 (RFC 4648, section 4)."""
    return base64.b64encode(data).decode("ascii")

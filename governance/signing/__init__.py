"""Signing keys: Ed25519, in the text form of C2SP signed notes."""

from governance.signing.files import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    load_signer,
    load_verifier,
    new_key,
)
from governance.signing.keys import Ed25519Signer, Signer, Verifier

__all__ = [
    "KEY_FILE_VARIABLE",
    "KEY_VARIABLE",
    "Ed25519Signer",
    "Signer",
    "Verifier",
    "load_signer",
    "load_verifier",
    "new_key",
]

"""Where keys are kept: new key files, and the signing key from a file or the environment."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from governance.errors import KeyInvalid
from governance.signing.keys import MAX_KEY_TEXT, Ed25519Signer, Verifier

KEY_VARIABLE: Final = "GOVERNANCE_SIGNING_KEY"
"""Environment variable that holds the private key itself."""

KEY_FILE_VARIABLE: Final = "GOVERNANCE_SIGNING_KEY_FILE"
"""Environment variable that holds the path of the private key's file."""


def new_key(name: str, private_file: Path, public_file: Path) -> Verifier:
    """Make a signing key, write both halves to new files, and return the public one.

    Args:
        name: Key name; for the key of a log, the log's origin.
        private_file: Written with mode 0600; must not exist.
        public_file: Written with mode 0644; must not exist.

    Raises:
        KeyInvalid: The name cannot name a key, or a file exists or cannot be written.
    """
    signer = Ed25519Signer.generate(name)
    _write_new(private_file, signer.private_text(), 0o600)
    try:
        _write_new(public_file, signer.verifier.text, 0o644)
    except KeyInvalid:
        private_file.unlink()
        raise
    return signer.verifier


def load_signer(
    environment: Mapping[str, str] | None = None, *, file: Path | None = None
) -> Ed25519Signer:
    """Load the signing key from a file, or from where the environment says.

    Args:
        environment: Read instead of the process's environment.
        file: The key's file; the environment is then not looked at.

    Raises:
        KeyInvalid: There is none, both variables are set, it is malformed, or its file can be
            read by others.
    """
    if file is not None:
        return Ed25519Signer.parse(_read_private(file))
    environment = os.environ if environment is None else environment
    text, path = environment.get(KEY_VARIABLE), environment.get(KEY_FILE_VARIABLE)
    if text and path:
        raise KeyInvalid(f"Both {KEY_VARIABLE} and {KEY_FILE_VARIABLE} are set; set one.")
    if text:
        return Ed25519Signer.parse(text)
    if path:
        return Ed25519Signer.parse(_read_private(Path(path)))
    raise KeyInvalid(
        "There is no signing key.",
        hint=f"Make one with `governance keys new`, then set {KEY_FILE_VARIABLE} to its file.",
    )


def load_verifier(file: Path) -> Verifier:
    """Load a public key from its file.

    Raises:
        KeyInvalid: It cannot be read or is malformed.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            return Verifier.parse(opened.read(MAX_KEY_TEXT + 1))
    except (OSError, UnicodeDecodeError) as error:
        raise KeyInvalid(f"The verifier key {file} cannot be read: {_reason(error)}.") from error


def _read_private(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise KeyInvalid(
                    f"Others than its owner can use the signing key {file}.",
                    hint=f"Run `chmod 600 {file}`.",
                )
            return opened.read(MAX_KEY_TEXT + 1).decode("ascii")
    except OSError as error:
        raise KeyInvalid(f"The signing key {file} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError:
        # Without its cause: that would show bytes of the key.
        raise KeyInvalid(f"The signing key {file} is not text.") from None


def _write_new(file: Path, text: str, mode: int) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            os.fchmod(handle, mode)  # whatever the umask
            opened.write(text + "\n")
            opened.flush()
            os.fsync(handle)
    except OSError as error:
        raise KeyInvalid(f"The key file {file} cannot be written: {_reason(error)}.") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__

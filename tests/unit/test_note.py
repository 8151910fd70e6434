"""Keys, signed notes and checkpoints against public vectors (tests/vectors/PROVENANCE.md)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.chain.note import Checkpoint, open_note, sign_note, split_note
from governance.chain.tree import EMPTY_ROOT
from governance.errors import KeyInvalid, NoteInvalid
from governance.signing import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    Ed25519Signer,
    Verifier,
    load_signer,
    load_verifier,
    new_key,
)

FOLDER = Path(__file__).parent.parent / "vectors"
NOTE: dict[str, Any] = json.loads((FOLDER / "note.json").read_text("utf-8"))
ED25519: dict[str, Any] = json.loads((FOLDER / "ed25519.json").read_text("utf-8"))
TEXT: str = NOTE["text"]
PETER = Verifier.parse(NOTE["peter_vkey"])
ENOCH = Verifier.parse(NOTE["enoch_vkey"])
BOTH = f"{TEXT}\n{NOTE['peter_line']}{NOTE['enoch_line']}".encode()
SECRET: str = NOTE["peter_skey"].rpartition("+")[2]


def manglings(text: str) -> set[str]:
    """Every part of a text, and the text with any one character raised by one."""
    cut = {text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)}
    raised = {text[:i] + chr(ord(c) + 1) + text[i + 1 :] for i, c in enumerate(text)}
    return (cut | raised) - {text}


# ---------------------------------------------------------------- keys


def test_a_verifier_is_what_its_text_says() -> None:
    assert PETER.name == "PeterNeumann"
    assert PETER.key_id.hex() == "c74f20a3"
    assert PETER.text == NOTE["peter_vkey"]
    assert Ed25519Signer.parse(NOTE["peter_skey"]).verifier == PETER


@pytest.mark.parametrize("key", ["peter_vkey", "enoch_vkey"])
def test_every_mangled_verifier_is_refused(key: str) -> None:
    for text in manglings(NOTE[key]):
        with pytest.raises(KeyInvalid):
            Verifier.parse(text)


def test_every_mangled_signer_is_refused_and_never_shown() -> None:
    for text in manglings(NOTE["peter_skey"]):
        with pytest.raises(KeyInvalid) as raised:
            Ed25519Signer.parse(text)
        assert SECRET[4:20] not in str(raised.value)


@pytest.mark.parametrize("text", NOTE["bad_vkeys"])
def test_other_algorithms_and_lengths_are_refused(text: str) -> None:
    with pytest.raises(KeyInvalid):
        Verifier.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "a\x00"])
def test_names_that_cannot_name_a_key(name: str) -> None:
    with pytest.raises(KeyInvalid, match="cannot name a key"):
        Ed25519Signer.generate(name)


@pytest.mark.parametrize("vector", ED25519["tests"], ids=lambda v: str(v["id"]))
def test_ed25519_vectors(vector: dict[str, Any]) -> None:
    verifier = Verifier("wycheproof", bytes.fromhex(ED25519["public_key"]))
    message, signature = bytes.fromhex(vector["msg"]), bytes.fromhex(vector["sig"])
    assert verifier.verify(message, signature) is vector["valid"]


# ---------------------------------------------------------------- key files


def test_a_new_key_is_private_and_loads(tmp_path: Path) -> None:
    private, public = tmp_path / "log.key", tmp_path / "log.vkey"
    verifier = new_key("example.com/log", private, public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert load_verifier(public) == verifier
    assert load_signer(file=private).verifier == verifier
    assert load_signer({KEY_FILE_VARIABLE: str(private)}).verifier == verifier
    assert load_signer({KEY_VARIABLE: private.read_text()}).verifier == verifier


def test_a_key_file_is_never_replaced(tmp_path: Path) -> None:
    private, public = tmp_path / "log.key", tmp_path / "log.vkey"
    new_key("example.com/log", private, public)
    before = private.read_bytes(), public.read_bytes()
    for files in ((private, tmp_path / "b"), (tmp_path / "c", public)):
        with pytest.raises(KeyInvalid, match="cannot be written"):
            new_key("example.com/log", *files)
    assert (private.read_bytes(), public.read_bytes()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.key", "log.vkey"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    private = tmp_path / "log.key"
    new_key("example.com/log", private, tmp_path / "log.vkey")
    os.chmod(private, mode)
    with pytest.raises(KeyInvalid, match="chmod 600"):
        load_signer(file=private)


def test_where_no_key_is(tmp_path: Path) -> None:
    with pytest.raises(KeyInvalid, match="no signing key"):
        load_signer({})
    with pytest.raises(KeyInvalid, match="set one"):
        load_signer({KEY_VARIABLE: "x", KEY_FILE_VARIABLE: "y"})
    with pytest.raises(KeyInvalid, match="cannot be read"):
        load_signer(file=tmp_path / "absent")
    with pytest.raises(KeyInvalid, match="cannot be read"):
        load_verifier(tmp_path / "absent")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff" * 20)
    binary.chmod(0o600)
    with pytest.raises(KeyInvalid, match="is not text"):
        load_signer(file=binary)


def test_the_private_key_is_in_no_repr(tmp_path: Path) -> None:
    signer = Ed25519Signer.parse(NOTE["peter_skey"])
    assert SECRET not in f"{signer!r} {signer}"
    assert signer.private_text() == NOTE["peter_skey"]
    bad = tmp_path / "bad.key"
    bad.write_text(NOTE["peter_skey"] + "x")
    bad.chmod(0o600)
    with pytest.raises(KeyInvalid) as raised:
        load_signer(file=bad)
    assert SECRET[4:20] not in str(raised.value)


# ---------------------------------------------------------------- notes


def test_signing_gives_the_reference_bytes() -> None:
    signer = Ed25519Signer.parse(NOTE["peter_skey"])
    assert sign_note(TEXT, [signer]) == f"{TEXT}\n{NOTE['peter_line']}".encode()


def test_known_signatures_are_checked_and_others_ignored() -> None:
    note = open_note(BOTH, [PETER])
    assert note.text == TEXT
    assert [s.name for s in note.signatures] == ["PeterNeumann"]
    assert [s.name for s in note.ignored] == ["EnochRoot"]
    assert len(open_note(BOTH, [PETER, ENOCH, ENOCH]).signatures) == 2


def test_no_known_key_is_no_note() -> None:
    with pytest.raises(NoteInvalid, match=r"None of the given keys .* PeterNeumann\+c74f20a3"):
        open_note(BOTH, [])


def test_a_known_key_s_bad_signature_spoils_the_note() -> None:
    line = NOTE["peter_line"]
    longer = f"{TEXT}\n{line[:60]}ABCD{line[60:]}{NOTE['enoch_line']}".encode()
    for data in (longer, BOTH.replace(b"cryptography", b"Cryptography")):
        with pytest.raises(NoteInvalid, match="does not hold"):
            open_note(data, [PETER, ENOCH])


def test_same_name_other_key_is_an_unknown_key() -> None:
    stranger = Ed25519Signer.generate("PeterNeumann").verifier
    with pytest.raises(NoteInvalid, match="None of the given keys"):
        open_note(BOTH, [stranger])


def test_signatures_given_twice_count_once_and_a_hundred_are_enough() -> None:
    line = NOTE["peter_line"]
    assert len(open_note(f"{TEXT}\n{line * 100}".encode(), [PETER]).signatures) == 1
    for verifiers in ([PETER], []):
        with pytest.raises(NoteInvalid, match="more than 100"):
            open_note(f"{TEXT}\n{line * 101}".encode(), verifiers)


@pytest.mark.parametrize("text", NOTE["malformed"])
def test_malformed_notes(text: str) -> None:
    with pytest.raises(NoteInvalid):
        open_note(text.encode(), [PETER])


def test_notes_that_are_no_text_or_too_long() -> None:
    for data in (b"\xff" + BOTH, BOTH.replace(b"\n", b"\r\n"), b"a" * 300_000):
        with pytest.raises(NoteInvalid):
            open_note(data, [PETER])


def test_what_cannot_be_signed() -> None:
    with pytest.raises(NoteInvalid, match="needs a signature"):
        sign_note(TEXT, [])
    with pytest.raises(NoteInvalid, match="ends in a newline"):
        sign_note("abc", [Ed25519Signer.generate("a")])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_note_or_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(NoteInvalid):
        open_note(data, [PETER])


@given(st.integers(0, len(BOTH) - 1), st.integers(1, 255))
def test_any_changed_byte_before_an_unknown_signature_is_noticed(place: int, bits: int) -> None:
    changed = bytearray(BOTH)
    changed[place] ^= bits
    if place >= BOTH.index(b"\xe2\x80\x94 Enoch"):
        return
    with pytest.raises(NoteInvalid):
        open_note(bytes(changed), [PETER])


# ---------------------------------------------------------------- checkpoints


def test_the_reference_checkpoint_is_read_and_written() -> None:
    text, [signature] = split_note(NOTE["checkpoint"].encode())
    checkpoint = Checkpoint.parse(text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text == text
    assert signature.name == checkpoint.origin


@pytest.mark.parametrize(
    "lines",
    [
        ["", "1", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "01", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "-1", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "1 ", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "\u0661", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "9223372036854775808", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="],
        ["a", "1", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J="],
        ["a", "1", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jx"],
        ["a", "1", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=", "extension"],
        ["a", "1"],
    ],
)
def test_what_is_no_checkpoint(lines: list[str]) -> None:
    with pytest.raises(NoteInvalid):
        Checkpoint.parse("".join(f"{line}\n" for line in lines))


def test_a_checkpoint_of_the_empty_tree() -> None:
    checkpoint = Checkpoint("example.com/log", 0, EMPTY_ROOT)
    assert Checkpoint.parse(checkpoint.text) == checkpoint

"""The published record format: its worked example is derived again and stands in the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from governance import canonical
from governance.chain.entry import MAX_BODY, Entry
from governance.chain.note import Checkpoint, open_note, sign_note
from governance.chain.tree import (
    consistency_proof,
    inclusion_proof,
    root,
    verify_consistency,
    verify_inclusion,
)
from governance.errors import ChainBroken
from governance.signing import Ed25519Signer, Verifier

TOP = Path(__file__).parent.parent.parent
PAGE = (TOP / "docs/reference/record-format.md").read_text("utf-8")
RECORD: dict[str, Any] = json.loads((TOP / "tests/vectors/record-format.json").read_text("utf-8"))
BODIES = [entry["body"].encode() for entry in RECORD["entries"]]
LEAVES = [bytes.fromhex(entry["leaf"]) for entry in RECORD["entries"]]
BODY = BODIES[1]


def test_the_example_is_derived_from_its_payloads() -> None:
    for given in RECORD["entries"]:
        payload, body = given["payload"].encode(), given["body"].encode()
        entry = Entry.parse(body)
        assert canonical.dumps(canonical.loads(payload)) == payload
        assert hashlib.sha256(payload).digest() == entry.payload
        assert hashlib.sha256(b"\x00" + body).hexdigest() == given["leaf"] == entry.leaf.hex()
        assert entry.encode() == body == canonical.dumps(json.loads(body))
    first, second, third = map(Entry.parse, BODIES)
    assert second.observed == (first.leaf,)
    assert third.prev == second.leaf


def test_the_example_s_tree_and_checkpoint() -> None:
    roots = [bytes.fromhex(value) for value in RECORD["roots"]]
    assert [root(LEAVES[:size]) for size in range(4)] == roots
    path = [bytes.fromhex(value) for value in RECORD["inclusion_of_1"]]
    assert inclusion_proof(LEAVES, 1) == path
    assert verify_inclusion(1, 3, LEAVES[1], path, roots[3])
    proof = [bytes.fromhex(value) for value in RECORD["consistency_2_to_3"]]
    assert consistency_proof(LEAVES, 2) == proof
    assert verify_consistency(2, 3, roots[2], roots[3], proof)
    name, key_id, _ = RECORD["vkey"].split("+", 2)
    seed = base64.b64encode(b"\x01" + bytes.fromhex(RECORD["seed"])).decode()
    signer = Ed25519Signer.parse(f"PRIVATE+KEY+{name}+{key_id}+{seed}")
    assert signer.verifier == Verifier.parse(RECORD["vkey"])
    checkpoint = Checkpoint(RECORD["origin"], 3, roots[3])
    assert sign_note(checkpoint.text, [signer]).decode() == RECORD["note"]
    assert (
        Checkpoint.parse(open_note(RECORD["note"].encode(), [signer.verifier]).text) == checkpoint
    )


def test_the_page_shows_just_these_bytes() -> None:
    blocks = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = [RECORD["vkey"], RECORD["note"].rstrip("\n"), "\n".join(RECORD["roots"])]
    shown += ["\n".join(RECORD["inclusion_of_1"]), "\n".join(RECORD["consistency_2_to_3"])]
    shown += [entry[part] for entry in RECORD["entries"] for part in ("payload", "body", "leaf")]
    assert [text for text in shown if text not in blocks] == []
    assert RECORD["seed"] in PAGE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"at"', b'{ "at"'),
        (b"T03:04:05", b"T24:04:05"),
        (b"2026-01-02", b"2026-02-30"),
        (b"2026-01-02", b"0000-01-02"),
        (b".000007Z", b".00000Z"),
        (b".000007Z", b".000007+00:00"),
        (b"payments.example", b"Payments.example"),
        (b'"observed":["60', b'"observed":["6A'),
        (b'091a"]', b'091a",]'),
        (b'"seq":1', b'"seq":0'),
        (b'"seq":1', b'"seq":01'),
        (b'"seq":1', b'"seq":1.0'),
        (b'"seq":1', b'"seq":9007199254740992'),
        (b"execution/", b"workflow/"),
        (b"e1e1e1e1e1", b"e1e1e1e1e"),
        (b"step.claimed", b"step"),
        (b"step.claimed", b"step..claimed"),
        (b"step.claimed", b"Step.claimed"),
        (b"entry/1", b"entry/2"),
        (b'","v"', b'","u":1,"v"'),
        (b'1"}', b'1"}\n'),
    ],
)
def test_bodies_of_any_other_form_are_refused(old: bytes, new: bytes) -> None:
    assert old in BODY
    with pytest.raises(ChainBroken, match="the body"):
        Entry.parse(BODY.replace(old, new, 1))


def test_a_body_is_no_longer_than_a_tiled_log_can_hold() -> None:
    entry = Entry.parse(BODY)
    leaf = f'"{LEAVES[0].hex()}"'
    longest = (MAX_BODY - len(BODY)) // (len(leaf) + 1)
    for more, fits in ((longest, True), (longest + 1, False)):
        body = BODY.replace(b'091a"]', f'091a"{f",{leaf}" * more}]'.encode())
        if fits:
            assert len(Entry.parse(body).observed) == len(entry.observed) + more
        else:
            with pytest.raises(ChainBroken, match="canonical form"):
                Entry.parse(body)

"""The Merkle tree against the public vectors of RFC 6962 trees (tests/vectors/PROVENANCE.md)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governance.chain.tree import (
    EMPTY_ROOT,
    CompactRange,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root,
    verify_consistency,
    verify_inclusion,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "merkle.json").read_text("utf-8")
)
LEAVES = [leaf_hash(bytes.fromhex(data)) for data in VECTORS["leaves"]]

# These two call any two equal byte strings a root; here a root has 32 bytes.
SHORT_ROOTS = {
    "sizes are equal (zero) and proof is empty",
    "sizes are equal (one) and proof is empty",
}


def _hashes(values: list[str]) -> list[bytes]:
    return [bytes.fromhex(value) for value in values]


def test_reference_tree_hashes() -> None:
    nodes = VECTORS["nodes"]
    assert [leaf.hex() for leaf in LEAVES] == nodes[0]
    for below, level in itertools.pairwise(nodes):
        pairs = zip(_hashes(below)[::2], _hashes(below)[1::2], strict=True)
        assert [node_hash(left, right).hex() for left, right in pairs] == level


@pytest.mark.parametrize("size", range(9))
def test_reference_roots(size: int) -> None:
    assert root(LEAVES[:size]).hex() == VECTORS["roots"][size]


def test_compact_range_gives_every_root_on_the_way() -> None:
    tree = CompactRange()
    roots = [tree.root()]
    for leaf in LEAVES:
        tree.append(leaf)
        roots.append(tree.root())
    assert [value.hex() for value in roots] == VECTORS["roots"]


def test_compact_range_copy_is_independent() -> None:
    tree = CompactRange(LEAVES[:5])
    twin = tree.copy()
    twin.append(LEAVES[5])
    assert (tree.size, tree.root()) == (5, root(LEAVES[:5]))
    assert (twin.size, twin.root()) == (6, root(LEAVES[:6]))


@pytest.mark.parametrize(
    "vector", VECTORS["inclusion"], ids=lambda v: f"{v['index']} of {v['size']}: {v['desc']}"
)
def test_inclusion_vectors(vector: dict[str, Any]) -> None:
    leaf, root_hash = bytes.fromhex(vector["leaf"]), bytes.fromhex(vector["root"])
    held = verify_inclusion(
        vector["index"], vector["size"], leaf, _hashes(vector["proof"]), root_hash
    )
    assert held is vector["valid"]
    if vector["desc"] == "happy path":
        assert inclusion_proof(LEAVES[: vector["size"]], vector["index"]) == _hashes(
            vector["proof"]
        )


@pytest.mark.parametrize(
    "vector", VECTORS["consistency"], ids=lambda v: f"{v['size1']} to {v['size2']}: {v['desc']}"
)
def test_consistency_vectors(vector: dict[str, Any]) -> None:
    root1, root2 = bytes.fromhex(vector["root1"]), bytes.fromhex(vector["root2"])
    held = verify_consistency(
        vector["size1"], vector["size2"], root1, root2, _hashes(vector["proof"])
    )
    assert held is (vector["valid"] and vector["desc"] not in SHORT_ROOTS)
    if vector["desc"] == "happy path":
        assert consistency_proof(LEAVES[: vector["size2"]], vector["size1"]) == _hashes(
            vector["proof"]
        )


def test_there_are_as_many_vectors_as_published() -> None:
    for kind in ("inclusion", "consistency"):
        assert len(VECTORS[kind]) == 98
        assert sum(not vector["valid"] for vector in VECTORS[kind]) >= 91


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.data())
def test_our_proofs_verify_and_only_at_their_place(size: int, data: st.DataObject) -> None:
    leaves = [leaf_hash(str(number).encode()) for number in range(size)]
    index = data.draw(st.integers(0, size - 1))
    path = inclusion_proof(leaves, index)
    assert verify_inclusion(index, size, leaves[index], path, root(leaves))
    for other in range(size):
        if other != index:
            assert not verify_inclusion(other, size, leaves[index], path, root(leaves))
    old = data.draw(st.integers(1, size))
    proof = consistency_proof(leaves, old)
    assert verify_consistency(old, size, root(leaves[:old]), root(leaves), proof)
    assert not verify_consistency(old, size, root(leaves[1 : old + 1]), root(leaves), proof)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-2, 40),
    st.integers(-2, 40),
    st.lists(st.binary(max_size=40), max_size=8),
    st.binary(max_size=40),
    st.binary(max_size=40),
)
def test_hostile_proofs_are_false_not_errors(
    a: int, b: int, proof: list[bytes], first: bytes, second: bytes
) -> None:
    assert not verify_inclusion(a, b, first, proof, second)
    assert not verify_consistency(a, b, first, second, proof) or first == second


def test_sizes_and_hashes_are_strict() -> None:
    assert root([]) == EMPTY_ROOT
    assert verify_consistency(0, 0, EMPTY_ROOT, EMPTY_ROOT, [])
    assert not verify_consistency(0, 1, EMPTY_ROOT, LEAVES[0], [])
    for call in (
        lambda: CompactRange([b"short"]),
        lambda: inclusion_proof(LEAVES, 8),
        lambda: inclusion_proof(LEAVES, -1),
        lambda: consistency_proof(LEAVES, 0),
        lambda: consistency_proof(LEAVES, 9),
    ):
        with pytest.raises(ValueError, match=r"\d"):
            call()

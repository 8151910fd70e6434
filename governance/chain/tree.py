"""The Merkle tree of RFC 6962: roots, inclusion proofs, consistency proofs.

Every hash is 32 bytes and every size a count of leaves. Functions that verify take data from
strangers: they return False for anything that does not hold, whatever its shape, and raise nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

HASH_SIZE: Final = 32
"""Bytes of a SHA-256 hash."""

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
"""Root of the tree without leaves (RFC 6962, section 2.1)."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf: SHA-256(0x00 || data) (RFC 6962, section 2.1)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node: SHA-256(0x01 || left || right) (RFC 6962, section 2.1)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class CompactRange:
    """The tree of the leaves so far, kept as the roots of its perfect subtrees.

    Memory and the cost of an append grow with the logarithm of the size.
    """

    __slots__ = ("_nodes", "size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._nodes: list[bytes] = []
        for leaf in leaves:
            self.append(leaf)

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash at the end.

        Raises:
            ValueError: The hash is not 32 bytes.
        """
        if len(leaf) != HASH_SIZE:
            raise ValueError(f"a leaf hash has {HASH_SIZE} bytes, not {len(leaf)}")
        node = leaf
        full = self.size
        # Each trailing one of the old size is a perfect subtree that the new leaf completes.
        while full & 1:
            node = node_hash(self._nodes.pop(), node)
            full >>= 1
        self._nodes.append(node)
        self.size += 1

    def root(self) -> bytes:
        """Return the root of the tree of all leaves so far."""
        if not self._nodes:
            return EMPTY_ROOT
        node = self._nodes[-1]
        for left in reversed(self._nodes[:-1]):
            node = node_hash(left, node)
        return node

    def copy(self) -> CompactRange:
        """Return an independent range with the same leaves."""
        twin = CompactRange()
        twin.size = self.size
        twin._nodes = list(self._nodes)
        return twin


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes, MTH of RFC 6962, section 2.1.

    Raises:
        ValueError: A hash is not 32 bytes.
    """
    return CompactRange(leaves).root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of one leaf, PATH of RFC 6962, section 2.1.1.

    Args:
        leaves: All leaf hashes of the tree.
        index: Position of the leaf, from 0.

    Raises:
        ValueError: There is no such leaf, or a hash is not 32 bytes.
    """
    if not 0 <= index < len(leaves):
        raise ValueError(f"no leaf {index} in a tree of size {len(leaves)}")
    path: list[bytes] = []
    while len(leaves) > 1:
        split = _split(len(leaves))
        if index < split:
            path.append(root(leaves[split:]))
            leaves = leaves[:split]
        else:
            path.append(root(leaves[:split]))
            leaves, index = leaves[split:], index - split
    return path[::-1]


def verify_inclusion(
    index: int, size: int, leaf: bytes, proof: Sequence[bytes], root_hash: bytes
) -> bool:
    """Say whether `leaf` stands at `index` in the tree of this size and root.

    The algorithm is that of RFC 9162, section 2.1.3.2.
    """
    if not 0 <= index < size or not _all_hashes(leaf, root_hash, *proof):
        return False
    node, position, last = leaf, index, size - 1
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            node = node_hash(sibling, node)
            while position and not position & 1:
                position, last = position >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and node == root_hash


def consistency_proof(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """Return the proof that the tree of the first `size` leaves is a prefix of the whole one.

    PROOF of RFC 6962, section 2.1.2.

    Raises:
        ValueError: `size` is not between 1 and the number of leaves, or a hash is not 32 bytes.
    """
    if not 0 < size <= len(leaves):
        raise ValueError(f"no proof from size {size} to size {len(leaves)}")
    proof: list[bytes] = []
    known = True  # the verifier has the root of exactly these leaves
    while size < len(leaves):
        split = _split(len(leaves))
        if size <= split:
            proof.append(root(leaves[split:]))
            leaves = leaves[:split]
        else:
            proof.append(root(leaves[:split]))
            leaves, size, known = leaves[split:], size - split, False
    if not known:
        proof.append(root(leaves))
    return proof[::-1]


def verify_consistency(
    size1: int, size2: int, root1: bytes, root2: bytes, proof: Sequence[bytes]
) -> bool:
    """Say whether the tree of size1 and root1 is a prefix of the tree of size2 and root2.

    The algorithm is that of RFC 9162, section 2.1.4.2. Nothing is proven from an empty tree to
    another one: that is False.
    """
    if not 0 <= size1 <= size2 or not _all_hashes(root1, root2, *proof):
        return False
    if size1 == size2:
        return not proof and root1 == root2
    if size1 == 0 or not proof:
        return False
    path = list(proof)
    if size1 & (size1 - 1) == 0:
        path.insert(0, root1)
    return _replay(path, size1 - 1, size2 - 1, root1, root2)


def _replay(path: list[bytes], first: int, second: int, root1: bytes, root2: bytes) -> bool:
    """Rebuild both roots from a consistency path; positions are those of the last leaves."""
    while first & 1:
        first, second = first >> 1, second >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if second == 0:
            return False
        if first & 1 or first == second:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while first and not first & 1:
                first, second = first >> 1, second >> 1
        else:
            new = node_hash(new, sibling)
        first, second = first >> 1, second >> 1
    return second == 0 and old == root1 and new == root2


def _split(size: int) -> int:
    """Return the largest power of two below `size`, for sizes above 1."""
    return 1 << (size - 1).bit_length() - 1


def _all_hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_SIZE for value in values)

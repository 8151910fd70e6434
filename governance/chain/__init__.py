"""The chain: entries linked per stream, one Merkle tree over all of them, signed checkpoints."""

"""A payment that waits for an approval."""

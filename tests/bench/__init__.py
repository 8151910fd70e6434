"""Benchmarks: each row against plain Temporal or plain Postgres doing the same, in one run."""

"""Evidence: verifying the log, and what is derived from it."""

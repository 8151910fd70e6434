"""Postgres: one pool, one way to begin a transaction, named statements, migrations."""

from __future__ import annotations

from governance.db.connection import Connection, PasswordSource
from governance.db.pool import Database
from governance.db.queries import Queries, load

__all__ = ["Connection", "Database", "PasswordSource", "Queries", "load"]

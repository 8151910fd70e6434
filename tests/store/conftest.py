"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from governance.db import Database
from tests.store.audit import differences
from tests.store.scenario import prepare


@pytest.fixture
async def world(db: Database) -> AsyncGenerator[Database]:
    """A database with an active contract and people in their roles.

    After the test, whatever it did, tables and entries must tell the same.
    """
    await prepare(db)
    yield db
    assert await differences(db) == []

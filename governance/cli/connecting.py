"""From a command's options to a client that does one thing and closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from governance.client import GovernanceClient

T = TypeVar("T")


def ask(
    database_url: str | None, realm: str, work: Callable[[GovernanceClient], Awaitable[T]]
) -> T:
    """Run `work` with a client and return what it returns.

    Raises:
        GovernanceError: Whatever the client raises.
    """
    from governance.client import GovernanceClient

    url = named(database_url)

    async def run() -> T:
        async with GovernanceClient(url, realm) as client:
            return await work(client)

    return asyncio.run(run())


def named(database_url: str | None) -> str:
    """The database's address, for commands that use no client.

    Raises:
        ConfigurationError: None was given.
    """
    from governance.errors import ConfigurationError

    if not database_url:
        raise ConfigurationError(
            "No database is named.",
            hint="Give --database-url or set GOVERNANCE_DATABASE_URL, as in "
            "postgresql://user@host:5432/database.",
        )
    return database_url

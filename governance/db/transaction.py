"""How a transaction begins and ends: isolation, durability and timeouts, fixed here.

All settings travel with BEGIN in one message and end with the transaction, so they hold behind a
pooler in transaction mode too, where a setting of the session would be somebody else's.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, LiteralString

import psycopg
from psycopg.pq import TransactionStatus

from governance.db.connection import Connection
from governance.db.failures import read_only, translated
from governance.db.queries import load
from governance.errors import GovernanceError

_SQL: Final = load("transaction")
_TRANSACTION_TIMEOUT_SINCE: Final = 170000


@dataclass(frozen=True)
class Kind:
    """One kind of transaction.

    Attributes:
        opening: The statements that begin it, on every supported server.
        writes: A server that takes no writes is refused.
        short: Postgres 17 and newer also end it after `transaction_timeout`.
        patience: Seconds after which the client gives the connection up: longer than every
            timeout of the server, for a server that does not answer at all.
    """

    opening: LiteralString
    writes: bool
    short: bool
    patience: float


WRITE: Final = Kind(
    opening=(
        f"{_SQL['begin']}; {_SQL['durable']}; {_SQL['lock_timeout']}; {_SQL['idle_timeout']}; "
        f"{_SQL['statement_timeout']}"
    ),
    writes=True,
    short=True,
    patience=12.0,
)
"""Whatever decides, claims or records."""

SNAPSHOT: Final = Kind(
    opening=(
        f"{_SQL['begin_snapshot']}; {_SQL['durable']}; {_SQL['lock_timeout']}; "
        f"{_SQL['long_idle_timeout']}; {_SQL['long_statement_timeout']}"
    ),
    writes=True,
    short=False,
    patience=600.0,
)
"""Sealing and export."""

READ: Final = Kind(
    opening=f"{_SQL['begin_read']}; {_SQL['idle_timeout']}; {_SQL['statement_timeout']}",
    writes=False,
    short=True,
    patience=12.0,
)
"""Lists."""


async def begin(conn: Connection, kind: Kind, label: str) -> None:
    """Begin a transaction on an idle connection in autocommit mode, in one round trip.

    Raises:
        DatabaseUnavailable: The connection is gone, or the server takes no writes.
    """
    opening = kind.opening
    if kind.short and conn.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
        opening = f"{opening}; {_SQL['transaction_timeout']}"
    with translated(label), bounded(conn, READ.patience):
        cursor = await conn.execute(f"{opening}; {_SQL['read_only']}")
        while cursor.nextset():
            pass
        row = await cursor.fetchone()
    if kind.writes and row == ("on",):
        raise read_only(label)


async def commit(conn: Connection, label: str) -> None:
    """Commit, or say that there is nothing to commit.

    Raises:
        ConnectionLost: Whether it was committed is not known.
        GovernanceError: A statement had failed and the failure was swallowed, or the caller ended
            the transaction itself: COMMIT would have been answered as if all were well.
    """
    status = conn.info.transaction_status
    if status is not TransactionStatus.INTRANS and not conn.closed:
        raise GovernanceError(
            f"The transaction cannot be committed: its state is {status.name}, not INTRANS."
        )
    with translated(label, committing=True):
        await conn.commit()


async def roll_back(conn: Connection) -> None:
    """End the transaction without a trace; a lost connection has done so already."""
    if conn.closed or conn.info.transaction_status is TransactionStatus.IDLE:
        return
    if conn.info.transaction_status is TransactionStatus.ACTIVE:
        await conn.close()  # interrupted in the middle of an answer
        return
    with suppress(psycopg.OperationalError):  # the pool sees that it is broken
        await conn.rollback()


@contextmanager
def bounded(conn: Connection, seconds: float) -> Generator[None]:
    """Give the connection up after `seconds`, so that nobody waits for a silent server for ever.

    The socket is shut down rather than the task cancelled: whoever waits on it gets the same
    error as for any other lost connection.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _hang_up, conn)
    try:
        yield
    finally:
        timer.cancel()


def _hang_up(conn: Connection) -> None:
    if conn.closed:
        return
    with socket.socket(fileno=os.dup(conn.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)

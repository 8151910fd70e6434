"""How a transaction begins and ends: isolation, durability and timeouts, fixed here.

All settings travel with BEGIN in one message and end with the transaction, so they hold behind a
pooler in transaction mode too, where a setting of the session would be somebody else's.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, LiteralString, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from governance.db.connection import Connection
from governance.db.failures import read_only, translate, translated
from governance.db.queries import load
from governance.db.statements import one_pipeline
from governance.errors import GovernanceError

T = TypeVar("T")

_SQL: Final = load("transaction")
_SETTINGS_17: Final = 170000


@dataclass(frozen=True)
class Kind:
    """One kind of transaction.

    Attributes:
        opening: The statements that begin it.
        opening_17: The same on Postgres 17 and newer.
        writes: A server that takes no writes is refused.
        patience: Seconds after which the client gives the connection up: longer than every
            timeout of the server, for a server that does not answer at all.
    """

    opening: Sequence[LiteralString]
    opening_17: Sequence[LiteralString]
    writes: bool
    patience: float

    def on(self, server_version: int) -> Sequence[LiteralString]:
        """The statements that begin it on this server."""
        return self.opening_17 if server_version >= _SETTINGS_17 else self.opening


WRITE: Final = Kind(
    opening=(_SQL["begin"], _SQL["settings"]),
    opening_17=(_SQL["begin"], _SQL["settings_17"]),
    writes=True,
    patience=12.0,
)
"""Whatever decides, claims or records."""

_SNAPSHOT: Final = (
    _SQL["begin_snapshot"],
    _SQL["long_durable"],
    _SQL["long_lock_timeout"],
    _SQL["long_idle_timeout"],
    _SQL["long_statement_timeout"],
)
SNAPSHOT: Final = Kind(opening=_SNAPSHOT, opening_17=_SNAPSHOT, writes=True, patience=600.0)
"""Sealing and export."""

READ: Final = Kind(
    opening=(_SQL["begin_read"], _SQL["settings"]),
    opening_17=(_SQL["begin_read"], _SQL["settings_17"]),
    writes=False,
    patience=12.0,
)
"""Lists."""


async def begin(conn: Connection, kind: Kind, label: str) -> None:
    """Begin a transaction on an idle connection in autocommit mode, in one round trip.

    Raises:
        DatabaseUnavailable: The connection is gone, or the server takes no writes.
    """
    statements: list[LiteralString] = [*kind.on(conn.info.server_version), _SQL["read_only"]]
    together: LiteralString = "; ".join(statements)
    with translated(label), bounded(conn, READ.patience):
        cursor = await conn.execute(together)
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
    with translated(label, committing=not conn.closed):
        await conn.commit()


async def in_one_pipeline(
    conn: Connection, kind: Kind, label: str, work: Callable[[Connection], Awaitable[T]]
) -> T:
    """Do the work in a transaction of its own, BEGIN and COMMIT sent along with its statements.

    Raises:
        ConnectionLost: The connection broke; the message says whether the outcome is known.
        GovernanceError: A statement had failed and the failure was swallowed.
    """
    committing = False
    try:
        async with one_pipeline(conn):
            for statement in kind.on(conn.info.server_version):
                await conn.execute(statement)
            done = await work(conn)
            committing = True
            ended = await conn.execute(_SQL["commit"])
    except psycopg.Error as error:
        known = translate(error, label, committing=committing)
        if known is None:
            raise
        raise known from error
    if ended.statusmessage != "COMMIT":
        raise GovernanceError(
            f"The transaction was not committed but answered with {ended.statusmessage}."
        )
    return done


async def roll_back(conn: Connection) -> None:
    """End the transaction without a trace; a lost connection has done so already."""
    if conn.closed or conn.info.transaction_status is TransactionStatus.IDLE:
        return
    if conn.info.transaction_status is TransactionStatus.ACTIVE:
        await conn.close()  # interrupted in the middle of an answer
        return
    with suppress(psycopg.Error):  # the server ended it first; the pool sees that
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

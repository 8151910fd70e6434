"""The database as services see it: transactions on pooled connections."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from governance.db.connection import Connection, PasswordSource, Target
from governance.db.failures import translated
from governance.db.transaction import (
    READ,
    SNAPSHOT,
    WRITE,
    Kind,
    begin,
    bounded,
    commit,
    in_one_pipeline,
    roll_back,
)
from governance.db.versions import check_schema
from governance.errors import ConnectionLost, DatabaseBusy, DatabaseUnavailable

T = TypeVar("T")
_Pool: TypeAlias = AsyncConnectionPool[Connection]

_FIRST_PAUSE: Final = 0.05
_MAX_IDLE: Final = 60.0


class Database:
    """A pool of connections to one governance database, in one event loop.

    Opened by its first use, closed by `close` or as an async context manager. The first use also
    checks that the schema is the one this code was written for.

    Args:
        dsn: A libpq connection string or URI.
        min_size: Connections kept open while nothing happens.
        max_size: Connections at most; further callers wait.
        password: Called for each new connection, for short-lived tokens.
        prepare_threshold: After how many executions a statement is prepared; None for poolers
            that do not keep prepared statements.
        wait: Seconds to wait for a free connection.

    Raises:
        ConfigurationError: `dsn` is not a connection string.
    """

    def __init__(
        self,
        dsn: str,
        *,
        min_size: int = 1,
        max_size: int = 10,
        password: PasswordSource | None = None,
        prepare_threshold: int | None = 1,
        wait: float = 5.0,
    ) -> None:
        """Keep the settings; nothing is opened."""
        self._target: Final = Target(dsn, password=password, prepare_threshold=prepare_threshold)
        self._size: Final = (min_size, max_size)
        self._wait: Final = wait
        self._opening: Final = asyncio.Lock()
        self._pool: _Pool | None = None
        self._closed = False

    def __repr__(self) -> str:
        """Database, user and host; never a password."""
        return f"<{type(self).__name__} {self.label}>"

    @property
    def label(self) -> str:
        """Names the database in messages: database, user and host."""
        return self._target.label

    async def __aenter__(self) -> Self:
        """The database itself; opened by its first use."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction that decides, claims or records: READ COMMITTED, durable, short.

        Committed when the block ends, rolled back when it raises. Its timeouts stand in
        `sql/queries/transaction.sql`.

        Raises:
            DatabaseUnavailable: No connection, or the server takes no writes.
            ConnectionLost: The connection broke; the message says whether the outcome is known.
            DatabaseBusy: A lock, a deadlock or a timeout; nothing was recorded.
            ConfigurationError: The schema does not fit, or the login lacks a role.
        """
        return self._transaction(WRITE)

    def snapshot(self) -> AbstractAsyncContextManager[Connection]:
        """A REPEATABLE READ transaction with long timeouts, for sealing and export alone.

        The snapshot is taken by the first statement, so a lock can be taken before it only as
        a session lock. Raises like `transaction`.
        """
        return self._transaction(SNAPSHOT)

    def reading(self) -> AbstractAsyncContextManager[Connection]:
        """A read-only transaction, for lists; also on a standby. Raises like `transaction`."""
        return self._transaction(READ)

    async def run(self, work: Callable[[Connection], Awaitable[T]], *, tries: int = 3) -> T:
        """Run a whole transaction, again if the connection was lost or the database was busy.

        Like `transaction`, in as few round trips as the work waits for answers: BEGIN travels with
        its first statements and COMMIT with its last (see `statements.queued`).

        After a lost answer to COMMIT the work is simply run again. It must be the same piece of
        work then, recognised by its own keys: an attempt id made outside of it, not within.

        Args:
            work: Gets the connection, inside the transaction.
            tries: How often it is run at most.

        Raises:
            ConnectionLost: It was lost in the last try too.
            DatabaseBusy: So was the last try.
            DatabaseUnavailable: There is no connection to be had; not tried again.
        """
        for failures in range(tries - 1):
            try:
                return await self._run_once(work)
            except ConnectionLost:
                # Others that lie idle may be dead too; the pool looks and replaces them.
                await (await self._opened()).check()
            except DatabaseBusy:
                await asyncio.sleep(_pause(failures))
        return await self._run_once(work)

    async def _run_once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        pool, conn = await self._taken()
        try:
            with bounded(conn, WRITE.patience):
                return await in_one_pipeline(conn, WRITE, self.label, work)
        finally:
            await self._given_back(pool, conn)

    async def alone(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        """Run one statement that is a transaction of its own, in one round trip.

        For what may be lost in a crash without harm: the session's own timeouts and durability
        hold. Raises like `transaction`; not tried again.
        """
        pool, conn = await self._taken()
        try:
            with bounded(conn, WRITE.patience), translated(self.label, committing=True):
                return await statement(conn)
        finally:
            await self._given_back(pool, conn)

    async def connect(self) -> Connection:
        """A connection of its own, in autocommit mode: for migrations, LISTEN and session locks.

        The caller closes it. The schema is not checked.

        Raises:
            DatabaseUnavailable: No connection.
        """
        return await self._target.connect()

    async def close(self) -> None:
        """Close every connection, those in use when their transaction ends. Safe to repeat."""
        self._closed = True
        async with self._opening:
            if self._pool is not None:
                await self._pool.close()

    async def _opened(self) -> _Pool:
        if self._closed:
            raise DatabaseUnavailable(f"{self!r} was closed and is not used again.")
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._pool is None:
                # A connection of its own says at once what is wrong, where the pool would go on
                # trying until its caller's patience ends.
                conn = await self._target.connect()
                async with conn:
                    await check_schema(conn, self.label)
                self._pool = await self._new_pool()
            return self._pool

    async def _renew(self, lost: _Pool) -> None:
        async with self._opening:
            if self._pool is lost and not self._closed:
                self._pool = await self._new_pool()
                await lost.close(timeout=0)

    async def _new_pool(self) -> _Pool:
        low, high = self._size
        pool: _Pool = AsyncConnectionPool(
            kwargs=self._target.parameters,
            min_size=low,
            max_size=high,
            timeout=self._wait,
            max_idle=_MAX_IDLE,
            open=False,
            name=f"governance-{id(self):x}",
        )
        try:
            await pool.open(wait=True, timeout=self._wait)
        except PoolTimeout as error:
            raise DatabaseUnavailable(
                f"{self.label} opened one connection and then no other within {self._wait:g} s."
            ) from error
        return pool

    async def _begun(self, kind: Kind) -> tuple[_Pool, Connection]:
        """A connection, and the pool it belongs to, with a transaction begun.

        A pooled connection may have died while it was idle; BEGIN finds out before anything was
        done, so the next one is taken.
        """
        for _ in range(self._size[1] + 1):
            pool, conn = await self._taken()
            begun = False
            try:
                await begin(conn, kind, self.label)
                begun = True
                return pool, conn
            except ConnectionLost:
                continue
            finally:
                if not begun:
                    await self._given_back(pool, conn)
        raise DatabaseUnavailable(f"{self.label} closes every connection at once.")

    async def _taken(self) -> tuple[_Pool, Connection]:
        """A connection and the pool it goes back to."""
        while True:
            pool = await self._opened()
            try:
                return pool, await pool.getconn()
            except PoolClosed as error:
                if self._closed:
                    raise DatabaseUnavailable(f"{self!r} was closed.") from error
            except PoolTimeout as error:
                conn = await self._target.connect()  # raises with the reason, if there is one
                await conn.close()
                if pool.get_stats()["pool_size"] >= self._size[1]:
                    raise DatabaseBusy(
                        f"No free connection to {self.label} within {self._wait:g} s: "
                        f"all {self._size[1]} are in use."
                    ) from error
                # The pool lost its connections and waits longer and longer before it makes new
                # ones, though the server is there again. A new pool does not wait.
                await self._renew(pool)

    async def _given_back(self, pool: _Pool, conn: Connection) -> None:
        try:
            await roll_back(conn)
        finally:
            await pool.putconn(conn)

    @asynccontextmanager
    async def _transaction(self, kind: Kind) -> AsyncGenerator[Connection]:
        pool, conn = await self._begun(kind)
        try:
            with bounded(conn, kind.patience):
                with translated(self.label):
                    yield conn
                await commit(conn, self.label)
        finally:
            await self._given_back(pool, conn)


def _pause(failures: int) -> float:
    """Seconds before the next try; spread, so that those who met once do not meet again."""
    spread = 0.5 + secrets.randbelow(1000) / 1000
    return _FIRST_PAUSE * spread * (1 << failures)

"""A proxy in front of Postgres that loses answers, as networks do.

It listens on loopback TCP, forwards to a Unix socket or a host, and reads just enough of the
protocol to know when the client says COMMIT.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_SSL_REQUEST = 80877103
_GSS_REQUEST = 80877104
_CHUNK = 65536
_ENDED = (b"COMMIT\0", b"ROLLBACK\0")  # what CommandComplete says after COMMIT


class Loss(Enum):
    """What is lost at the next COMMIT."""

    QUESTION = "the connection breaks before the server hears COMMIT"
    ANSWER = "the server has committed and the connection breaks before the client hears it"


def _is_commit(text: bytes) -> bool:
    return text.lstrip().upper().startswith(b"COMMIT")


@dataclass(eq=False)
class _Link:
    """One client's connection and ours to the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    muted: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    commits: set[bytes] = field(default_factory=set)

    def says_commit(self, kind: bytes, body: bytes) -> bool:
        """A simple query, a statement to parse, or the use of one that was prepared before."""
        if kind == b"Q":
            return _is_commit(body)
        name, _, text = body.partition(b"\0")
        if kind == b"P":
            # The unnamed statement is parsed anew each time.
            (self.commits.add if _is_commit(text) else self.commits.discard)(name)
            return False
        return kind == b"B" and text.partition(b"\0")[0] in self.commits

    def cut(self) -> None:
        """Break both ends at once."""
        for writer in self._writers():
            writer.transport.abort()

    async def closed(self) -> None:
        """Break both ends and wait until they are gone."""
        self.cut()
        for writer in self._writers():
            with suppress(OSError):
                await writer.wait_closed()

    def _writers(self) -> list[asyncio.StreamWriter]:
        return [self.client] if self.server is None else [self.client, self.server]


class Proxy:
    """Forwards to Postgres until told otherwise.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        lost: How many answers or questions it has lost.
        connections: How many connections it has accepted.
    """

    def __init__(self, upstream: str) -> None:
        """Keep where to forward to: the DSN of the server."""
        self._upstream = {k: str(v) for k, v in conninfo_to_dict(upstream).items() if v}
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._refusing = False
        self._losses: list[Loss] = []
        self.port = 0
        self.lost = 0
        self.connections = 0

    @property
    def dsn(self) -> str:
        """The same database through the proxy."""
        through = {**self._upstream, "host": "127.0.0.1", "port": str(self.port)}
        return make_conninfo(**through)

    def lose(self, what: Loss, times: int = 1) -> None:
        """Lose the next `times` COMMITs, whoever sends them."""
        self._losses += [what] * times

    def cut(self) -> None:
        """Break every connection there is; new ones work."""
        for link in list(self._links):
            link.cut()

    def refuse(self, refusing: bool = True) -> None:
        """Break every connection, and each new one too, until `refuse(False)`."""
        self._refusing = refusing
        self.cut()

    def freeze(self) -> None:
        """Let nothing through in either direction; connections stay open."""
        self._open.clear()

    def thaw(self) -> None:
        """Let everything through again, also what waited."""
        self._open.set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and break every connection."""
        if self._server is not None:
            self._server.close()
        self.refuse()
        self.thaw()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.connections += 1
        link = _Link(writer)
        self._links.add(link)
        try:
            if not self._refusing:
                server_reader, link.server = await self._connect()
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._answers(server_reader, link))
                    group.create_task(self._questions(reader, link, link.server))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._links.discard(link)
            await link.closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._upstream.get("host", "127.0.0.1"), self._upstream.get("port", "5432")
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _answers(self, reader: asyncio.StreamReader, link: _Link) -> None:
        """Server to client."""
        heard = b""
        while data := await reader.read(_CHUNK):
            await self._open.wait()
            if link.muted:
                heard += data
                if any(tag in heard for tag in _ENDED):
                    link.answered.set()
                continue
            link.client.write(data)
            await link.client.drain()
        raise ConnectionResetError

    async def _questions(
        self, reader: asyncio.StreamReader, link: _Link, server: asyncio.StreamWriter
    ) -> None:
        """Client to server, message by message."""
        await self._startup(reader, server)
        loss: Loss | None = None
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
            await self._open.wait()
            commits = link.says_commit(head[:1], body)
            if commits and self._losses and loss is None:
                self.lost += 1
                loss = self._losses.pop(0)
                if loss is Loss.QUESTION:
                    raise ConnectionResetError
            if loss is Loss.ANSWER and head[:1] in (b"Q", b"S"):
                link.muted = True
                server.write(head + body)
                await link.answered.wait()
                raise ConnectionResetError
            server.write(head + body)
            await server.drain()

    async def _startup(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        """The first messages have no type; a request for encryption comes before the startup."""
        while True:
            head = await reader.readexactly(4)
            body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
            await self._open.wait()
            server.write(head + body)
            if struct.unpack("!I", body[:4])[0] not in (_SSL_REQUEST, _GSS_REQUEST):
                return


@asynccontextmanager
async def proxied(dsn: str) -> AsyncGenerator[Proxy]:
    """A proxy in front of the server of `dsn`."""
    proxy = Proxy(dsn)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()

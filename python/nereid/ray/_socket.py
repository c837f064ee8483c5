# SPDX-License-Identifier: Apache-2.0
"""HTTP to the server of this process, over its Unix socket: what clients send is passed on as it is, and so are the
answers."""

from __future__ import annotations

import asyncio
from typing import AsyncIterator, Iterable, Optional

# Fields that are about one connection, and that this side sets itself.
_OF_A_CONNECTION = frozenset(
    (b"connection", b"content-length", b"expect", b"keep-alive", b"proxy-connection", b"te", b"trailer",
     b"transfer-encoding", b"upgrade")
)  # fmt: skip
# How much of an answer may wait in memory until it is read, and the size of the pieces of one that ends with its connection.
_PIECE = 1 << 18
# As many connections without a request are kept open.
_MOST_IDLE = 64

Fields = list[tuple[bytes, bytes]]


class ServerGone(Exception):
    """The server closed a connection without an answer."""


class Answer:
    """The head of an answer, and its body: either whole in `body`, or in pieces by `pieces`. Not both."""

    def __init__(self, status: int, fields: Fields, body: Optional[bytes]) -> None:
        self.status = status
        self.fields = fields
        self.body = body
        self._connection: Optional[_Connection] = None
        self._pool: Optional[Connections] = None

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Ending this early ends the request, which the server then cancels."""
        is_whole = False
        try:
            async for piece in self._connection.chunks():
                yield piece
            is_whole = True
        finally:
            self._pool.give_back(self._connection, is_whole)


class _Connection:
    """One connection, for one request at a time. Confined to an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, head: bytes, body: bytes) -> None:
        """Writes a request. That the server answers and closes before it has read everything is no error."""
        self._writer.write(head)
        if body:
            self._writer.write(body)
        try:
            await self._writer.drain()
        except ConnectionError:
            pass

    async def head(self) -> tuple[int, Fields]:
        """The status and the fields of the answer; raises ServerGone if there is none."""
        try:
            text = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ServerGone("the server closed the connection without an answer") from error
        first, *lines = text[:-4].split(b"\r\n")
        fields = []
        for line in lines:
            name, _, value = line.partition(b":")
            fields.append((name.strip().lower(), value.strip()))
        return int(first.split(b" ", 2)[1]), fields

    async def exactly(self, size: int) -> bytes:
        """The next bytes of the body."""
        return await self._reader.readexactly(size) if size else b""

    async def chunks(self) -> AsyncIterator[bytes]:
        """A body in chunks (RFC 9112, section 7.1), to its end."""
        while True:
            size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
            if size == 0:
                while await self._reader.readuntil(b"\r\n") != b"\r\n":
                    pass
                return
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)

    def close(self) -> None:
        self._writer.close()


class Connections:
    """The connections to one Unix socket. Confined to an event loop."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[_Connection] = []

    async def ask(self, method: str, target: str, fields: Iterable[tuple[bytes, bytes]], body: bytes) -> Answer:
        """Sends a request; returns when the head of its answer is there, and the body if it is not a stream.

        Raises ServerGone if the server closes the connection without an answer.
        """
        head = _head(method, target, fields, len(body))
        while self._idle:
            connection = self._idle.pop()
            try:
                return await self._exchange(connection, method, head, body)
            except ServerGone:
                # The server has closed a connection that was idle for long, and has read nothing of this request: if
                # it had ended, so would have this process.
                continue
        connection = _Connection(*await asyncio.open_unix_connection(self._path, limit=_PIECE))
        return await self._exchange(connection, method, head, body)

    async def _exchange(self, connection: _Connection, method: str, head: bytes, body: bytes) -> Answer:
        is_passed_on = is_whole = False
        try:
            await connection.send(head, body)
            status, fields = await connection.head()
            named = dict(fields)
            kept = [(name, value) for name, value in fields if name not in _OF_A_CONNECTION]
            if named.get(b"transfer-encoding", b"").lower() == b"chunked":
                answer = Answer(status, kept, None)
                answer._connection, answer._pool = connection, self
                is_passed_on = True
                return answer
            has_body = method != "HEAD" and status not in (204, 304)
            size = int(named.get(b"content-length", b"0")) if has_body else 0
            content = await connection.exactly(size)
            is_whole = named.get(b"connection", b"").lower() != b"close"
            return Answer(status, kept, content)
        finally:
            if not is_passed_on:
                self.give_back(connection, is_whole)

    def give_back(self, connection: _Connection, is_whole: bool) -> None:
        """Keeps a connection for the next request, unless its last answer was not read to the end."""
        if is_whole and len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Closes the connections without a request."""
        while self._idle:
            self._idle.pop().close()


def _head(method: str, target: str, fields: Iterable[tuple[bytes, bytes]], size: int) -> bytes:
    lines = [f"{method} {target} HTTP/1.1".encode("ascii")]
    lines += [name + b": " + value for name, value in fields if name not in _OF_A_CONNECTION]
    if size or method not in ("GET", "HEAD"):
        lines.append(b"content-length: %d" % size)
    return b"\r\n".join(lines) + b"\r\n\r\n"

"""HTTP for a node's pages: requests and replies are read and written by h11, connections are bounded here.

h11 knows the protocol and no sockets. A whole server library was tried instead: it would add half again to the memory
of a node that is only scraped, and its import to the start.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import parse_qsl

import h11
import msgspec

PATIENCE_S = 10.0
LARGEST_REQUEST, LARGEST_BODY = 8192, 8192
AT_ONCE, PER_ADDRESS, STREAMS_AT_MOST = 64, 16, 8
TEXT = "text/plain; charset=utf-8"
SAFE = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Request(msgspec.Struct, frozen=True):
    """One request, its body read. `headers`: by their names in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


class Reply(msgspec.Struct, frozen=True):
    """What is answered."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Stream(msgspec.Struct, frozen=True):
    """An answer that goes on until one end has had enough."""

    kind: str
    parts: AsyncIterator[bytes]


Handler = Callable[[Request], Awaitable[Reply | Stream]]


class Requests:
    """Connections to the pages, few in all and fewer from one address.

    One that says nothing makes way for the next: else as many silent ones as there may be would hide a node's health.
    """

    def __init__(self) -> None:
        self._addresses: dict[asyncio.StreamWriter, str] = {}
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self.streams = 0

    def admit(self, writer: asyncio.StreamWriter) -> bool:
        """Whether there is room for one more; a silent one is closed for it where need be."""
        peer_name = writer.get_extra_info("peername")
        address = str(peer_name[0]) if isinstance(peer_name, tuple) else ""
        same = [other for other, from_there in self._addresses.items() if from_there == address]
        crowd = same if len(same) >= PER_ADDRESS else list(self._addresses) if len(self) >= AT_ONCE else []
        if crowd:
            oldest = next((other for other in crowd if other in self._silent), None)
            if oldest is None:
                return False
            self.end(oldest)
            oldest.transport.abort()
        self._addresses[writer] = address
        self._silent[writer] = None
        return True

    def __len__(self) -> int:
        return len(self._addresses)

    def note_complete(self, writer: asyncio.StreamWriter) -> None:
        """It has said what it wants: it is answered, however many come."""
        self._silent.pop(writer, None)

    def end(self, writer: asyncio.StreamWriter) -> None:
        self._addresses.pop(writer, None)
        self._silent.pop(writer, None)


def is_named_by_address(host: str) -> bool:
    """Whether a `Host` is an address or this machine. A page of another site that has its own name point here, to read
    what is served here, comes under that name.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    if name.lower() == "localhost":
        return True
    with suppress(ValueError):
        ipaddress.ip_address(name.strip("[]"))
        return True
    return False


async def read_request(reader: asyncio.StreamReader, http: h11.Connection) -> Request | None:
    """One request; None: the other end has gone. Raises h11.RemoteProtocolError where it is none."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            data = await reader.read(LARGEST_REQUEST)
            http.receive_data(data)
            if not data and head is None:
                return None
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > LARGEST_BODY:
                raise h11.RemoteProtocolError("a body that is too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            path, _, query = head.target.decode("latin-1").partition("?")
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
            return Request(head.method.decode("latin-1"), path, dict(parse_qsl(query)), headers, bytes(body))
        else:
            return None


def _head(http: h11.Connection, status: HTTPStatus, kind: str, more: tuple[tuple[str, str], ...]) -> bytes:
    headers = [("Content-Type", kind), *SAFE, *more, ("Connection", "close")]
    response = h11.Response(status_code=status.value, reason=status.phrase.encode(), headers=headers)
    return http.send(response) or b""


async def _write(writer: asyncio.StreamWriter, http: h11.Connection, reply: Reply, method: str = "GET") -> None:
    more = (*reply.headers, ("Content-Length", str(len(reply.body))))
    data = _head(http, reply.status, reply.kind, more)
    data += b"" if method == "HEAD" else (http.send(h11.Data(data=reply.body)) or b"")
    writer.write(data + (http.send(h11.EndOfMessage()) or b""))
    await writer.drain()


async def _write_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, http: h11.Connection, stream: Stream
) -> None:
    """Until the other end has gone or does not read, or there is no more."""
    writer.write(_head(http, HTTPStatus.OK, stream.kind, ()))
    gone = asyncio.ensure_future(reader.read(1))
    parts = stream.parts
    try:
        while not gone.done():
            following = asyncio.ensure_future(anext(parts, None))
            await asyncio.wait((gone, following), return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                return
            part = following.result()
            if part is None:
                break
            writer.write(http.send(h11.Data(data=part)) or b"")
            async with asyncio.timeout(PATIENCE_S):
                await writer.drain()
        if not gone.done():
            writer.write(http.send(h11.EndOfMessage()) or b"")
    finally:
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        if hasattr(parts, "aclose"):
            await parts.aclose()


class Server:
    """Answers what comes on a socket, one request per connection."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._requests = Requests()

    async def start(self, listener: socket.socket) -> asyncio.Server:
        return await asyncio.start_server(self._serve, sock=listener, limit=LARGEST_REQUEST)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._requests.admit(writer):
            writer.transport.abort()
            return
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
            pass  # cancelled: the process stops, and asyncio (Python 3.11) would log a handler that ends so
        finally:
            self._requests.end(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_REQUEST)
        async with asyncio.timeout(PATIENCE_S):
            try:
                request = await read_request(reader, http)
            except h11.RemoteProtocolError as error:
                if http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    status = HTTPStatus(error.error_status_hint)
                    await _write(writer, http, Reply(status, TEXT, f"{error}\n".encode()))
                return
            if request is None:
                return
            self._requests.note_complete(writer)
            reply = await self._handle(request)
            if isinstance(reply, Stream) and self._requests.streams >= STREAMS_AT_MOST:
                await _close(reply)
                reply = Reply(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"too many pages are open here\n")
            if isinstance(reply, Reply):
                await _write(writer, http, reply, request.method)
                return
        self._requests.streams += 1
        try:
            await _write_on(reader, writer, http, reply)
        finally:
            self._requests.streams -= 1


async def _close(stream: Stream) -> None:
    if hasattr(stream.parts, "aclose"):
        await stream.parts.aclose()

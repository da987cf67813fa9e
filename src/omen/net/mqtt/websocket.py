"""MQTT over WebSocket, for browsers (5.0, section 6): frames of a socket are the bytes of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.net.mqtt.client_link import ClientLink

BUFFER, LOW = 1 << 20, 1 << 18
"""A client that has so much to read is slow, until so little is left."""


class SocketTransport(asyncio.Transport):
    """A WebSocket as the transport that a connection writes to."""

    def __init__(self, socket: ServerConnection, link: ClientLink) -> None:
        super().__init__()
        self._socket = socket
        self._link = link
        self._parts: list[bytes] = []
        self._size = 0
        self._is_closing = self._is_slow = False
        self._news = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()

    def write(self, data: Any) -> None:
        self._parts.append(bytes(data))
        self._size += len(data)
        self._news.set()
        if self._size > BUFFER and not self._is_slow:
            self._is_slow = True
            self._link.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """They are fixed."""

    def get_write_buffer_size(self) -> int:
        return self._size

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        self._news.set()
        self.may_read.set()

    def abort(self) -> None:
        self.close()
        self._socket.transport.abort()

    def pause_reading(self) -> None:
        self.may_read.clear()

    def resume_reading(self) -> None:
        self.may_read.set()

    async def run(self) -> None:
        """Send what is written, in binary frames (MQTT-6.0.0-1), until it is closed."""
        try:
            await self._send_all()
        except ConnectionClosed:
            pass
        finally:
            self.may_read.set()  # who reads finds out that it is over

    async def _send_all(self) -> None:
        while self._parts or not self._is_closing:
            if not self._parts:
                self._news.clear()
                await self._news.wait()
                continue
            data, self._parts = b"".join(self._parts), []
            await self._socket.send(data)
            self._size -= len(data)
            if self._is_slow and self._size < LOW:
                self._is_slow = False
                self._link.resume_writing()
        await self._socket.close()


def _is_local(origin: str) -> bool:
    host = urlsplit(origin).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def origin_check(origins: Sequence[str]) -> Callable[[ServerConnection, Request], Response | None]:
    """Browsers let any page open a socket to any address, this machine's own among them. Where clients need no
    password, pages of this machine and of `origins` alone are let in.
    """

    def check(socket: ServerConnection, request: Request) -> Response | None:
        origin = request.headers.get("Origin")
        if origin is None or origin in origins or "*" in origins or _is_local(origin):
            return None
        return socket.respond(HTTPStatus.FORBIDDEN, f"pages of {origin[:100]} may not connect: see mqtt_ws_origins\n")

    return check


async def listen(
    host: str, port: int, make_link: Callable[[], ClientLink], origins: Sequence[str], largest: int
) -> Server:
    """Serve MQTT over WebSocket; any path will do."""

    async def handle(socket: ServerConnection) -> None:
        link = make_link()
        transport = SocketTransport(socket, link)
        link.connection_made(transport)
        writer = asyncio.ensure_future(transport.run())
        try:
            async for data in socket:
                if isinstance(data, str):
                    break  # MQTT-6.0.0-2
                link.data_received(data)
                await transport.may_read.wait()
        except ConnectionClosed:
            pass
        finally:
            if not transport.is_closing():
                writer.cancel()
            link.connection_lost(None)

    try:
        return await serve(
            handle,
            host,
            port,
            subprotocols=[Subprotocol("mqtt")],
            process_request=origin_check(origins),
            max_size=largest,
            compression=None,
        )
    except OSError as error:
        raise InvalidInput(f"mqtt_ws {host}:{port}: cannot listen there: {error.strerror or error}") from None

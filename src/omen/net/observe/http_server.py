"""A few pages over HTTP: metrics, health, topology. Just enough of the protocol for a scraper and a browser."""

from __future__ import annotations

import asyncio
import json
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from omen.net.observe.health import health_of, readiness_of
from omen.net.observe.metrics import OPENMETRICS, OPENMETRICS_TYPE, PLAIN_TYPE
from omen.net.observe.node_metrics import metrics_of
from omen.net.observe.pages import topology_of

if TYPE_CHECKING:
    from omen.net.broker import Broker

PATIENCE_S = 10.0
LARGEST_REQUEST = 8192
AT_ONCE, PER_ADDRESS = 64, 16
PATHS = ("/metrics", "/livez", "/readyz", "/healthz", "/topology")
TEXT, JSON = PLAIN_TYPE, "application/json"

Answer = tuple[HTTPStatus, str, str]


def answer(broker: Broker, method: str, path: str, accept: str = "") -> Answer:
    """Status, type and text for one request. `accept`: the types that are asked for."""
    if method not in ("GET", "HEAD"):
        return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, "only GET\n"
    match path.partition("?")[0]:
        case "/metrics":
            openmetrics = OPENMETRICS in accept
            return HTTPStatus.OK, OPENMETRICS_TYPE if openmetrics else TEXT, metrics_of(broker, openmetrics)
        case "/livez":
            return HTTPStatus.OK, JSON, json.dumps({"status": "ok", "name": broker.name}) + "\n"
        case "/readyz":
            return _health(readiness_of(broker))
        case "/healthz":
            return _health(health_of(broker))
        case "/topology":
            return HTTPStatus.OK, JSON, json.dumps(topology_of(broker), ensure_ascii=False) + "\n"
        case _:
            return HTTPStatus.NOT_FOUND, TEXT, f"there are {', '.join(PATHS)}\n"


def _health(found: dict[str, Any]) -> Answer:
    status = HTTPStatus.OK if found["status"] == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
    return status, JSON, json.dumps(found) + "\n"


def _accepted(head: bytes) -> str:
    """What the `Accept` of a request says."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    return next((line.partition(":")[2] for line in lines if line.lower().startswith("accept:")), "")


class Requests:
    """Connections to the pages, few in all and fewer from one address.

    One that says nothing makes way for the next: else as many silent ones as there may be would hide a node's health.
    """

    def __init__(self) -> None:
        self._addresses: dict[asyncio.StreamWriter, str] = {}
        self._silent: dict[asyncio.StreamWriter, None] = {}

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


async def serve_pages(broker: Broker, listener: socket.socket) -> asyncio.Server:
    """Serve a broker's pages on a socket."""
    requests = Requests()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not requests.admit(writer):
            writer.transport.abort()
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                requests.note_complete(writer)
                words = head.split(b"\r\n", 1)[0].decode("latin-1").split()
                method, path = (words[0], words[1]) if len(words) == 3 else ("", "")
                status, kind, text = answer(broker, method, path, _accepted(head))
                body = text.encode()
                lines = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
                lines += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(lines.encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            requests.end(writer)
            writer.close()

    return await asyncio.start_server(serve, sock=listener, limit=LARGEST_REQUEST)

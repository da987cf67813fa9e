"""A few pages over HTTP: /metrics, /healthz, /topology. Just enough of the protocol for a scraper and a browser."""

from __future__ import annotations

import asyncio
import json
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING

from omen.net.observe.metrics import OPENMETRICS, OPENMETRICS_TYPE, PLAIN_TYPE
from omen.net.observe.node_metrics import metrics_of
from omen.net.observe.pages import health_of, topology_of

if TYPE_CHECKING:
    from omen.net.broker import Broker

PATIENCE_S = 10.0
LARGEST_REQUEST = 8192
AT_ONCE = 64
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
        case "/healthz":
            health = health_of(broker)
            status = HTTPStatus.OK if health["status"] == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
            return status, JSON, json.dumps(health) + "\n"
        case "/topology":
            return HTTPStatus.OK, JSON, json.dumps(topology_of(broker), ensure_ascii=False) + "\n"
        case _:
            return HTTPStatus.NOT_FOUND, TEXT, "there are /metrics, /healthz and /topology\n"


def _accepted(head: bytes) -> str:
    """What the `Accept` of a request says."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    return next((line.partition(":")[2] for line in lines if line.lower().startswith("accept:")), "")


async def serve_pages(broker: Broker, listener: socket.socket) -> asyncio.Server:
    """Serve a broker's pages on a socket."""
    serving = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal serving
        if serving >= AT_ONCE:
            writer.transport.abort()
            return
        serving += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
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
            serving -= 1
            writer.close()

    return await asyncio.start_server(serve, sock=listener, limit=LARGEST_REQUEST)

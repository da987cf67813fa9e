"""What a node serves over HTTP: metrics, health and topology for programs, the live page for people."""

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
from omen.net.security.config import is_loopback

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.observe.serving import Reply, Request, Stream
    from omen.net.watching.page import LivePage

PATHS = ("/", "/events", "/node", "/metrics", "/livez", "/readyz", "/healthz", "/topology")
TEXT, JSON = PLAIN_TYPE, "application/json"

Answer = tuple[HTTPStatus, str, str]


def answer(broker: Broker, method: str, path: str, accept: str = "") -> Answer:
    """Status, type and text for one request of a program. `accept`: the types that are asked for."""
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


def answer_program(broker: Broker, request: Request) -> Reply:
    """The same, for a server."""
    from omen.net.observe.serving import Reply

    status, kind, text = answer(broker, request.method, request.path, request.headers.get("accept", ""))
    return Reply(status, kind, text.encode())


class PageServer:
    """The pages of a node, while they are served."""

    def __init__(self, server: asyncio.Server, page: LivePage) -> None:
        self._server = server
        self._page = page

    def close(self) -> None:
        """Take no more requests; what is answered already ends with the node."""
        self._server.close()
        self._page.close()


async def serve_pages(broker: Broker, listener: socket.socket) -> PageServer:
    """Serve a broker's pages on a socket. What that needs is loaded here: most nodes that are embedded serve none."""
    from omen.net.observe.serving import Server
    from omen.net.watching.page import LivePage

    page = LivePage(broker, is_loopback(broker.config.http))

    async def handle(request: Request) -> Reply | Stream:
        live = page.answer(request)
        return live if live is not None else answer_program(broker, request)

    return PageServer(await Server(handle).start(listener), page)

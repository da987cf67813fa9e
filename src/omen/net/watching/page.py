"""The live page of a node, what it is fed with, and what only those with the token of the node see.

Everything is read-only. The page stands in one file and may load nothing else (its content security policy names the
hashes of its script and its style). Where it is served on loopback, it is served by address or as `localhost` alone:
the page of another site could have its name point here.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from omen.net.observe.logs import RecentLines
from omen.net.observe.serving import TEXT, Reply, Request, Stream, is_named_by_address
from omen.net.security.credentials import check_private, read_secret
from omen.web import live_page, policy_of

if TYPE_CHECKING:
    from omen.net.broker import Broker

ALIVE_S = 5.0
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
HIDDEN = ("security", "http_token", "mqtt_users", "mqtt_authority")
"""Settings that are shown to nobody: they say where secrets are."""


def page_reply() -> Reply:
    """The page, with the policy that keeps it to itself."""
    text = live_page()
    return Reply(
        HTTPStatus.OK,
        "text/html; charset=utf-8",
        text.encode(),
        (("Content-Security-Policy", policy_of(text)), ("X-Frame-Options", "DENY")),
    )


def refuse(status: HTTPStatus, why: str) -> Reply:
    return Reply(status, TEXT, f"{why}\n".encode())


def has_token(request: Request, token: str) -> bool:
    """Whether a request shows the token; never where there is none."""
    shown = request.headers.get("authorization", "").removeprefix("Bearer ")
    return bool(token) and hmac.compare_digest(shown.encode(), token.encode())


def write_event(identity: str, kind: str, text: str) -> bytes:
    """One event as a browser reads it. JSON holds no line ends."""
    return f"id: {identity}\nevent: {kind}\ndata: {text}\n\n".encode()


class LivePage:
    """`/`, `/events` and `/node` of one node. `about`: what else pages are told of where they come from."""

    def __init__(self, broker: Broker, is_loopback: bool, about: Mapping[str, Any] | None = None) -> None:
        self._broker = broker
        self._more = dict(about or {})
        self._looked_at: list[int | None] = []
        self._token = read_token(broker.config.http_token)
        self._lines = RecentLines(broker.name) if self._token else None
        self._is_loopback = is_loopback

    def close(self) -> None:
        """The node stops: its lines are kept no more."""
        if self._lines is not None:
            self._lines.close()

    def answer(self, request: Request) -> Reply | Stream | None:
        """None: it is none of these pages."""
        if request.path not in ("/", "/events", "/node"):
            return None
        if request.method not in ("GET", "HEAD"):
            return refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
        if not self.is_for_here(request):
            return refuse(HTTPStatus.FORBIDDEN, "ask for this page by address, or as localhost")
        if request.path == "/":
            return page_reply()
        if request.path == "/node":
            return self._node(request)
        if request.method == "HEAD":
            return Reply(HTTPStatus.OK, EVENTS, b"")
        last = request.headers.get("last-event-id") or request.query.get("last", "")
        return Stream(EVENTS, self._events(last, request.query.get("topic", "")))

    def is_for_here(self, request: Request) -> bool:
        """Whether a request comes from a page of this server; one of another site would come under its name."""
        return not self._is_loopback or is_named_by_address(request.headers.get("host", ""))

    def _node(self, request: Request) -> Reply:
        """Settings and the last lines of the log."""
        if not self._token:
            return refuse(HTTPStatus.FORBIDDEN, "this node has no token (the setting http_token)")
        if not has_token(request, self._token):
            return refuse(HTTPStatus.UNAUTHORIZED, "this needs the token of the node")
        settings = {name: value for name, value in asdict(self._broker.config).items() if name not in HIDDEN}
        found = {"name": self._broker.name, "settings": settings, "log": self._lines.lines() if self._lines else []}
        return Reply(HTTPStatus.OK, JSON, json.dumps(found, default=str, ensure_ascii=False).encode())

    async def _events(self, last: str, topic: str) -> AsyncIterator[bytes]:
        """What is gathered, from where this page was. `topic`: the one whose tree it looks at, by its number."""
        gathering = self._broker.gathering
        feed = gathering.open()
        key = feed.key_of(int(topic)) if topic.isdigit() else None
        self._looked_at.append(key)
        self._tell_topics()
        try:
            while not feed.is_ended:
                last, found = feed.since(last, self._about())
                if found:
                    yield b"".join(write_event(*one) for one in found)
                await feed.wait(ALIVE_S)
                if not found:
                    yield b": alive\n\n"
        finally:
            self._looked_at.remove(key)
            self._tell_topics()
            gathering.close()

    def _tell_topics(self) -> None:
        self._broker.gathering.look_at(sorted({topic for topic in self._looked_at if topic is not None}))

    def _about(self) -> dict[str, Any]:
        has_rules = bool(self._broker.admission.access.rules)
        facts = {"cluster": self._broker.config.cluster, "has_token": bool(self._token), "has_rules": has_rules}
        return {**facts, **self._more}


def read_token(path: str) -> str:
    """The token in a file that others cannot read; empty where none is set."""
    if not path:
        return ""
    check_private(path)
    return read_secret(path, "http_token").decode("ascii", "replace")

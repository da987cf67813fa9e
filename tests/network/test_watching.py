"""A live page's stream, gathered from running nodes through the overlay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omen.net.broker import Broker
from omen.net.names import split_address
from omen.net.observe.http_client import fetch
from omen.net.security.access import Access
from omen.net.security.config import Rule

from .brokers import config, go, until


class Viewer:
    """A page without a browser: reads the stream of events of a node."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.last = ""
        self.about: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.topics: dict[str, str] = {}
        self.events: list[list[Any]] = []

    async def read(self, enough: Callable[[], object], query: str = "") -> None:
        host, port = split_address(self.broker.http_address)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET /events?last={self.last}{query} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        fields: dict[str, str] = {}
        while not enough():
            line = (await reader.readline()).decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                self.last = fields["id"]
                self._take(fields["event"], json.loads(fields["data"]))
                fields = {}
        writer.close()

    def _take(self, kind: str, values: dict[str, Any]) -> None:
        if kind == "picture":
            self.about, self.nodes, self.topics, self.events = values, {}, {}, []
        self.topics |= values.get("topics", {})
        self.events += values.get("events", [])
        for index, changed in values.get("nodes", {}).items():
            self.nodes.setdefault(index, {}).update(changed)

    def node(self, name: str) -> dict[str, Any]:
        return next((node for node in self.nodes.values() if node.get("name") == name), {})

    def links(self) -> set[frozenset[str]]:
        return {
            frozenset((node["name"], self.nodes[str(peer)]["name"]))
            for node in self.nodes.values()
            for peer in node["links"]
        }


async def start(count: int, *topics: str, **more: Any) -> list[Broker]:
    """Brokers in a row, each with its two topics of these; the first has a page."""
    brokers: list[Broker] = []
    for number in range(count):
        wanted = (topics[number % len(topics)], topics[(number + 1) % len(topics)])
        join = (brokers[0].address,) if brokers else ()
        http = {"http": "127.0.0.1:0"} if not brokers else {}
        broker = Broker(config(f"n{number}", *wanted, join=join, **http, **more))
        await broker.start()
        brokers.append(broker)
    return brokers


def test_a_page_shows_all_nodes_their_links_the_tree_and_a_crash() -> None:
    async def test() -> None:
        brokers = await start(6, "tea", "jazz", "news")
        page = Viewer(brokers[0])
        await page.read(lambda: len(page.nodes) == 6 and all("links" in node for node in page.nodes.values()))
        real = {
            frozenset((broker.name, broker.driver.peers.label_of(peer)))
            for broker in brokers
            if broker.driver is not None
            for peer in broker.status().neighbours()
        }
        assert page.links() == real
        assert set(page.topics.values()) == {"tea", "jazz", "news"}
        assert page.node("n1")["state"] == "ok"
        tea = next(topic for topic, name in page.topics.items() if name == "tea")
        publishing = asyncio.ensure_future(publish(brokers[2], "tea"))
        await page.read(lambda: any(tea in node.get("tree", {}) for node in page.nodes.values()), f"&topic={tea}")
        assert all(node["into"] >= 0 for node in page.nodes.values())
        publishing.cancel()
        begun = asyncio.get_running_loop().time()
        await brokers[5].abandon()
        await page.read(lambda: page.node("n5").get("fate") == "failed")
        await page.read(lambda: any(event[2] == "repair_finished" for event in page.events))
        assert asyncio.get_running_loop().time() - begun < 30
        assert brokers[1].gathering.sent_bytes > 0
        late = Broker(config("late", "tea", join=(brokers[1].address,)))
        await late.start()
        await page.read(lambda: page.node("late").get("links"))
        for broker in (*brokers[:5], late):
            await broker.abandon()

    go(test())


async def publish(broker: Broker, topic: str) -> None:
    while True:
        await broker.publish(topic, b"x")
        await asyncio.sleep(0.02)


def test_nothing_is_said_while_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omen.net.watching.gathering.LINGER_S", 0.05)
    monkeypatch.setattr("omen.net.watching.gathering.LEASE_S", 1.2)

    async def test() -> None:
        brokers = await start(3, "tea", "jazz")
        await asyncio.sleep(0.3)
        assert sum(broker.gathering.sent_bytes for broker in brokers) == 0
        page = Viewer(brokers[0])
        await page.read(lambda: len(page.nodes) == 3)
        await until(lambda: brokers[0].gathering.feed is None)
        await asyncio.sleep(1.6)
        before = sum(broker.gathering.sent_bytes for broker in brokers)
        await asyncio.sleep(1.5)
        assert sum(broker.gathering.sent_bytes for broker in brokers) == before > 0
        brokers[0].gathering.open()
        for broker in brokers:
            broker.gathering.stop()  # as when a node begins another incarnation
        again = Viewer(brokers[0])
        await again.read(lambda: len(again.nodes) == 3)
        for broker in brokers:
            await broker.abandon()

    go(test())


def test_a_node_of_an_older_revision_is_not_sent_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        brokers = await start(2, "tea", "jazz")
        monkeypatch.setattr("omen.net.member.REVISION", 4)
        old = Broker(config("old", "tea", "jazz", join=(brokers[0].address,)))
        await old.start()
        page = Viewer(brokers[0])
        await page.read(lambda: page.node("n1"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await page.read(lambda: page.node("old"))
        assert old.driver is not None
        assert old.driver.received["Watching"] == 0
        assert old.driver.counters.unreadable_frames == 0
        for broker in (*brokers, old):
            await broker.abandon()

    go(test())


def test_topics_are_shown_by_the_access_rules_of_the_node_with_the_page() -> None:
    """Rules need certificates; here they are put in force afterwards, to see what is told and shown."""
    rules = (
        Rule(topics=("tea",), publish=("*",), subscribe=("*",)),
        Rule(topics=("wages",), publish=("n1",), subscribe=("n1",)),
        Rule(topics=("news/*",), publish=("*",), subscribe=("*",)),
    )

    async def test() -> None:
        first = Broker(config("n0", "tea", http="127.0.0.1:0"))
        await first.start()
        second = Broker(config("n1", "tea", "wages", "news/far", join=(first.address,)))
        await second.start()
        for broker in (first, second):
            broker.admission.access.set_rules(rules)
        page = Viewer(first)
        await page.read(lambda: page.node("n1"))
        assert list(page.topics.values()) == ["tea"], "wages it may not have, news/far it has no part in"
        assert (len(page.node("n1")["topics"]), page.node("n1")["topics_hidden"]) == (1, 2)
        assert page.about["has_rules"]
        for broker in (first, second):
            await broker.abandon()

    assert Access(rules, "n0").name_of(1) is None
    go(test())


def test_settings_and_log_lines_are_for_those_with_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-nobody-guesses\n")
    token.chmod(0o600)

    async def ask(broker: Broker, path: str, *lines: str) -> tuple[int, str]:
        host, port = split_address(broker.http_address)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write("\r\n".join((f"GET {path} HTTP/1.1", *lines, "Connection: close", "", "")).encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        return int(head.split(" ")[1]), body

    async def test() -> None:
        async with (
            Broker(config("ann", "tea", http="127.0.0.1:0", http_token=str(token), mqtt_users="users")) as ann,
            Broker(config("bob", "tea", join=(ann.address,), http="127.0.0.1:0")) as bob,
        ):
            host = "Host: 127.0.0.1"
            assert (await ask(ann, "/node", host))[0] == 401
            assert (await ask(ann, "/node", host, "Authorization: Bearer wrong"))[0] == 401
            status, text = await ask(ann, "/node", host, "Authorization: Bearer a-token-that-nobody-guesses")
            told = json.loads(text)
            assert status == 200
            assert told["settings"]["name"] == "ann"
            assert not {"security", "http_token", "mqtt_users"} & set(told["settings"])
            assert (await ask(bob, "/node", host, "Authorization: Bearer "))[0] == 403
            assert (await ask(ann, "/", host))[0] == 200
            assert (await ask(ann, "/", "Host: evil.example"))[0] == 403
            assert (await ask(ann, "/metrics", "Host: evil.example"))[0] == 200
            assert (await fetch(ann.http_address, "/"))[1].startswith("<!doctype html>")

    go(test())

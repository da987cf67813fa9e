"""What a viewer has gathered, as pages get it."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

from bench.live_page import MadeUp

from omen.net.watching import feed as feeds
from omen.net.watching.feed import FORGET_S, SILENT_S, Feed
from omen.net.watching.messages import Entry, Event, NodeDigest, Stall

ANN, BOB, TEA, SECRET = 1 << 60, 3 << 61, 1 << 63, 77


class Page:
    """A page that gets everything."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.last = ""
        self.pictures = 0
        self.nodes: dict[str, Any] = {}
        self.topics: dict[str, str] = {}
        self.events: list[Any] = []

    def look(self) -> int:
        self.last, found = self.feed.since(self.last, {"cluster": "shop"})
        for _, kind, text in found:
            values = json.loads(text)
            if kind == "picture":
                self.pictures += 1
                self.nodes, self.topics, self.events = values["nodes"], values["topics"], []
                continue
            self.topics |= values.get("topics", {})
            self.events += values.get("events", [])
            for index, changed in values.get("nodes", {}).items():
                if changed is None:
                    del self.nodes[index]
                else:
                    self.nodes.setdefault(index, {}).update(changed)
        return len(found)

    def named(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(node for node in self.nodes.values() if node.get("name") == name)
        return found


def make_feed() -> Feed:
    return Feed(ANN, lambda key, told: None if key == SECRET else told, clock=lambda: 1_000.0)


def whole(name: str, *links: int) -> NodeDigest:
    return NodeDigest(name=name, state="ok", links=links, topics=(TEA, SECRET), carried=(), names={TEA: "tea"}, out=1.0)


def told(node: int, number: int, changed: NodeDigest, *events: Event, incarnation: int = 1) -> Entry:
    return Entry(node, incarnation, number, changed, events)


def both() -> tuple[Feed, Page]:
    feed = make_feed()
    feed.take(told(ANN, 1, whole("ann", BOB)), 0.0)
    feed.take(told(BOB, 1, whole("bob", ANN)), 0.0)
    feed.turn(1.0)
    page = Page(feed)
    page.look()
    return feed, page


def test_a_page_gets_a_picture_and_then_what_changes() -> None:
    feed, page = both()
    assert page.topics == {"1": "tea"}
    assert page.named("ann")["links"] == [2]
    assert (page.named("bob")["topics"], page.named("bob")["topics_hidden"]) == ([1], 1)
    feed.take(told(BOB, 2, NodeDigest(out=5.0, stalled=(Stall(TEA, "eve", 3, 4.0), Stall(SECRET, "eve", 1, 1.0)))), 1.1)
    feed.turn(2.0)
    assert page.look() == 1
    assert (page.named("bob")["out"], page.named("bob")["links"]) == (5.0, [1])
    assert page.named("bob")["stalled"] == [[1, "eve", 3, 4.0]], "nothing of a topic that is hidden"
    assert page.look() == 0
    assert "77" not in json.dumps([page.nodes, page.topics])


def test_what_was_lost_on_the_way_is_asked_for_again_and_not_guessed() -> None:
    feed, page = both()
    assert not feed.is_short
    assert not feed.take(told(BOB, 3, NodeDigest(out=9.0)), 1.1)
    assert feed.is_short
    assert feed.lacking() == [BOB]
    feed.take(told(BOB, 4, NodeDigest(out=8.0)), 1.2)
    feed.turn(2.0)
    page.look()
    assert page.named("bob")["out"] == 1.0
    feed.take(told(BOB, 1, whole("bob")), 2.1)
    assert feed.lacking() == []
    feed.turn(3.0)
    page.look()
    assert page.named("bob")["links"] == []


def test_a_node_declared_failed_is_failed_until_its_next_incarnation() -> None:
    feed, page = both()
    failed = Event(1, 1_000_000, "peer_declared_failed", BOB, 1)
    feed.take(told(ANN, 2, NodeDigest(), failed), 1.1)
    feed.take(told(ANN, 3, NodeDigest(), failed), 1.1)
    feed.turn(2.0)
    page.look()
    assert page.named("bob")["fate"] == "failed"
    assert page.events == [[1_000_000, 1, "peer_declared_failed", 2, ""]]
    feed.take(told(BOB, 2, NodeDigest(out=3.0)), 2.1)
    feed.turn(3.0)
    page.look()
    assert page.named("bob")["fate"] == "failed"
    feed.take(told(BOB, 1, whole("bob"), incarnation=2), 3.1)
    feed.turn(4.0)
    page.look()
    assert (page.named("bob")["fate"], page.named("bob")["incarnation"]) == (None, 2)


def test_an_event_of_long_ago_declares_nobody_failed_now() -> None:
    feed, page = both()
    feed.take(told(ANN, 2, NodeDigest(), Event(1, 900_000, "peer_declared_failed", BOB, 1)), 1.1)
    feed.turn(2.0)
    page.look()
    assert page.named("bob").get("fate") is None
    assert len(page.events) == 1


def test_a_node_that_says_nothing_is_silent_and_in_the_end_forgotten() -> None:
    feed, page = both()
    feed.take(told(ANN, 2, NodeDigest()), SILENT_S)
    feed.turn(SILENT_S + 0.1)
    page.look()
    assert (page.named("bob")["fate"], page.named("ann").get("fate")) == ("silent", None)
    feed.take(told(BOB, 2, NodeDigest()), SILENT_S + 1)
    feed.turn(SILENT_S + 2)
    page.look()
    assert page.named("bob")["fate"] is None
    feed.turn(2 * SILENT_S + 3)
    feed.turn(2 * SILENT_S + FORGET_S + 4)
    page.look()
    assert [node.get("name") for node in page.nodes.values()] == []


def test_a_page_that_was_away_goes_on_where_it_was_or_begins_anew(monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "TICKS_AT_MOST", 5)
    feed, page = both()
    late = Page(feed)
    for number in range(2, 5):
        feed.take(told(BOB, number, NodeDigest(out=float(number))), 0.0)
        feed.turn(float(number))
    assert page.look() == 3
    assert page.pictures == 1
    for number in range(5, 20):
        feed.take(told(BOB, number, NodeDigest(out=float(number))), 0.0)
        feed.turn(float(number))
    assert page.look() == 1 + 5
    late.look()
    assert page.pictures == 2
    assert page.nodes == late.nodes
    assert page.named("bob")["out"] == 19.0
    assert page.topics == {"1": "tea"}


def test_a_viewer_keeps_no_more_nodes_than_it_may(monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "NODES_AT_MOST", 3)
    feed = make_feed()
    for place in range(1, 10):
        feed.take(told(place, 1, whole(f"n{place}")), 0.0)
    feed.turn(1.0)
    page = Page(feed)
    page.look()
    assert len(page.nodes) == 3


def test_a_node_that_makes_up_places_and_topics_does_not_fill_the_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "PLACES_AT_MOST", 10)
    monkeypatch.setattr(feeds, "TOPICS_AT_MOST", 10)
    feed = Feed(ANN, lambda key, told: f"topic {key}", clock=lambda: 1_000.0)
    for number in range(1, 6):
        made_up = range(100 * number, 100 * number + 50)
        feed.take(told(1, 1, NodeDigest(name="eve", links=tuple(made_up), topics=tuple(made_up), carried=())), 0.0)
        feed.turn(float(number))
    page = Page(feed)
    page.look()
    assert len(page.topics) == 10
    assert page.named("eve")["links"] == []
    assert feed.take(told(999, 1, whole("late")), 6.0) is False


def test_a_node_that_has_joined_is_asked_for_at_once() -> None:
    feed, _ = both()
    feed.take(told(ANN, 2, NodeDigest(), Event(1, 1_000_000, "repair_finished", BOB, 1, "leave, links 1")), 1.1)
    assert not feed.is_short
    feed.take(told(ANN, 3, NodeDigest(), Event(2, 1_000_000, "repair_finished", 555, 1, "join, links 1")), 1.2)
    assert feed.is_short


def test_a_viewer_takes_no_more_memory_once_its_history_is_full(monkeypatch: Any) -> None:
    """By a made-up cluster that changes with every turn."""
    monkeypatch.setattr(feeds, "TICKS_AT_MOST", 200)
    made_up, viewer = MadeUp(20), Feed(1, lambda _, told: told)
    entries, held = made_up.begin(), []
    tracemalloc.start()
    try:
        for turn in range(1, 1501):
            for entry in entries:
                viewer.take(entry, turn / 4)
            viewer.turn(turn / 4)
            entries = made_up.turn()
            if turn in (500, 1500):
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] < 1.1 * held[0]

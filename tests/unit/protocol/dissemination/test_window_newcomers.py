"""Newcomers and windows: where they begin, what they are owed, and what they are given of what was before."""

from __future__ import annotations

import pytest

from omen.protocol.dissemination.window import OVERHEAD
from omen.protocol.messages.publications import (
    Publication,
)
from unit.protocol.dissemination.neighbourhood import Neighbourhood, kept, publish_many

SECOND = 1000


def join(nodes: Neighbourhood, node: int, to: int, replay: bool = False) -> None:
    nodes.waiting.add(node)
    nodes.add(node)
    if replay:
        nodes.replay(node)
    nodes.link(node, to)
    nodes.run(500)
    nodes.waiting.discard(node)
    nodes.refresh()


def test_a_newcomer_starts_at_what_comes_next_without_a_gap() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=30 * (OVERHEAD + 1029))
    publish_many(nodes, 1, 50)
    join(nodes, 3, 2)
    assert nodes.given[3] == []
    publish_many(nodes, 1, 3)
    nodes.run(1 * SECOND)
    assert nodes.sequences(3, 1) == [51, 52, 53]


@pytest.mark.parametrize("silent_s", [2, 25, 45])
def test_a_newcomer_is_owed_nothing_of_a_publisher_that_has_been_silent_for_long(silent_s: int) -> None:
    """Its windows may have aged while it is still compared: what it published last was before the newcomer's time."""
    nodes = Neighbourhood([(1, 2), (2, 3)])
    nodes.run(3000)
    for _ in range(200):
        nodes.publish(1)
        nodes.run(40)
    nodes.crash(1)
    nodes.refresh()
    nodes.run(1000 * silent_s)
    nodes.waiting.add(4)
    nodes.add(4)
    nodes.link(3, 4)
    nodes.waiting.discard(4)
    nodes.refresh()
    nodes.run(3000)
    assert nodes.given[4] == []


def test_a_newcomer_that_asks_gets_the_window() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=30 * (OVERHEAD + 1029))
    publish_many(nodes, 1, 50, bytes(1000))
    join(nodes, 3, 2, replay=True)
    first = nodes.sequences(3, 1)[0]
    assert 15 < first < 40 and nodes.sequences(3, 1) == list(range(first, 51))
    publish_many(nodes, 1, 3)
    assert nodes.sequences(3, 1) == list(range(first, 54))


def test_a_newcomer_may_ask_later_as_long_as_nothing_was_delivered() -> None:
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 5)
    join(nodes, 3, 2)
    nodes.replay(3)
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5]
    publish_many(nodes, 1, 1)
    nodes.replay(3)
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5, 6]


def test_a_newcomer_passes_on_what_it_did_not_deliver() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    publish_many(nodes, 1, 3)
    nodes.run(1 * SECOND)
    nodes.unlink(2, 3)
    publish_many(nodes, 1, 3)
    join(nodes, 4, 2)
    nodes.link(4, 3)
    nodes.run(1 * SECOND)
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5, 6]
    assert nodes.given[4] == []


def test_a_newcomer_with_several_links_pulls_the_window_once_and_sends_it_to_nobody() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 3)])
    publish_many(nodes, 1, 100)
    nodes.run(1 * SECOND)
    sent = nodes.sent[Publication]
    nodes.waiting.add(4)
    nodes.add(4)
    for other in (1, 2, 3):
        nodes.links.add(frozenset({4, other}))
    nodes.refresh()
    nodes.run(1 * SECOND)
    assert kept(nodes, 4) == 100
    assert nodes.sent[Publication] - sent <= 110


def test_a_newcomer_while_publications_flow_misses_nothing_after_it_is_linked() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 3)])
    publish_many(nodes, 1, 20)
    nodes.waiting.add(4)
    nodes.add(4)
    nodes.link(4, 3)
    publish_many(nodes, 1, 5)
    nodes.waiting.discard(4)
    nodes.link(4, 2)
    publish_many(nodes, 1, 20)
    nodes.run(1 * SECOND)
    got = nodes.sequences(4, 1)
    assert got == list(range(got[0], 46))
    assert got[0] <= 26

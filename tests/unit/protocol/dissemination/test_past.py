"""Publishers that have been silent for long: whoever missed their last publications is told so, without a next one."""

from __future__ import annotations

from typing import Any

from omen.protocol.dissemination.past import FORMER_AT_MOST, Past
from omen.protocol.events import SECOND
from omen.protocol.messages.publications import Announce, Publication, stream_key
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood

PROMISE_MS = 10_000.0
SILENCE_MS = 15_000.0
"""Windows last 6 s here, and publishers are told of for 12."""
MISSED = [1, 2, -3, -4]


def neighbourhood(*links: tuple[int, int]) -> Neighbourhood:
    return Neighbourhood(links, window_age=6 * SECOND, stream_memory=0)


def publish_two(nodes: Neighbourhood) -> None:
    for _ in range(2):
        nodes.publish(1)
    nodes.run(1000)


def test_who_was_cut_off_is_told_what_it_missed_when_it_is_linked_again_after_a_long_silence() -> None:
    nodes = neighbourhood((1, 2), (2, 3))
    publish_two(nodes)
    nodes.unlink(2, 3)
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    assert not any(part.topics[TOPIC].streams for part in nodes.parts.values())
    nodes.link(2, 3)
    nodes.run(PROMISE_MS)
    assert nodes.sequences(3, 1) == MISSED
    publish_two(nodes)
    assert nodes.sequences(3, 1) == [*MISSED, 5, 6]


def test_who_was_a_slow_consumer_all_the_time_is_told_when_it_reads_again() -> None:
    nodes = neighbourhood((1, 2))
    publish_two(nodes)
    nodes.behind(1, 2)
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    nodes.ready(1, 2)
    nodes.run(PROMISE_MS)
    assert nodes.sequences(2, 1) == MISSED


def test_a_neighbour_that_heard_nothing_for_long_is_told_when_it_hears_again() -> None:
    nodes = neighbourhood((1, 2))
    publish_two(nodes)
    nodes.drops = lambda sender, to, message: to == 2
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    nodes.drops = lambda sender, to, message: False
    nodes.run(PROMISE_MS)
    assert nodes.sequences(2, 1) == MISSED


def test_what_was_missed_is_told_further_on_too() -> None:
    nodes = neighbourhood((1, 2), (2, 3), (3, 4), (4, 5))
    publish_two(nodes)
    nodes.unlink(2, 3)
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    nodes.link(2, 3)
    nodes.run(PROMISE_MS)
    assert nodes.sequences(3, 1) == nodes.sequences(4, 1) == nodes.sequences(5, 1) == MISSED


def test_a_tail_announced_by_a_publisher_that_then_left_is_told() -> None:
    nodes = neighbourhood((1, 2), (2, 3))
    publish_two(nodes)
    nodes.drops = lambda sender, to, message: sender == 1 and type(message) is Publication
    publish_two(nodes)
    nodes.crash(1)
    nodes.refresh()
    nodes.run(PROMISE_MS)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == MISSED


def test_a_tail_announced_to_a_node_that_was_then_alone_is_told_when_it_is_linked_again() -> None:
    nodes = neighbourhood((1, 2), (2, 3))
    publish_two(nodes)
    nodes.unlink(2, 3)
    nodes.drops = lambda sender, to, message: sender == 1 and type(message) is Publication
    publish_two(nodes)
    nodes.crash(1)
    nodes.refresh()
    nodes.run(SILENCE_MS)
    nodes.link(2, 3)
    nodes.run(PROMISE_MS)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == MISSED


def test_who_was_there_and_never_heard_of_a_publisher_is_told_and_a_newcomer_is_not() -> None:
    nodes = neighbourhood((2, 3), (1, 4))
    nodes.run(3000)
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    nodes.waiting = {5}
    nodes.add(5, refresh=False)
    nodes.link(4, 5)
    nodes.waiting = set()
    nodes.link(2, 4)
    nodes.run(PROMISE_MS)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == [-1, -2]
    assert nodes.sequences(5, 1) == []


def test_neighbours_that_are_equally_far_say_it_once_on_a_new_link_and_never_again() -> None:
    nodes = neighbourhood((1, 2))
    publish_two(nodes)
    nodes.run(SILENCE_MS)
    nodes.unlink(1, 2)
    nodes.link(1, 2)
    nodes.sent.clear()
    nodes.refresh()
    nodes.run(PROMISE_MS)
    assert nodes.sent[Announce] == 0
    assert not any(part.topics[TOPIC].streams for part in nodes.parts.values())


def test_a_copy_of_something_from_long_ago_is_not_delivered_again() -> None:
    nodes = neighbourhood((1, 2))
    kept: list[Any] = []
    nodes.drops = lambda sender, to, message: bool(kept.append(message))
    publish_two(nodes)
    nodes.drops = lambda sender, to, message: False
    nodes.run(SILENCE_MS)
    first = next(message for message in kept if type(message) is Publication)
    assert not nodes.parts[2].receive(1, first, nodes.now)
    assert nodes.sequences(2, 1) == [1, 2]


def test_the_streams_that_were_noted_first_make_way() -> None:
    past = Past()
    for publisher in range(FORMER_AT_MOST + 3):
        past.note(stream_key(TOPIC, publisher, 1), 1, 1, 0, 0)
    assert past.get(stream_key(TOPIC, 2, 1)) is None
    assert past.get(stream_key(TOPIC, 3, 1)) is not None
    assert sum(1 for _ in past.of(TOPIC)) == FORMER_AT_MOST


def test_word_of_what_is_missing_passes_a_chain_of_nodes_without_waiting_for_each_of_their_gaps() -> None:
    """Busy worlds with windows of a tenth of a second: each hop added the five seconds after which a hole ends."""
    nodes = Neighbourhood([(1, 2), (2, 3), (3, 4), (4, 5)])
    publish_two(nodes)
    nodes.drops = lambda sender, to, message: sender == 1 and type(message) is Publication
    publish_two(nodes)
    nodes.crash(1)
    nodes.refresh()
    nodes.run(PROMISE_MS)
    assert nodes.sequences(5, 1) == MISSED


def test_a_node_just_linked_is_owed_what_was_published_since_then() -> None:
    """Its link to the publisher's piece of the topic comes later, and that keeps less: the rest is told."""
    nodes = Neighbourhood([(1, 4), (2, 3)], total_window_bytes=20_000)
    nodes.run(3000)
    nodes.publish(1)
    nodes.waiting = {5}
    nodes.add(5, refresh=False)
    nodes.link(3, 5)
    nodes.run(100)
    nodes.waiting = set()
    nodes.refresh()
    for _ in range(200):
        nodes.publish(1)
        nodes.run(5)
    nodes.link(4, 5)
    nodes.run(PROMISE_MS)
    got = nodes.sequences(5, 1)
    assert [abs(sequence) for sequence in got] == list(range(abs(got[0]), 202))
    assert -2 in got and 201 in got


def test_a_newcomer_does_not_miss_after_a_long_silence_either_what_was_before_its_time() -> None:
    """It has fetched the window, and was given nothing of it."""
    nodes = Neighbourhood([(1, 2), (2, 3)])
    for _ in range(5):
        nodes.publish(1)
    nodes.run(2000)
    nodes.unlink(2, 3)
    for _ in range(5):
        nodes.publish(1)
    nodes.run(4000)
    nodes.add(4, refresh=False)
    nodes.parts[4].note_joining(nodes.now)
    nodes.link(3, 4)
    nodes.run(1000)
    assert len(nodes.parts[4].kept(TOPIC)) == 5
    nodes.run(100_000)
    nodes.link(2, 4)
    nodes.run(10_000)
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5, -6, -7, -8, -9, -10]
    assert nodes.sequences(4, 1) == []
    nodes.publish(1)
    nodes.run(1000)
    assert nodes.sequences(4, 1) == [11]

"""What a newcomer begins with, fetches of the time before it, and counts for."""

from __future__ import annotations

import pytest

from omen.protocol.events import MILLISECOND, SECOND, Held, NodeId
from omen.protocol.messages.publications import Announce, Publication, StreamMark
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood


def join(nodes: Neighbourhood, node: NodeId, near: NodeId, takes: float = 0) -> None:
    """A node that is linked for the first time, which takes so many milliseconds."""
    nodes.waiting.add(node)
    nodes.add(node)
    nodes.link(near, node)
    nodes.run(takes)
    nodes.waiting.discard(node)
    nodes.refresh()


@pytest.mark.parametrize(
    "sizes", [[3000] * 100, [20_000] * 60, [1100] * 240 + [1 << 20] * 8, [300_000] * 20 + [10] * 50]
)
def test_a_newcomer_fetches_a_window_that_is_larger_than_one_answer(sizes: list[int]) -> None:
    nodes = Neighbourhood([(1, 2)])
    for size in sizes:
        nodes.publish(1, bytes(size))
        nodes.run(5)
    join(nodes, 3, 2, takes=100)
    nodes.run(2000)
    assert len(nodes.parts[3].kept(TOPIC)) == len(sizes)
    assert nodes.over[2, 3] < 5 * len(sizes), "an answer that is full is not asked for again and again"


def test_who_was_cut_off_gets_all_through_a_newcomer() -> None:
    nodes = Neighbourhood([(1, 2), (2, 4)])
    nodes.publish(1)
    nodes.run(1000)
    nodes.unlink(2, 4)
    for _ in range(200):
        nodes.publish(1, bytes(3000))
        nodes.run(10)
    join(nodes, 3, 2, takes=100)
    nodes.run(900)
    nodes.link(3, 4)
    nodes.run(3000)
    assert nodes.sequences(4, 1) == list(range(1, 202))


def test_what_came_to_a_newcomer_before_it_knew_where_the_stream_begins_is_delivered() -> None:
    """Its neighbour is a newcomer too; the publisher said little for long, and then much."""
    nodes = Neighbourhood([(1, 2)])
    nodes.latency = lambda sender, to: 20 * MILLISECOND
    nodes.publish(1)
    nodes.run(7000)
    join(nodes, 3, 2)
    join(nodes, 4, 3)
    nodes.run(5)
    for _ in range(100):
        nodes.publish(1)
        nodes.run(1)
    nodes.run(3000)
    assert nodes.sequences(4, 1) == list(range(2, 102))


@pytest.mark.parametrize("silent_s", [5, 25])
def test_what_was_over_before_a_newcomer_is_not_told_where_the_first_comparison_comes_late(silent_s: int) -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.latency = lambda sender, to: (2100 if 3 in (sender, to) else 1) * MILLISECOND
    for _ in range(200):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(1000 * silent_s)
    join(nodes, 3, 2)
    nodes.run(12_000)
    assert nodes.given[3] == []


def test_a_neighbour_that_still_fetches_does_not_hold() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    nodes.latency = lambda sender, to: 20 * MILLISECOND
    nodes.publish(1)
    nodes.run(1000)
    nodes.crash(2)
    nodes.refresh()
    for _ in range(60):
        nodes.publish(1, bytes(20_000))
    nodes.run(500)
    join(nodes, 4, 1, takes=100)
    while nodes.parts[1].unheld(frozenset()):
        assert nodes.now < 10**7
        nodes.run(5)
    assert len(nodes.parts[4].kept(TOPIC)) == 61


@pytest.mark.parametrize("later_ms", [0, 10, 40])
def test_a_newcomer_misses_nothing_of_a_burst_whichever_neighbours_word_comes_first(later_ms: int) -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    nodes.latency = lambda sender, to: (80 if {sender, to} == {2, 4} else 1) * MILLISECOND
    for _ in range(3):
        nodes.publish(1)
    nodes.run(6000)
    join(nodes, 4, 2)
    nodes.run(10)
    burst = [nodes.publish(1) for _ in range(10)]
    nodes.run(later_ms)
    nodes.link(3, 4)
    nodes.run(3000)
    assert nodes.sequences(4, 1) == burst


@pytest.mark.parametrize("apart_ms", [300, 1000, 1500])
def test_two_newcomers_miss_nothing_that_was_published_before_they_met_the_rest(apart_ms: int) -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(1)
    nodes.run(30_000)
    nodes.waiting |= {3, 4}
    nodes.add(3)
    nodes.add(4)
    nodes.link(3, 4)
    nodes.waiting.clear()
    nodes.refresh()
    meanwhile = []
    for _ in range(100):
        nodes.run(apart_ms / 200)
        meanwhile.append(nodes.publish(1))
    nodes.run(apart_ms / 2)
    nodes.link(2, 3)
    nodes.run(3000)
    for node in (3, 4):
        assert nodes.sequences(node, 1) == meanwhile


@pytest.mark.parametrize("alone_ms", [1, 700, 3000, 10_700, 15_000])
def test_a_newcomer_taken_in_without_a_link_misses_nothing_published_before_it_has_one(alone_ms: int) -> None:
    """Two that begin at once, the only subscribers of a topic, may be handled one without the other."""
    nodes = Neighbourhood([(1, 2)])
    for _ in range(30):
        nodes.publish(1)
        nodes.run(100)
    nodes.add(3)
    nodes.run(1)
    for _ in range(5):
        nodes.publish(1)
    nodes.run(alone_ms)
    nodes.link(2, 3)
    nodes.run(11_000)
    assert [number for number in nodes.sequences(3, 1) if number > 30] == [31, 32, 33, 34, 35]
    assert all(number > 0 for number in nodes.sequences(3, 1)), "what was before its time is not told as a gap"


def test_windows_shorter_than_the_time_since_a_newcomer_was_linked_are_told() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=4000)
    for _ in range(3):
        nodes.publish(1)
        nodes.run(1000)
    nodes.add(3)
    nodes.run(300)
    for _ in range(40):
        nodes.publish(1)
    nodes.run(3000)
    nodes.link(2, 3)
    nodes.run(11_000)
    given = nodes.sequences(3, 1)
    assert sorted(abs(number) for number in given if abs(number) > 3) == list(range(4, 44))
    assert any(number < 0 for number in given)


def test_a_topic_given_up_with_publications_that_no_neighbour_has_is_told_as_a_gap() -> None:
    nodes = Neighbourhood([(1, 2)])
    deaf = True
    nodes.drops = lambda sender, to, message: deaf
    for _ in range(5):
        nodes.publish(1)
    nodes.run(300)
    nodes.want(1, [])
    nodes.run(500)
    deaf = False
    nodes.want(1, [TOPIC])
    nodes.run(300)
    for _ in range(3):
        nodes.publish(1)
    nodes.run(12_000)
    assert nodes.sequences(2, 1) == [-1, -2, -3, -4, -5, 6, 7, 8]
    assert nodes.parts[1].not_held == 5
    assert nodes.held[1][-1] == Held(TOPIC, 8, 5)


def test_what_a_neighbour_was_told_as_a_gap_it_does_not_hold() -> None:
    nodes = Neighbourhood([(1, 2)], window_age=3 * SECOND)
    nodes.publish(1)
    nodes.run(1000)
    deaf = True
    nodes.drops = lambda sender, to, message: deaf
    for _ in range(4):
        nodes.publish(1)
    nodes.run(5000)
    assert nodes.parts[1].unheld(frozenset()) == 4, "also what has left the window is not held"
    deaf = False
    nodes.publish(1)
    nodes.run(12_000)
    assert nodes.sequences(2, 1) == [1, -2, -3, -4, -5, 6]
    assert nodes.held[1] == [Held(TOPIC, 1), Held(TOPIC, 6, 5)]
    assert nodes.parts[1].not_held == 4
    assert nodes.parts[1].unheld(frozenset()) == 0


def test_a_newcomer_that_begins_in_the_middle_holds_once_it_has_fetched_the_rest() -> None:
    nodes = Neighbourhood([(1, 2)])
    for _ in range(20):
        nodes.publish(1)
        nodes.run(100)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.unlink(1, 2)
    nodes.publish(1)
    nodes.link(1, 3)
    nodes.waiting.discard(3)
    nodes.refresh()
    for _ in range(10):
        nodes.publish(1)
        nodes.run(20)
    nodes.run(3000)
    assert nodes.held[1][-1].sequence == 31
    assert not nodes.false_held
    assert {number for _, number in nodes.had[3]} == set(range(1, 32))


def test_what_no_neighbour_could_have_had_is_not_counted_as_not_held() -> None:
    nodes = Neighbourhood([(1, 2)], window_age=3 * SECOND)
    nodes.crash(2)
    nodes.refresh()
    for _ in range(50):
        nodes.publish(1)
        nodes.run(200)
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.link(1, 3)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.run(2000)
    last = nodes.held[1][-1]
    assert last.sequence == 50
    assert last.passed > 0
    assert nodes.parts[1].not_held == 0
    assert nodes.parts[1].unheld(frozenset()) == 0


def test_a_neighbour_cannot_hold_more_than_was_published() -> None:
    """One that says so is wrong: what is published next is not held before it was sent."""
    nodes = Neighbourhood([(1, 2), (1, 3)])
    for _ in range(10):
        nodes.publish(1)
        nodes.run(10)
    nodes.run(1000)
    for peer in (2, 3):
        mark = StreamMark(1, 1, 1, 1, 1 << 62, 10, 0, 1 << 62)
        nodes.parts[1].on_control(peer, Announce(((TOPIC, (mark,)),)), nodes.now)
    assert nodes.held[1][-1].sequence == 10
    nodes.publish(1)
    assert nodes.parts[1].unheld(frozenset()) == 1


def test_what_follows_something_that_a_newcomer_was_given_is_not_passed_over_however_old_it_is() -> None:
    """It came to the newcomer late, over a thin link, from before it was linked; the rest must follow it or be told."""
    nodes = Neighbourhood([(1, 2)])
    nodes.latency = lambda sender, to: 6 * SECOND if {sender, to} == {1, 2} else MILLISECOND
    nodes.drops = lambda sender, to, message: type(message) is not Publication or message.sequence > 2
    for _ in range(4):
        nodes.publish(1)
    nodes.run(3000)
    join(nodes, 3, 2)
    nodes.run(4000)
    assert nodes.sequences(3, 1) == [1, 2]
    nodes.crash(2)
    nodes.drops = lambda sender, to, message: False
    nodes.link(1, 3)
    nodes.run(1000)
    nodes.publish(1)
    nodes.run(1000)
    assert [abs(sequence) for sequence in nodes.sequences(3, 1)] == [1, 2, 3, 4, 5]

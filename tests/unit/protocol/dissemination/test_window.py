"""What nodes keep of publications, how two of them make up for what either lacks, and what is said of the rest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from omen.net.settings import LIVE
from omen.protocol.config import Dissemination
from omen.protocol.dissemination.window import OVERHEAD
from omen.protocol.events import Deliver, Gap
from omen.protocol.messages.publications import (
    Announce,
    Publication,
    RetransmissionRequest,
    make_publication,
    stream_key,
)
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood, kept, publish_many

SECOND = 1000
NEVER = lambda sender, to, message: False  # noqa: E731


def test_windows_are_bounded_by_bytes_and_age() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=100 * (OVERHEAD + 129))
    publish_many(nodes, 1, 300, bytes(100))
    assert 80 <= kept(nodes, 1) <= 100 and 80 <= kept(nodes, 2) <= 100
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 30)
    nodes.run(25 * SECOND)
    assert kept(nodes, 1) == kept(nodes, 2) == 0


def test_by_default_twenty_seconds_of_a_thousand_publications_per_second_of_1_kb_are_kept() -> None:
    assert Dissemination().total_window_bytes * 31 // 32 > 20 * 1000 * (OVERHEAD + 29 + 1024)


def test_a_window_that_bytes_cut_below_the_time_of_a_repair_is_told_once() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=100 * (OVERHEAD + 129))
    publish_many(nodes, 1, 500, bytes(100))
    assert [cut.topic for cut in nodes.cuts[2]] == [TOPIC]
    assert nodes.parts[2].status().cuts == 1


@pytest.mark.parametrize("settings", [Dissemination(), LIVE.dissemination])
def test_a_hole_that_nobody_keeps_ends_as_soon_as_that_is_certain(settings: Dissemination) -> None:
    nodes = Neighbourhood([(1, 2)], **(asdict(settings) | {"total_window_bytes": 60 * (OVERHEAD + 129)}))
    publish_many(nodes, 1, 1)
    nodes.run(1 * SECOND)
    nodes.drops = lambda sender, to, message: True
    publish_many(nodes, 1, 200, bytes(100))
    nodes.drops = NEVER
    nodes.run(5 * SECOND)
    got = nodes.sequences(2, 1)
    told = [-sequence for sequence in got if sequence < 0]
    assert told == list(range(2, 2 + len(told))) and 100 < len(told) < 200
    assert got[1 + len(told) :] == list(range(2 + len(told), 202))


def test_a_hole_that_a_neighbour_awaits_in_vain_ends_after_its_patience() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 3)])
    publish_many(nodes, 1, 1)
    nodes.drops = lambda sender, to, message: type(message) is Publication and message.sequence == 2
    publish_many(nodes, 1, 3)
    nodes.run(4 * SECOND)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == [1]
    nodes.run(6 * SECOND)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == [1, -2, 3, 4]


def test_a_hole_of_a_node_that_is_left_alone_is_told_within_the_time_promised() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(1)
    nodes.run(300)
    nodes.drops = lambda _, to, message: to == 2 and type(message) is Publication and message.sequence == 2
    nodes.publish(1)
    nodes.publish(1)
    nodes.run(30)
    nodes.crash(1)
    nodes.run(2000)
    nodes.refresh()
    nodes.run(8500)
    assert nodes.sequences(2, 1) == [1], "another link may come"
    nodes.run(1000)
    assert nodes.sequences(2, 1) == [1, -2, 3]


def test_neighbours_do_not_await_from_each_other_what_another_has_told_as_a_gap() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (3, 4)])
    nodes.publish(1)
    nodes.run(3000)
    nodes.unlink(2, 3)
    nodes.drops = lambda _, to, message: type(message) is Publication and message.sequence == 2
    nodes.publish(1)
    nodes.publish(1)
    nodes.run(9000)
    assert nodes.sequences(2, 1) == [1, -2, 3]
    nodes.link(2, 3)
    nodes.run(4000)
    assert [nodes.sequences(node, 1) for node in (3, 4)] == [[1, -2, 3]] * 2, "not after 5 s"


def test_word_of_a_hole_that_a_publication_showed_reaches_neighbours_off_the_tree() -> None:
    """Node 3 stands behind one that is frozen; 2 knows of its hole by what came behind it, and told only its tree."""
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 4), (3, 4)], **asdict(LIVE.dissemination))
    nodes.latency = lambda sender, to: 3000 if {sender, to} == {2, 3} else 1000
    publish_many(nodes, 1, 20)
    nodes.run(3 * SECOND)
    last = nodes.sequences(3, 1)[-1]
    missing = range(last + 1, last + 6)
    nodes.drops = lambda sender, to, message: (
        4 in {sender, to} or (isinstance(message, Publication) and to == 2 and message.sequence in missing)
    )
    assert 3 not in nodes.parts[2].topics[TOPIC].eager
    for _ in missing:
        nodes.publish(1, b"x")
    nodes.publish(1, b"x")
    nodes.parts[1].topics[TOPIC].shrink_to(0)
    for _ in range(40):
        nodes.publish(1, b"x")
        nodes.run(200)
    for node in (2, 3):
        told = nodes.sequences(node, 1)
        assert -missing[0] in told and told[-1] > missing[-1]


def test_what_comes_after_its_gap_is_dropped_and_counted() -> None:
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 1)
    held: list[Publication] = []

    def hold(sender: int, to: int, message: Any) -> bool:
        if type(message) is Publication and message.sequence == 2:
            held.append(message)
            return True
        return False

    nodes.drops = hold
    publish_many(nodes, 1, 2)
    nodes.run(10 * SECOND)
    assert nodes.sequences(2, 1) == [1, -2, 3]
    assert nodes.parts[2].receive(1, held[0], nodes.now) == []
    assert nodes.parts[2].status().late == 1


def test_a_tail_announced_by_a_node_that_then_leaves_is_told() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (3, 4)])
    publish_many(nodes, 1, 2)
    nodes.run(1 * SECOND)
    nodes.drops = lambda sender, to, message: to == 3 and type(message) is Publication
    publish_many(nodes, 1, 3)
    nodes.run(300)
    nodes.crash(2)
    nodes.crash(1)
    nodes.refresh()
    nodes.drops = NEVER
    nodes.run(10 * SECOND)
    assert nodes.sequences(3, 1) == nodes.sequences(4, 1) == [1, 2, -3, -4, -5]


def test_a_subscriber_that_stood_still_is_told_what_passed_meanwhile() -> None:
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 10)
    nodes.run(1 * SECOND)
    nodes.drops = lambda sender, to, message: to == 2
    publish_many(nodes, 1, 10)
    nodes.run(80 * SECOND)
    assert not nodes.parts[2].topics[TOPIC].streams
    nodes.drops = NEVER
    publish_many(nodes, 1, 5)
    nodes.run(10 * SECOND)
    assert nodes.sequences(2, 1) == [*range(1, 11), *range(-11, -21, -1), *range(21, 26)]


def test_the_live_edge_reaches_those_behind_a_hole() -> None:
    """3 waits for a hole that 2 waits for too; what is new flows through both, and all is there once the hole is
    filled.
    """
    nodes = Neighbourhood([(1, 2), (2, 3)])
    publish_many(nodes, 1, 1)
    nodes.drops = lambda sender, to, message: type(message) is Publication and message.sequence == 2
    publish_many(nodes, 1, 500)
    assert nodes.sequences(3, 1) == [1]
    assert kept(nodes, 3) == 500
    nodes.drops = NEVER
    nodes.run(500)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == list(range(1, 502))


def test_all_windows_together_are_bounded_too_and_the_largest_gives_way_first() -> None:
    each = OVERHEAD + 129
    busy, calm = TOPIC, TOPIC + 1
    nodes = Neighbourhood([(1, 2)], total_window_bytes=100 * each)
    for node in (1, 2):
        nodes.want(node, (busy, calm))
    for number in range(300):
        nodes.publish(1, bytes(100), busy)
        if number % 30 == 0:
            nodes.publish(1, bytes(100), calm)
        nodes.run(2)
    for node in (1, 2):
        assert kept(nodes, node, calm) == 10
        assert 70 <= kept(nodes, node, busy) <= 90
        assert nodes.sequences(node, 1, topic=busy) == list(range(1, 301))
    nodes.want(2, (calm,))
    nodes.want(2, (busy, calm))
    nodes.run(5 * SECOND)
    publish_many(nodes, 1, 200, bytes(100))
    assert kept(nodes, 2, calm) == 10
    assert 70 <= kept(nodes, 2, busy) <= 90
    nodes.run(100 * SECOND)
    assert kept(nodes, 2, calm) == kept(nodes, 2, busy) == 0
    assert sum(window.limit for window in nodes.parts[2].topics.values()) == 0


@pytest.mark.parametrize("many", [0, 20], ids=["a large one on each topic", "and small ones on the rest"])
def test_windows_of_a_single_publication_give_way_too(many: int) -> None:
    """A window with one large publication once ended the search for room, and all others went on growing."""
    total = 10 * (OVERHEAD + 10_029)
    nodes = Neighbourhood([(1, 2)], total_window_bytes=total)
    topics = range(1, 61)
    for node in (1, 2):
        nodes.want(node, topics)
    for topic in topics:
        for _ in range(many if topic > 1 and many else 1):
            nodes.publish(1, bytes(500 if topic > 1 and many else 10_000), topic)
            nodes.run(2)
        for node in (1, 2):
            assert nodes.parts[node].status().bytes <= total
            assert kept(nodes, node, topic) >= 1
    for node in (1, 2):
        assert nodes.parts[node].status().bytes > total // 2
        assert nodes.parts[node].status().cuts == len(nodes.cuts[node]) > 0


def test_more_publishers_than_there_is_room_for_lose_nothing_and_are_counted() -> None:
    nodes = Neighbourhood([(1, 5), (2, 5), (3, 5), (4, 5), (5, 6)], streams=2)
    for _ in range(6):
        for publisher in (1, 2, 3, 4):
            nodes.publish(publisher)
            nodes.run(50)
    nodes.run(20 * SECOND)
    for publisher in (1, 2, 3, 4):
        assert nodes.sequences(6, publisher) == [1, 2, 3, 4, 5, 6]
    assert nodes.parts[6].status().evictions > 20
    assert len(nodes.parts[6].topics[TOPIC].streams) == 2
    nodes.run(200 * SECOND)
    assert not nodes.parts[6].topics[TOPIC].evicted


def test_a_publisher_that_made_way_is_still_known_when_its_topic_is_taken_up_again() -> None:
    nodes = Neighbourhood([(1, 3), (2, 3)], streams=1)
    for publisher in (1, 2):
        publish_many(nodes, publisher, 3)
    nodes.want(3, ())
    nodes.run(1 * SECOND)
    nodes.want(3, (TOPIC,))
    nodes.run(20 * SECOND)
    assert sorted(nodes.sequences(3, 1)) == sorted(nodes.sequences(3, 2)) == [1, 2, 3]


def test_what_waits_behind_a_hole_is_bounded_in_bytes() -> None:
    nodes = Neighbourhood([(1, 2)], reorder_bytes=20 * 129)
    publish_many(nodes, 1, 1)
    nodes.drops = lambda sender, to, message: type(message) is Publication and message.sequence == 2
    for _ in range(60):
        nodes.publish(1, bytes(100))
    nodes.run(10)
    assert nodes.sequences(2, 1) == [1, -2, *range(3, 62)]


def test_what_comes_just_now_is_delivered_before_the_gap_it_makes_necessary() -> None:
    """World 445: what fills the front of a hole takes the room of what waits behind it, and ends the hole."""
    nodes = Neighbourhood([(1, 2)], total_window_bytes=100 * (OVERHEAD + 129))
    key = stream_key(TOPIC, 1, 1)
    part = nodes.parts[2]
    told: list[object] = []
    for sequence, size in [(1, 0), *((ahead, 100) for ahead in range(10, 100)), (2, 10_000)]:
        told += part.receive(1, make_publication(key, sequence, bytes(size), sequence == 1), sequence)
    given = [
        (output.sequence, output.sequence) if isinstance(output, Deliver) else (-output.first, -output.last)
        for output in told
        if isinstance(output, Deliver | Gap)
    ]
    assert given == [(1, 1), (2, 2), (-3, -9), *((ahead, ahead) for ahead in range(10, 100))]


def test_what_a_node_met_in_the_middle_is_not_told_on_as_its_beginning() -> None:
    """World 81: its window had no room before it heard where the stream begins, and others began where it did."""
    nodes = Neighbourhood([(1, 2), (3, 4)], total_window_bytes=5 * (OVERHEAD + 129))
    nodes.links = {frozenset({3, 4}), frozenset({2, 5})}
    nodes.add(5)
    for sequence in range(16, 31):
        nodes.parts[2].receive(5, make_publication(stream_key(TOPIC, 1, 1), sequence, bytes(100), False), nodes.now)
    nodes.link(2, 3)
    nodes.run(10 * SECOND)
    first = nodes.given[3][0]
    assert isinstance(first, Gap) and first.first == 1


def test_one_publication_is_kept_however_large() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=100)
    publish_many(nodes, 1, 3, bytes(1000))
    assert kept(nodes, 1) == kept(nodes, 2) == 1


def test_two_pieces_that_are_joined_tell_each_other_everything_since_the_cut() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (3, 4)])
    publish_many(nodes, 1, 3)
    publish_many(nodes, 4, 3)
    nodes.run(1 * SECOND)
    nodes.unlink(2, 3)
    publish_many(nodes, 1, 300)
    publish_many(nodes, 4, 300)
    nodes.run(10 * SECOND)
    nodes.link(2, 3)
    nodes.run(1 * SECOND)
    for node in range(1, 5):
        assert nodes.sequences(node, 1) == nodes.sequences(node, 4) == list(range(1, 304))


def test_a_publisher_that_was_not_known_before_the_cut_is_heard_from_its_first_word() -> None:
    nodes = Neighbourhood([(1, 2), (3, 4)])
    nodes.run(10 * SECOND)
    publish_many(nodes, 1, 5)
    nodes.run(10 * SECOND)
    nodes.link(2, 3)
    nodes.run(1 * SECOND)
    assert nodes.sequences(4, 1) == [1, 2, 3, 4, 5]


def test_what_the_window_no_longer_holds_is_delivered_as_a_gap() -> None:
    nodes = Neighbourhood([(1, 2)], total_window_bytes=20 * (OVERHEAD + 1029))
    publish_many(nodes, 1, 5)
    nodes.run(1 * SECOND)
    nodes.unlink(1, 2)
    publish_many(nodes, 1, 30, bytes(1000))
    nodes.link(1, 2)
    publish_many(nodes, 1, 2)
    nodes.run(5 * SECOND)
    got = nodes.sequences(2, 1)
    assert got[:5] == [1, 2, 3, 4, 5]
    missing = [-sequence for sequence in got if sequence < 0]
    assert missing == list(range(6, 6 + len(missing)))
    assert got[5 + len(missing) :] == list(range(6 + len(missing), 38))
    assert nodes.parts[2].status().gaps == 1
    publish_many(nodes, 1, 2)
    nodes.run(1 * SECOND)
    assert nodes.sequences(2, 1)[-2:] == [38, 39]


def test_a_gap_is_not_told_while_some_neighbour_has_what_is_missing() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    publish_many(nodes, 1, 2)
    nodes.drops = lambda sender, to, message: to == 3 and type(message) is Publication and message.sequence == 3
    publish_many(nodes, 1, 3)
    nodes.run(4 * SECOND)
    assert nodes.sequences(3, 1) == [1, 2]
    nodes.drops = NEVER
    nodes.run(5 * SECOND)
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5]


def test_a_stream_that_is_all_that_is_left_of_a_lost_publisher_ends_in_a_gap_for_those_who_missed_it() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)], total_window_bytes=20 * (OVERHEAD + 1029))
    publish_many(nodes, 1, 2)
    nodes.run(1 * SECOND)
    nodes.unlink(2, 3)
    publish_many(nodes, 1, 30, bytes(1000))
    nodes.crash(1)
    nodes.link(2, 3)
    nodes.run(5 * SECOND)
    got = nodes.sequences(3, 1)
    told = [-sequence for sequence in got if sequence < 0]
    assert told == list(range(3, 3 + len(told))) and told
    assert got[2 + len(told) :] == list(range(3 + len(told), 33))


def test_a_topic_given_up_is_passed_on_but_not_delivered_and_taken_up_again_comes_once() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    publish_many(nodes, 1, 3)
    nodes.want(2, {TOPIC}, wanted=())
    publish_many(nodes, 1, 3)
    assert nodes.sequences(2, 1) == [1, 2, 3]
    assert nodes.sequences(3, 1) == [1, 2, 3, 4, 5, 6]
    nodes.want(2, {TOPIC})
    publish_many(nodes, 1, 1)
    assert nodes.sequences(2, 1) == [1, 2, 3, 7]
    nodes.want(2, ())
    nodes.run(1 * SECOND)
    nodes.want(2, {TOPIC})
    nodes.run(1 * SECOND)
    publish_many(nodes, 1, 1)
    nodes.run(1 * SECOND)
    assert nodes.sequences(2, 1) == [1, 2, 3, 7, 8]


def test_a_publisher_that_gives_a_topic_up_and_takes_it_up_again_goes_on_counting() -> None:
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 3)
    nodes.want(1, ())
    nodes.want(1, {TOPIC})
    nodes.run(1 * SECOND)
    assert nodes.publish(1) == 4
    nodes.run(1 * SECOND)
    assert nodes.sequences(2, 1) == [1, 2, 3, 4]


def test_publishers_silent_for_long_are_forgotten_and_nothing_comes_twice() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)], window_age=6_000_000, stream_memory=0)
    publish_many(nodes, 1, 3)
    nodes.run(5 * SECOND)
    nodes.add(4)
    nodes.link(3, 4)
    nodes.run(15 * SECOND)  # node 4 heard of it 5 s later, and tells of it as long as the others did
    assert all(not part.topics[TOPIC].streams for part in nodes.parts.values())
    nodes.waiting = {5}
    nodes.add(5)
    nodes.link(4, 5)
    nodes.run(1 * SECOND)
    nodes.waiting = set()
    nodes.refresh()
    nodes.run(4 * SECOND)
    publish_many(nodes, 1, 2)
    nodes.run(1 * SECOND)
    assert nodes.sequences(2, 1) == nodes.sequences(3, 1) == [1, 2, 3, 4, 5]
    assert nodes.sequences(5, 1) == [4, 5]


def test_a_publisher_that_was_silent_for_long_leaves_no_gap_but_what_was_missed_before_is_told() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)], window_age=6_000_000, stream_memory=0)
    publish_many(nodes, 1, 2)
    nodes.run(1 * SECOND)
    nodes.unlink(2, 3)
    publish_many(nodes, 1, 2)
    nodes.run(7 * SECOND)
    nodes.link(2, 3)
    publish_many(nodes, 1, 2)
    nodes.run(5 * SECOND)
    assert nodes.sequences(2, 1) == [1, 2, 3, 4, 5, 6]
    assert nodes.sequences(3, 1) == [1, 2, -3, -4, 5, 6]


def test_no_more_streams_are_kept_than_there_is_room_for() -> None:
    nodes = Neighbourhood([(1, 2)], streams=8)
    for life in range(1, 30):
        nodes.crash(1)
        nodes.refresh()
        nodes.add(1, incarnation=life)
        nodes.link(1, 2)
        nodes.publish(1)
        nodes.run(5)
        assert nodes.sequences(2, 1, incarnation=life) == [1]
    assert len(nodes.parts[2].topics[TOPIC].streams) == 8


def test_another_incarnation_of_a_running_node_begins_a_stream_keeps_the_old_and_goes_on_counting() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    nodes.drops = lambda sender, to, message: to == 3
    publish_many(nodes, 1, 2)
    nodes.incarnations[1] = 2
    nodes.parts[1].rejoin(nodes.ref(1))
    nodes.refresh()
    assert nodes.publish(1) == 3
    nodes.drops = NEVER
    nodes.run(5 * SECOND)
    assert nodes.sequences(3, 1, incarnation=1) == [1, 2]
    assert nodes.sequences(3, 1, incarnation=2) == [3]
    assert nodes.held[1][-1].sequence == 3


def test_a_link_that_only_one_end_saw_break_is_compared_by_both() -> None:
    nodes = Neighbourhood([(1, 2)])
    publish_many(nodes, 1, 2)
    nodes.run(3 * SECOND)
    nodes.drops = lambda sender, to, message: True
    publish_many(nodes, 1, 2)
    publish_many(nodes, 2, 2)
    nodes.run(100)
    part = nodes.parts[2]
    part.refresh(nodes.topics[2], nodes.wanted[2], frozenset(), {}, nodes.now)
    nodes.drops = NEVER
    nodes.refresh()
    nodes.run(5 * SECOND)
    assert nodes.sequences(2, 1) == [1, 2, 3, 4]
    assert nodes.sequences(1, 2) == [1, 2]


def test_many_streams_are_compared_in_few_messages() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.run(5 * SECOND)
    for life in range(2, 60):
        nodes.crash(1)
        nodes.refresh()
        nodes.add(1, incarnation=life)
        nodes.link(1, 2)
        nodes.publish(1)
        nodes.run(5)
    nodes.run(5 * SECOND)
    before: dict[Any, int] = dict(nodes.sent)
    nodes.add(3)
    nodes.link(2, 3)
    nodes.run(2 * SECOND)
    assert len(nodes.given[3]) == 58
    assert nodes.sent[RetransmissionRequest] - before.get(RetransmissionRequest, 0) <= 2
    assert nodes.sent[Announce] - before[Announce] <= 8


@pytest.mark.parametrize("seconds", [45, 70, 300])
def test_what_a_node_publishes_before_it_is_linked_is_kept_until_it_is(seconds: int) -> None:
    """However long that takes, and also if it goes on publishing."""
    nodes = Neighbourhood([(1, 2)])
    nodes.waiting.add(3)
    nodes.add(3)
    publish_many(nodes, 3, 5)
    nodes.run(seconds * SECOND)
    publish_many(nodes, 3, 2)
    nodes.run(seconds * SECOND)
    nodes.waiting.clear()
    nodes.link(2, 3)
    nodes.run(5 * SECOND)
    assert nodes.sequences(1, 3) == nodes.sequences(2, 3) == [1, 2, 3, 4, 5, 6, 7]
    nodes.run(45 * SECOND)
    assert kept(nodes, 3) == 0, "then it ages as everything does"

"""Publications: only to those who want them, along a tree, in order and once."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest

from omen.errors import InvalidInput
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import MILLISECOND, PLENTY, SECOND, Deliver, Multicast, SetTimer
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import (
    Announce,
    Prune,
    Publication,
    RetransmissionRequest,
    make_publication,
    stream_key,
)
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood

CHAIN = [(1, 2), (2, 3), (3, 4)]
RING = [(1, 2), (2, 3), (3, 4), (4, 5), (1, 5)]
MESH = list(combinations(range(1, 7), 2))


def test_a_publication_reaches_everybody_in_order_and_once() -> None:
    nodes = Neighbourhood(MESH)
    for _ in range(20):
        nodes.publish(1)
        nodes.publish(4)
        nodes.run(3)
    nodes.run(1000)
    for node in range(1, 7):
        assert nodes.sequences(node, 1) == nodes.sequences(node, 4) == list(range(1, 21))


def test_the_publisher_is_given_its_own() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(1, b"mine")
    assert nodes.given[1] == [Deliver(TOPIC, 1, 1, 1, b"mine")]


def test_a_publisher_takes_nothing_of_its_own_stream_from_others() -> None:
    """Before: what a neighbour made up in its name was delivered, passed on, and took the number of the next one."""
    node = Dissemination(Ref(1, 1, ""), Config(), Outbox(1))
    topics = frozenset({TOPIC})
    node.refresh(topics, topics, frozenset(), {peer: (Ref(peer, 1, ""), topics) for peer in (2, 3)}, 0)
    key = stream_key(TOPIC, 1, 1)
    node.publish(TOPIC, b"one", 0)
    for sequence in (2, 5):
        assert not node.receive(2, make_publication(key, sequence, b"made up", False), SECOND)
    assert not node.offenders and node.impossible == 2, "who passes it on may not know better"
    sequence, outputs = node.publish(TOPIC, b"two", SECOND)
    assert sequence == 2 and Deliver(TOPIC, 1, 1, 2, b"two") in outputs
    assert [each.message.payload for each in outputs if isinstance(each, Multicast)] == [b"two"]


def test_nothing_goes_to_a_neighbour_that_does_not_want_the_topic() -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    nodes.want(3, (8,))
    nodes.publish(1)
    nodes.run(2000)
    assert nodes.sequences(2, 1) == [1]
    assert nodes.over[1, 3] == nodes.over[2, 3] == 0
    assert nodes.given[3] == []


def test_a_tree_forms_by_itself_and_duplicates_end() -> None:
    nodes = Neighbourhood(MESH)
    for _ in range(30):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert len(nodes.tree()) == 5
    before = nodes.duplicates
    for _ in range(100):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert nodes.duplicates == before
    assert nodes.sent[Prune] <= 4 * len(MESH)


def test_publishers_at_the_same_time_do_not_cut_each_others_branches() -> None:
    nodes = Neighbourhood(RING)
    for _ in range(30):
        for publisher in range(1, 6):
            nodes.publish(publisher)
        nodes.run(5)
    assert len(nodes.tree()) == 4
    assert nodes.sent[RetransmissionRequest] == 0
    nodes.run(1000)
    assert all(
        nodes.sequences(node, publisher) == list(range(1, 31)) for node in range(1, 6) for publisher in range(1, 6)
    )


def test_a_publication_in_sequence_is_one_multicast_and_one_delivery() -> None:
    part = Dissemination(Ref(1, 1, ""), Config(), Outbox(1))
    topics = frozenset({TOPIC})
    part.refresh(topics, topics, frozenset(), {peer: (Ref(peer, 1, ""), topics) for peer in (2, 3, 4)}, 0)
    key = stream_key(TOPIC, 99, 1)
    first = part.receive(2, make_publication(key, 1, b"a", opening=True), 10)
    assert {type(output) for output in first} == {Multicast, Deliver, SetTimer}
    publication = make_publication(key, 2, b"b", opening=False)
    onward, delivery = part.receive(2, publication, 20)
    assert onward == Multicast((3, 4), publication)
    assert delivery == Deliver(TOPIC, 99, 1, 2, b"b")
    again = part.receive(2, make_publication(key, 3, b"c", opening=False), 30)[0]
    assert isinstance(again, Multicast) and isinstance(onward, Multicast) and again.to is onward.to


def test_what_comes_too_early_waits_for_what_comes_before() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(1)
    nodes.run(10)
    nodes.drops = lambda sender, to, message: type(message) is Publication and message.sequence == 2
    nodes.publish(1)
    nodes.publish(1)
    nodes.run(50)
    assert nodes.sequences(2, 1) == [1]
    nodes.drops = lambda sender, to, message: False
    nodes.run(500)
    assert nodes.sequences(2, 1) == [1, 2, 3]


def test_the_last_publication_is_found_missing_although_none_follows() -> None:
    nodes = Neighbourhood(CHAIN)
    nodes.publish(1)
    nodes.run(10)
    nodes.drops = lambda sender, to, message: type(message) is Publication
    nodes.publish(1)
    nodes.run(100)
    nodes.drops = lambda sender, to, message: False
    nodes.run(2000)
    assert all(nodes.sequences(node, 1) == [1, 2] for node in (2, 3, 4))


def test_a_lost_announcement_is_repeated() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(1)
    nodes.run(10)
    nodes.drops = lambda sender, to, message: True
    nodes.publish(1)
    nodes.run(1500)
    nodes.drops = lambda sender, to, message: False
    nodes.run(4000)
    assert nodes.sequences(2, 1) == [1, 2]


def test_neighbours_that_know_they_are_equally_far_fall_silent() -> None:
    nodes = Neighbourhood(RING)
    nodes.publish(1)
    nodes.run(3000)
    announced = nodes.sent[Announce]
    assert announced <= 4 * len(RING)
    nodes.run(5000)
    assert nodes.sent[Announce] == announced


def test_of_a_stream_that_goes_on_its_publisher_hears_every_round_and_the_others_seldom() -> None:
    announced = {}
    for retell_ms in (200, 1000):
        nodes = Neighbourhood(CHAIN, retell_period=retell_ms * MILLISECOND)
        for _ in range(50):
            nodes.publish(1)
            nodes.run(100)
        announced[retell_ms] = nodes.sent[Announce]
        assert nodes.held[1][-1].sequence >= 46
        nodes.run(3000)
        assert nodes.held[1][-1].sequence == 50
        assert all(nodes.sequences(node, 1) == list(range(1, 51)) for node in (2, 3, 4))
    assert announced[1000] < announced[200] / 2


def test_the_loss_of_a_branch_in_mid_stream_is_made_up_by_another_link() -> None:
    nodes = Neighbourhood([(1, 2), (2, 4), (1, 3), (3, 4)])
    for _ in range(20):
        nodes.publish(1)
        nodes.run(5)
    parent = next(other for one, other in [(4, 2), (4, 3)] if (other, one) in nodes.tree())
    nodes.crash(parent)
    for _ in range(20):
        nodes.publish(1)
        nodes.run(5)
    nodes.refresh()
    nodes.run(2000)
    assert nodes.sequences(4, 1) == list(range(1, 41))
    assert (5 - parent, 4) in nodes.tree()


def test_a_publication_survives_its_publisher_once_one_neighbour_has_it() -> None:
    nodes = Neighbourhood([(1, 2), (1, 3), (2, 4)])
    nodes.publish(1)
    nodes.run(10)
    nodes.drops = lambda sender, to, message: to == 3 or (sender, to) == (2, 4)
    nodes.publish(1)
    nodes.run(5)
    nodes.crash(1)
    nodes.drops = lambda sender, to, message: False
    nodes.link(3, 4)
    nodes.run(3000)
    assert all(nodes.sequences(node, 1) == [1, 2] for node in (2, 3, 4))


def test_a_restarted_publisher_begins_a_stream_of_its_own_and_the_old_one_still_arrives() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)])
    nodes.drops = lambda sender, to, message: to == 3
    nodes.publish(1, b"old 1")
    nodes.publish(1, b"old 2")
    nodes.run(5)
    nodes.crash(1)
    nodes.refresh()
    nodes.add(1, incarnation=2)
    nodes.link(1, 2)
    nodes.publish(1, b"new 1")
    nodes.run(50)
    nodes.drops = lambda sender, to, message: False
    nodes.run(5000)
    assert nodes.sequences(3, 1, incarnation=1) == [1, 2]
    assert nodes.sequences(3, 1, incarnation=2) == [1]
    assert nodes.sequences(1, 1, incarnation=2) == [1]


def test_a_payload_that_is_too_large_is_refused() -> None:
    nodes = Neighbourhood([(1, 2)], largest_payload=10)
    nodes.publish(1, b"0123456789")
    with pytest.raises(InvalidInput, match="11 bytes is too large: 10 at most"):
        nodes.publish(1, b"0123456789a")
    assert nodes.publish(1, b"") == 2


def test_held_is_said_when_every_neighbour_on_the_tree_has_it() -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    nodes.drops = lambda sender, to, message: to == 3
    nodes.publish(1)
    nodes.run(1000)
    assert nodes.held[1] == []
    nodes.drops = lambda sender, to, message: False
    nodes.run(5000)
    assert [held.sequence for held in nodes.held[1]] == [1]
    nodes.publish(1)
    nodes.publish(1)
    nodes.run(1000)
    assert nodes.held[1][-1].sequence == 3


def test_held_is_not_said_where_nobody_has_it_and_does_not_wait_for_the_lost() -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    nodes.drops = lambda sender, to, message: to == 3
    nodes.crash(2)
    nodes.refresh()
    nodes.publish(1)
    nodes.run(5000)
    assert nodes.held[1] == []
    nodes.add(2)
    nodes.link(1, 2)
    nodes.run(1000)
    nodes.crash(3)
    nodes.refresh()
    nodes.run(1000)
    assert [held.sequence for held in nodes.held[1]] == [1]


def test_what_was_not_acknowledged_bounds_what_may_be_published_by_its_bytes_over_all_topics() -> None:
    """Neighbours share one memory for the windows of all topics; what no neighbour wants counts for none."""
    other, lonely = TOPIC + 1, TOPIC + 2
    nodes = Neighbourhood([(1, 2)], total_window_bytes=200_000)
    nodes.want(1, (TOPIC, other, lonely))
    nodes.want(2, (TOPIC, other))
    nodes.drops = lambda sender, to, message: type(message) is Announce
    nodes.publish(1, bytes(40_000))
    nodes.publish(1, bytes(40_000), other)
    nodes.publish(1, b"", other)
    nodes.run(100)
    assert nodes.parts[1].room(TOPIC, nodes.now) == nodes.parts[1].room(other, nodes.now) < 20_000
    nodes.drops = lambda sender, to, message: False
    nodes.run(1000)
    assert nodes.parts[1].room(TOPIC, nodes.now) == PLENTY
    for _ in range(3):
        nodes.publish(1, bytes(40_000), lonely)
    nodes.publish(1, b"")
    assert nodes.parts[1].room(TOPIC, nodes.now) > 90_000


def test_what_no_neighbour_has_counts_as_long_as_one_may_come() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.unlink(1, 2)
    nodes.publish(1)
    assert nodes.parts[1].unheld(frozenset()) == 0
    assert nodes.parts[1].unheld({TOPIC}) == 1, "a repair may bring one"
    nodes.waiting.add(1)
    nodes.refresh()
    assert nodes.parts[1].unheld(frozenset()) == 1, "it is to be linked"
    nodes.waiting.clear()
    nodes.link(1, 2)
    nodes.run(1000)
    assert nodes.parts[1].unheld({TOPIC}) == 0


def test_a_link_that_is_behind_gets_nothing_and_catches_up_in_batches() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3)], batch_count=16)
    nodes.publish(1)
    nodes.run(100)
    nodes.behind(2, 3)
    sent = nodes.over[2, 3]
    for _ in range(100):
        nodes.publish(1)
        nodes.run(3)
    nodes.run(1000)
    assert nodes.over[2, 3] == sent
    most = 0

    def watch(sender: int, to: int, message: object) -> bool:
        nonlocal most
        if to == 3 and type(message) is Publication:
            most = max(most, message.sequence - len(nodes.sequences(3, 1)))
        return False

    nodes.drops = watch
    nodes.ready(2, 3)
    nodes.run(1000)
    assert nodes.sequences(3, 1) == list(range(1, 102))
    assert most <= 4 * 16 + 1


def test_a_node_can_be_saved_with_what_it_keeps() -> None:
    part = Dissemination(Ref(1, 1, ""), Config(), Outbox(1))
    topics = frozenset({TOPIC})
    part.refresh(topics, topics, frozenset(), {2: (Ref(2, 1, ""), topics)}, 0)
    assert part.publish(TOPIC, b"x", 0)[0] == 1
    key = stream_key(TOPIC, 99, 1)
    part.receive(2, make_publication(key, 1, b"a", opening=True), 10)
    part.receive(2, make_publication(key, 3, b"c", opening=False), 10)
    copy = pickle.loads(pickle.dumps(part))
    assert copy.publish(TOPIC, b"y", 15)[0] == 2
    outputs = copy.receive(2, make_publication(key, 2, b"b", opening=False), 20)
    assert [output.sequence for output in outputs if isinstance(output, Deliver)] == [2, 3]


def test_when_a_branch_breaks_the_other_links_take_its_place_at_once_and_are_cut_off_again() -> None:
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 4), (3, 4)], graft_delay=SECOND, retell_period=SECOND)
    for _ in range(40):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert len(nodes.tree()) == 3
    parent = next(iter({2, 4} & nodes.parts[3].topics[TOPIC].eager))
    nodes.crash(parent)
    missed = [nodes.publish(1) for _ in range(3)]
    for end in (1, 3):
        nodes.broken(end, parent)
    nodes.run(10)
    assert nodes.sequences(3, 1)[-3:] == missed, "what passed meanwhile is asked for"
    last = nodes.publish(1)
    nodes.run(3)
    assert nodes.sequences(3, 1)[-1] == last, "and what comes next is sent at once"


def test_when_a_branch_breaks_the_way_round_is_found_hops_further_down_too() -> None:
    ring = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 6)]
    nodes = Neighbourhood(ring, graft_delay=SECOND, retell_period=SECOND)
    nodes.latency = lambda sender, to: (4 if {sender, to} == {5, 6} else 1) * MILLISECOND
    for _ in range(40):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert (5, 6) not in nodes.tree(), "the spare link, two hops from where the branch is to break"
    nodes.crash(2)
    missed = [nodes.publish(1) for _ in range(3)]
    for end in (1, 3):
        nodes.broken(end, 2)
    nodes.run(25)
    for node in (3, 4, 5):
        assert nodes.sequences(node, 1)[-3:] == missed


def test_when_a_branch_breaks_what_comes_from_a_publisher_long_silent_is_found_at_once_too() -> None:
    """Another publisher is heard all the time."""
    ring = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 6)]
    nodes = Neighbourhood(ring, graft_delay=SECOND, retell_period=SECOND)
    nodes.latency = lambda sender, to: (4 if {sender, to} == {5, 6} else 1) * MILLISECOND
    for _ in range(40):
        for publisher in (1, 6):
            nodes.publish(publisher)
        nodes.run(5)
    for _ in range(40):
        nodes.publish(6)
        nodes.run(100)
    assert (5, 6) not in nodes.tree()
    nodes.crash(2)
    missed = nodes.publish(1)
    for end in (1, 3):
        nodes.broken(end, 2)
    nodes.run(25)
    for node in (3, 4, 5):
        assert nodes.sequences(node, 1)[-1] == missed


def test_when_a_branch_breaks_all_publishers_that_are_active_are_asked_for_however_many() -> None:
    """Of the hundred behind node 1 each says one thing into the link that breaks."""
    ring, publishers = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 6)], range(100, 200)
    nodes = Neighbourhood([*ring, *((1, each) for each in publishers)], graft_delay=SECOND, retell_period=SECOND)
    nodes.latency = lambda sender, to: (4 if {sender, to} == {5, 6} else 1) * MILLISECOND
    for _ in range(20):
        for publisher in (1, 6):
            nodes.publish(publisher)
        nodes.run(5)
    for publisher in publishers:
        nodes.publish(publisher)
    nodes.run(200)
    assert (5, 6) not in nodes.tree()
    nodes.crash(2)
    missed = [nodes.publish(publisher) for publisher in publishers]
    for end in (1, 3):
        nodes.broken(end, 2)
    nodes.run(25)
    for node in (3, 4, 5):
        assert [nodes.sequences(node, publisher)[-1] for publisher in publishers] == missed


def test_what_a_publisher_sent_into_a_link_that_broke_is_asked_for_by_the_others_at_once() -> None:
    nodes = Neighbourhood([(1, 2), (2, 4), (1, 4)], graft_delay=SECOND, retell_period=SECOND)
    nodes.latency = lambda sender, to: (20 if {sender, to} == {1, 4} else 1) * MILLISECOND
    for _ in range(40):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert nodes.parts[1].topics[TOPIC].eager == {2}
    nodes.crash(2)
    missed = [nodes.publish(1) for _ in range(3)]
    nodes.broken(1, 2)
    nodes.run(65)
    assert nodes.sequences(4, 1)[-3:] == missed


def test_what_came_twice_after_a_bypass_cuts_branches_again() -> None:
    nodes = Neighbourhood(MESH)
    for _ in range(30):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    for node in (2, 3, 4):
        for peer in sorted(nodes.parts[node].topics[TOPIC].eager):
            nodes.broken(node, peer)
    assert len(nodes.parts[2].topics[TOPIC].eager) == 5
    for _ in range(60):
        nodes.publish(1)
        nodes.run(5)
    nodes.run(1000)
    assert len(nodes.tree()) == 5
    assert nodes.sequences(6, 1) == list(range(1, 91))


def test_when_a_branch_falls_silent_the_wait_follows_the_round_trips_of_neighbours() -> None:
    def waited(round_trip: int) -> int:
        nodes = Neighbourhood([(1, 2), (2, 3), (1, 4), (3, 4)], graft_delay=SECOND, retell_period=SECOND)
        for node in nodes.parts:
            nodes.parts[node].note_round_trip(round_trip)
        for _ in range(40):
            nodes.publish(1)
            nodes.run(5)
        nodes.run(1000)
        parent = next(iter({2, 4} & nodes.parts[3].topics[TOPIC].eager))
        nodes.drops = lambda sender, to, message: parent in (sender, to)
        sequence, begun = nodes.publish(1), nodes.now
        while sequence not in nodes.sequences(3, 1):
            nodes.publish(1)
            nodes.run(5)
        return nodes.now - begun

    assert waited(1 * MILLISECOND) < 300 * MILLISECOND
    assert waited(100 * MILLISECOND) > 400 * MILLISECOND
    assert waited(0) > 1000 * MILLISECOND


@pytest.mark.parametrize("after_ms", range(0, 320, 20))
def test_what_came_before_a_branch_was_grafted_is_announced_without_delay(after_ms: int) -> None:
    """The node that is grafted was off the tree when it came, and is on it in the next round of announcements."""
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 4), (3, 4)], graft_delay=SECOND, retell_period=SECOND)
    for node in nodes.parts:
        nodes.parts[node].note_round_trip(1 * MILLISECOND)
    for _ in range(40):
        nodes.publish(1)
        nodes.publish(2)
        nodes.publish(4)
        nodes.run(5)
    nodes.run(1000)
    parent, other = sorted({2, 4}, key=lambda peer: peer not in nodes.parts[3].topics[TOPIC].eager)
    nodes.drops = lambda sender, to, message: parent in (sender, to)
    nodes.publish(1)
    nodes.run(after_ms)
    sequence, begun = nodes.publish(other), nodes.now
    while sequence not in nodes.sequences(3, other):
        nodes.run(5)
    assert nodes.now - begun < 500 * MILLISECOND

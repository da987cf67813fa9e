"""The small state machines a node is made of, each by itself."""

from __future__ import annotations

import random

import pytest

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import Send, SetTimer
from omen.protocol.membership.ring import SPACE, clockwise, nearest_after, nearest_before, place_of
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import SPARE, Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.overlay import (
    Descriptor,
    Digest,
    LinkClose,
    LinkOk,
    LinkOpen,
    LinkSeen,
    Locate,
    Located,
    Message,
    Ref,
    Shuffle,
    ShuffleReply,
)
from omen.protocol.repair.links import ACCEPTED, OPENING, PLANNED, UP, Links

ME = 1000


def ref(node: int, life: int = 1) -> Ref:
    return Ref(node, life, "")


def describe(node: int, topics: tuple[int, ...] = (), life: int = 1, versions: tuple[int, int] = (1, 1)) -> Descriptor:
    return Descriptor(Digest(ref(node, life), *versions), topics, ())


def book(node: int = ME) -> PeerTable:
    return PeerTable(describe(node, (1, 2)), tombstone_life=100)


def sent(out: Outbox) -> list[tuple[int, Message]]:
    return [(output.to, output.message) for output in out.take() if isinstance(output, Send)]


class TestCircle:
    def test_distances_wrap_round(self) -> None:
        assert clockwise(SPACE - 1, 1) == 2
        assert nearest_after(SPACE - 5, [1, 7, SPACE - 9], 2) == [1, 7]
        assert nearest_before(3, [1, 7, SPACE - 9], 2) == [1, SPACE - 9]

    def test_names_are_spread_and_stay_where_they_are(self) -> None:
        assert place_of("ann") == place_of("ann") != place_of("bob")
        assert 0 <= place_of("ann") < SPACE


class TestBook:
    def test_only_newer_descriptors_replace_what_is_known(self) -> None:
        known = book()
        assert known.learn(describe(5, (1,), versions=(2, 2)))
        assert not known.learn(describe(5, (9,), versions=(1, 2)))
        assert known.topics_of(5) == {1}
        assert known.learn(describe(5, (9,), versions=(3, 2)))
        assert known.learn(describe(5, (4,), life=2))

    def test_a_buried_life_is_refused_and_the_next_is_not(self) -> None:
        known = book()
        known.learn(describe(5, (1,)))
        known.declare_failed(5, 1, now=0)
        assert 5 not in known.known
        assert not known.learn(describe(5, (1,), versions=(9, 9)))
        assert known.learn(describe(5, (1,), life=2))

    def test_whoever_is_of_no_use_is_forgotten(self) -> None:
        known = book()
        for node in range(10):
            known.learn(describe(node))
        known.retain([3, 4])
        assert sorted(known.known) == sorted(known.topic_sets) == [3, 4]


class TestRing:
    def ring(self, resilience: int = 2) -> Ring:
        return Ring(book(), Config(resilience=resilience))

    def test_the_nearest_on_either_side_are_kept_and_no_more(self) -> None:
        ring = self.ring()
        others = [node for node in range(0, 2000, 50) if node != ME]
        random.Random(1).shuffle(others)
        for node in others:
            ring.consider(ref(node))
        assert ring.get_succs() == [1050, 1100]
        assert ring.get_preds() == [950, 900]
        assert len(ring.members) == 2 * (2 + SPARE)

    def test_a_loss_is_filled_from_the_spares_at_once(self) -> None:
        ring = self.ring()
        for node in (1050, 1100, 1150, 950):
            ring.consider(ref(node))
        assert ring.drop(1050)
        assert ring.get_succs() == [1100, 1150]
        assert not ring.drop(1050)

    def test_in_a_small_circle_a_node_is_on_both_sides(self) -> None:
        ring = self.ring()
        ring.consider(ref(5))
        assert ring.get_succs() == ring.get_preds() == [5]

    def test_the_coordinator_is_the_first_live_node_after_the_lost_one(self) -> None:
        ring = self.ring()
        for node in (900, 950, 1050):
            ring.consider(ref(node))
        assert ring.is_coordinator(960)
        assert not ring.is_coordinator(940)
        assert ring.nearest_successor_of(940) == 950
        ring.drop(950)
        assert ring.is_coordinator(940)

    def test_fewer_than_l_nodes_between_are_in_range(self) -> None:
        ring = self.ring()
        for node in (850, 900, 950):
            ring.consider(ref(node))
        assert ring.is_in_pred_range(910)
        assert not ring.is_in_pred_range(840)
        assert ring.succ_range(910) == [950, ME]

    def test_the_dead_and_oneself_are_not_taken_in(self) -> None:
        known = book()
        known.declare_failed(5, 1, now=0)
        ring = Ring(known, Config())
        assert not ring.consider(ref(5))
        assert not ring.consider(ref(ME))
        assert ring.consider(ref(5, life=2))


class TestSampling:
    def sampling(self, size: int = 4) -> tuple[PeerSampling, Outbox]:
        out = Outbox(ME)
        return PeerSampling(book(), Config(sample_size=size, shuffle_size=3), random.Random(1), out), out

    def test_the_view_never_outgrows_its_size(self) -> None:
        sampling, _ = self.peer_sampling()
        for node in range(20):
            sampling.add(ref(node))
        sampling.on_reply(ShuffleReply(tuple((ref(node), 0) for node in range(30, 40))))
        assert len(sampling.view) == 4

    def test_a_shuffle_goes_to_the_one_not_heard_of_for_longest(self) -> None:
        sampling, out = self.peer_sampling()
        for node in (1, 2, 3):
            sampling.add(ref(node))
        sampling.view[2] = (ref(2), 9)
        sampling.shuffle()
        ((to, message),) = sent(out)
        assert to == 2
        assert isinstance(message, Shuffle)
        assert message.entries[0] == (ref(ME), 0)
        assert 2 not in sampling.view

    def test_given_away_entries_make_room_for_those_received(self) -> None:
        sampling, out = self.peer_sampling(size=3)
        for node in (1, 2, 3):
            sampling.add(ref(node))
        sampling.on_shuffle(9, Shuffle(((ref(9), 0), (ref(8), 1))))
        ((to, reply),) = sent(out)
        assert to == 9
        assert isinstance(reply, ShuffleReply)
        assert {8, 9} <= set(sampling.view)
        assert len(sampling.view) == 3

    def test_many_shuffles_spread_knowledge_evenly(self) -> None:
        """A ring of samples, each node knowing only the next three, becomes a near uniform draw."""
        count, size = 40, 8
        nodes: dict[int, tuple[PeerSampling, Outbox]] = {}
        for node in range(count):
            out = Outbox(node)
            config = Config(sample_size=size, shuffle_size=4)
            nodes[node] = (PeerSampling(book(node), config, random.Random(node), out), out)
            for step in (1, 2, 3):
                nodes[node][0].add(ref((node + step) % count))
        for _ in range(60):
            for node in range(count):
                sampling, out = nodes[node]
                sampling.shuffle()
                for to, message in sent(out):
                    assert isinstance(message, Shuffle)
                    nodes[to][0].on_shuffle(node, message)
                    for back, reply in sent(nodes[to][1]):
                        assert isinstance(reply, ShuffleReply)
                        nodes[back][0].on_reply(reply)
        known = [sum(node in sampling.view for sampling, _ in nodes.values()) for node in range(count)]
        assert min(known) >= 2
        assert max(known) <= 4 * size


class TestLinks:
    def pair(self, **remedies: bool) -> tuple[Links, Outbox, Links, Outbox]:
        from omen.protocol.config import Remedies

        config = Config(remedies=Remedies(**remedies))
        low, high = Outbox(1), Outbox(2)
        return Links(book(1), config, low), low, Links(book(2), config, high), high

    def test_both_ends_agree_before_either_counts_the_link(self) -> None:
        low, low_out, high, high_out = self.pair()
        low.plan(ref(2))
        high.plan(ref(1))
        ((to, opening),) = sent(low_out)
        assert (to, low.links[2].state, high.links[1].state) == (2, OPENING, PLANNED)
        assert isinstance(opening, LinkOpen)
        high.on_open(opening)
        assert high.links[1].state == ACCEPTED
        assert not low.up()
        assert not high.up()
        ((_, agreed),) = sent(high_out)
        assert isinstance(agreed, LinkOk)
        low.on_ok(agreed)
        assert low.up() == [2]
        high.on_seen(1)
        assert high.up() == [1]
        assert [type(message) for _, message in sent(low_out)] == [LinkSeen]

    def test_planned_links_count_as_neighbours_at_once(self) -> None:
        low, _, _, _ = self.pair()
        low.plan(ref(2))
        assert low.neighbours() == (ref(2),)
        assert low.changed

    def test_without_the_remedy_the_opener_counts_it_alone(self) -> None:
        low, _, high, _ = self.pair(links_agreed_by_both=False)
        low.plan(ref(2))
        assert low.up() == [2]
        assert not high.up()

    def test_an_opening_is_repeated_and_then_given_up(self) -> None:
        low, out, _, _ = self.pair()
        low.plan(ref(2))
        for _ in range(Config().attempts):
            low.on_timer(2)
        kinds = [type(message) for _, message in sent(out)]
        assert kinds == [LinkOpen] * Config().attempts + [LinkClose]
        assert not low.links

    def test_the_higher_end_waits_for_the_lower_and_then_gives_up(self) -> None:
        _, _, high, out = self.pair()
        high.plan(ref(1))
        outputs = out.take()
        assert [type(output) for output in outputs] == [SetTimer]
        high.on_timer(1)
        assert not high.links

    def test_a_repeated_opening_of_a_link_that_is_up_is_answered_and_changes_nothing(self) -> None:
        _, _, high, out = self.pair()
        high.preset(ref(1), ())
        high.on_open(LinkOpen(describe(1), ()))
        assert high.up() == [1]
        assert [type(message) for _, message in sent(out)] == [LinkOk]

    def test_an_agreement_nobody_asked_for_is_closed(self) -> None:
        low, out, _, _ = self.pair()
        low.on_ok(LinkOk(describe(2), ()))
        assert [type(message) for _, message in sent(out)] == [LinkClose]
        assert not low.links

    def test_a_close_for_another_life_is_ignored(self) -> None:
        low, _, _, _ = self.pair()
        low.preset(ref(2, life=2), ())
        low.on_close(2, LinkClose(1))
        assert low.up() == [2]
        low.on_close(2, LinkClose(2))
        assert not low.up()

    def test_a_newer_life_replaces_the_link_to_the_former(self) -> None:
        _, _, high, _ = self.pair()
        high.preset(ref(1), ())
        high.on_open(LinkOpen(describe(1, life=2), ()))
        assert high.links[1].ref.incarnation == 2
        assert high.links[1].state != UP

    def test_no_link_to_the_dead_or_to_oneself(self) -> None:
        low, out, _, _ = self.pair()
        low._peer_table.declare_failed(2, 1, now=0)
        low.plan(ref(2))
        low.plan(ref(1))
        low.on_open(LinkOpen(describe(2), ()))
        assert not low.links
        assert not sent(out)


class TestLocator:
    def locator(self) -> tuple[RingLookup, Outbox]:
        out = Outbox(ME)
        return RingLookup(book(), Config(), out), out

    def test_the_search_moves_on_to_whoever_is_nearer_and_ends_with_the_nearest(self) -> None:
        locator, out = self.ring_lookup()
        locator.search(100, "why", [ref(500), ref(900)])
        assert sent(out)[0] == (500, Locate(ref(ME), 1, 100))
        assert locator.on_located(Located(1, 100, (ref(200), ref(900))), 500) is None
        assert sent(out)[0][0] == 200
        found = locator.on_located(Located(1, 100, (ref(500),)), 200)
        assert found is not None
        assert found[:2] == ("why", ref(200))
        assert locator.open_count == 0

    def test_whoever_is_silent_is_passed_over(self) -> None:
        locator, out = self.ring_lookup()
        locator.search(100, "why", [ref(200), ref(300)])
        assert locator.on_timer(1, 200) is None
        assert [to for to, _ in sent(out)] == [200, 300]
        found = locator.on_located(Located(1, 100, ()), 300)
        assert found is not None
        assert found[1] == ref(300)

    def test_a_search_nobody_answers_ends_with_nobody(self) -> None:
        locator, _ = self.ring_lookup()
        locator.search(100, "why", [ref(200)])
        found = locator.on_timer(1, 200)
        assert found is not None
        assert found[1] is None
        assert locator.open_count == 0


@pytest.mark.parametrize("message", [LinkSeen(), LinkClose(1)])
def test_what_a_node_says_to_itself_never_leaves_it(message: Message) -> None:
    out = Outbox(ME)
    out.send(ref(ME), message)
    assert out.take() == []
    assert list(out.to_oneself) == [message]

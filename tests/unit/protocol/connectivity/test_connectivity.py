"""The search for ways round a node, message by message."""

from __future__ import annotations

from typing import Any

from omen.protocol.connectivity.connectivity import Connectivity, NearbyTimer, SearchTimer, digest_of
from omen.protocol.events import SECOND
from omen.protocol.membership.connections import OwnDescriptor
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.overlay import (
    Descriptor,
    Digest,
    LinkProposal,
    Message,
    NearbyChanged,
    NearbyQuery,
    NearbyReply,
    Ref,
)
from omen.protocol.repair.coordinator import Coordinator
from omen.protocol.repair.link_pruning import LinkPruning
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports
from omen.protocol.repair.requests import Requests
from omen.protocol.repair.views import Views
from unit.protocol.contexts import describe, make_context, ref, sent

ME, TOPIC = 1, 70


class Driven:
    """A node with links in one topic, or those given, to some others."""

    def __init__(self, *near: int, topics: tuple[int, ...] = (TOPIC,), **settings: Any) -> None:
        self.context = context = make_context(ME, topics, **{"connectivity": 2, **settings})
        self.links = Links(context)
        for node in near:
            self.links.preset(ref(node), ())
            context.peer_table.learn(describe(node, topics))
        ring, views, lookup = Ring(context), Views(context, None), RingLookup(context)
        reports = LossReports(context, ring, lookup, Coordinator(context, ring, views, lookup))
        requests = Requests(context, ring, self.links, views, OwnDescriptor(context, self.links, reports))
        self.pruning = LinkPruning(context, self.links, requests)
        self.part = Connectivity(context, self.links, requests, self.pruning)
        self.part.follow_links()

    def search(self) -> list[tuple[int, Message]]:
        self.part.on_search_timer(SearchTimer())
        return self.take()

    def take(self) -> list[tuple[int, Message]]:
        return sent(self.context.out)

    def answer(self, node: int, *links: int, nonce: int = 1, same: bool = False, full: bool = False) -> None:
        named = tuple((ref(other), b"\1") for other in links)
        mine = b"" if same else b"\1"
        self.part.on_reply(node, NearbyReply(ref(node), nonce, mine, len(links), full, named, same))


def proposed(messages: list[tuple[int, Message]], asked: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    others = [(to, message) for to, message in messages if not isinstance(message, LinkProposal)]
    assert [to for to, message in others if isinstance(message, NearbyQuery)] == list(asked)
    assert len(others) == len(asked)
    assert all(message.lasting for _, message in messages if isinstance(message, LinkProposal))
    return [(to, message.other.id) for to, message in messages if isinstance(message, LinkProposal)]


def test_a_node_whose_neighbours_are_linked_is_dispensable_and_asks_no_more() -> None:
    driven = Driven(2, 3)
    assert [to for to, _ in driven.search()] == [2, 3]
    driven.answer(2, ME, 3)
    driven.answer(3, ME, 2)
    assert not driven.take()
    assert not driven.part.cut
    assert not driven.search(), "nothing has changed"


def test_a_cut_node_has_its_neighbours_linked_and_looks_again() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(2, ME)
    driven.answer(3, ME)
    assert proposed(driven.take()) == [(2, 3), (3, 2)]
    assert driven.part.cut == {TOPIC}
    assert [to for to, _ in driven.search()] == [2, 3]
    driven.answer(2, ME, 3, nonce=2)
    driven.answer(3, ME, 2, nonce=2)
    assert not driven.part.cut


def test_a_node_that_is_left_alone_cuts_nothing() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(2, ME)
    driven.answer(3, ME)
    assert driven.part.cut
    for node in (2, 3):
        driven.links.drop(node)
    driven.part.follow_links()
    driven.search()
    assert not driven.part.cut


def test_the_search_goes_outwards_and_asks_each_node_once() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(2, ME, 4)
    driven.answer(3, ME, 5, 6)
    assert [to for to, _ in driven.take()] == [4]
    driven.answer(4, 2, 5)
    assert not driven.take()
    assert not driven.part.cut


def test_a_neighbour_that_does_not_answer_is_linked_as_one_that_leads_nowhere() -> None:
    """It is of a version that knows no such question, or has failed."""
    driven = Driven(2, 3)
    driven.search()
    driven.answer(3, ME)
    for _ in range(3):
        driven.part.on_nearby_timer(NearbyTimer(1))
    found = driven.take()
    assert [(to, type(message)) for to, message in found[:2]] == [(2, NearbyQuery), (2, NearbyQuery)]
    assert proposed(found[2:]) == [(2, 3), (3, 2)]


def test_of_a_neighbour_that_does_not_answer_counts_what_it_said_before() -> None:
    """Else a link that exists would be proposed for ever, wherever a node of an older version is."""
    driven = Driven(2, 3)
    driven.context.peer_table.learn(Descriptor(Digest(ref(2), 1, 2), (TOPIC,), (ref(ME), ref(3))))
    driven.search()
    driven.answer(3, ME, 2)
    for _ in range(3):
        driven.part.on_nearby_timer(NearbyTimer(1))
    assert all(isinstance(message, NearbyQuery) for _, message in driven.take())
    assert not driven.part.cut


def test_a_node_further_off_that_does_not_answer_is_not_asked_in_the_next_step_again() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(2, ME, 4)
    driven.answer(3, ME, 5, 6)
    assert [to for to, _ in driven.take()] == [4]
    for _ in range(3):
        driven.part.on_nearby_timer(NearbyTimer(1))
    assert driven.part.search is None
    assert driven.part.cut == {TOPIC}


def test_all_neighbours_are_asked_however_many() -> None:
    near = range(2, 302)
    assert [to for to, _ in Driven(*near).search()] == list(near)


def test_a_link_that_is_proposed_in_vain_makes_way_for_another_and_is_tried_again_later() -> None:
    """The node beyond, which was met, is asked before it is linked."""
    driven, found = Driven(2, 3), []
    for nonce in range(1, 8):
        driven.search()
        driven.answer(2, ME, nonce=nonce)
        driven.answer(3, ME, 4, nonce=nonce)
        driven.answer(4, 3, nonce=nonce)
        found.append(proposed(driven.take(), asked=(4,) if nonce > 3 else ())[:1])
    assert found == [[(2, 3)]] * 3 + [[(2, 4)]] * 3 + [[]]
    assert not driven.search(), "it waits"
    driven.context.clock.now += 61 * SECOND
    driven.search()
    driven.answer(2, ME, nonce=8)
    driven.answer(3, ME, 4, nonce=8)
    assert proposed(driven.take()) == [(2, 3), (3, 2)]


def test_a_setting_of_one_asks_nothing_and_answers() -> None:
    driven = Driven(2, 3, connectivity=1)
    assert not driven.search()
    driven.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC, 71)))
    ((to, reply),) = driven.take()
    assert (to, type(reply)) == (9, NearbyReply)
    assert isinstance(reply, NearbyReply)
    assert (reply.mine, reply.degree) == (b"\1", 2)
    assert reply.links == ((ref(2), b"\1"), (ref(3), b"\1"))


def test_an_answer_that_is_as_before_is_a_digest() -> None:
    driven = Driven(2, 3, connectivity=1)
    driven.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC,)))
    ((_, first),) = driven.take()
    assert isinstance(first, NearbyReply)
    driven.part.on_query(9, NearbyQuery(ref(9), 5, (TOPIC,), digest_of(first)))
    ((_, again),) = driven.take()
    assert isinstance(again, NearbyReply)
    assert again.same
    assert not again.links


def test_who_asked_is_told_of_a_lost_link_and_searches_again() -> None:
    driven = Driven(2, 3, connectivity=1)
    driven.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC,)))
    driven.take()
    driven.links.drop(3)
    driven.part.follow_links()
    assert driven.take() == [(9, NearbyChanged(ref(ME), (TOPIC,)))]
    asker = Driven(2, 3)
    asker.search()
    asker.answer(2, ME, 3)
    asker.answer(3, ME, 2)
    asker.part.on_changed(3, NearbyChanged(ref(3)))
    assert [to for to, _ in asker.search()] == [2, 3]


def test_what_was_not_heard_to_change_is_searched_again_after_a_while_by_digests() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(2, ME, 3)
    driven.answer(3, ME, 2)
    driven.context.clock.now += 10 * SECOND
    asked = driven.search()
    assert [to for to, _ in asked] == [2, 3]
    assert all(isinstance(message, NearbyQuery) and message.digest for _, message in asked)
    driven.answer(2, nonce=2, same=True)
    driven.answer(3, nonce=2, same=True)
    assert not driven.take()
    assert not driven.part.cut


def test_answers_not_asked_for_or_of_other_topics_are_dropped() -> None:
    driven = Driven(2, 3)
    driven.search()
    driven.answer(4, 2, 3)
    driven.answer(2, ME, 3, nonce=7)
    driven.part.on_reply(2, NearbyReply(ref(2), 1, b"\2", 1, False, ()))
    search = driven.part.search
    assert search is not None
    assert search.silent == {2, 3}


def test_no_link_is_pruned_at_connectivity_two_nor_where_a_node_counts_on_it() -> None:
    def prunable(driven: Driven) -> tuple[int, ...]:
        return driven.pruning.prunable()

    assert prunable(Driven(2, 3)) == ()
    plain = Driven(2, 3, connectivity=1)
    assert prunable(plain) == (2, 3)
    plain.pruning.keep_lasting(2)
    assert prunable(plain) == (3,)
    plain.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC,)))
    assert prunable(plain) == ()
    plain.context.clock.now += 30 * SECOND
    assert prunable(plain) == (3,)


def test_a_link_to_keep_is_not_forgotten_for_those_that_are_gone() -> None:
    plain = Driven(2, 3, connectivity=1)
    plain.pruning.keep_lasting(2)
    for node in range(1000, 2000):
        plain.pruning.keep_lasting(node)
    assert plain.pruning.prunable() == (3,)


def test_of_very_many_topics_all_have_their_turn() -> None:
    many = tuple(range(2000))
    driven = Driven(2, 3, topics=many)
    asked: set[int] = set()
    for nonce in range(1, 5):
        (_, query), _ = driven.search()
        assert isinstance(query, NearbyQuery)
        asked.update(query.topics)
        for node, other in ((2, 3), (3, 2)):
            all_of_them = b"\xff" * (len(query.topics) // 8)
            driven.part.on_reply(
                node, NearbyReply(ref(node), nonce, all_of_them, 1, False, ((ref(other), all_of_them),))
            )
        driven.context.clock.now += 11 * SECOND
    assert len(asked) == len(many)


def test_a_node_with_all_the_links_it_may_have_says_so() -> None:
    driven = Driven(2, 3, connectivity=1, max_links=2)
    driven.part.on_query(9, NearbyQuery(Ref(9, 1, ""), 4, (TOPIC,)))
    ((_, reply),) = driven.take()
    assert isinstance(reply, NearbyReply)
    assert reply.full


def test_only_those_who_asked_for_a_topic_are_told_that_a_link_in_it_is_lost() -> None:
    driven, other = Driven(2, topics=(TOPIC, TOPIC + 1)), TOPIC + 1
    driven.links.preset(ref(3), ())
    driven.context.peer_table.learn(describe(3, (TOPIC,)))
    driven.part.follow_links()
    driven.part.on_query(8, NearbyQuery(ref(8), 4, (other,)))
    driven.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC, other)))
    driven.take()
    driven.links.drop(3)
    driven.part.follow_links()
    assert driven.take() == [(9, NearbyChanged(ref(ME), (TOPIC,)))]
    driven.links.drop(2)
    driven.part.follow_links()
    assert driven.take() == [(8, NearbyChanged(ref(ME), (other,))), (9, NearbyChanged(ref(ME), (other,)))], "once"


def test_of_a_node_that_has_lost_a_link_only_the_topics_concerned_are_searched_again() -> None:
    driven, other = Driven(2, 3, topics=(TOPIC, TOPIC + 1)), TOPIC + 1
    driven.search()
    for node, far in ((2, 3), (3, 2)):
        reply = NearbyReply(ref(node), 1, b"\3", 2, False, ((ref(ME), b"\3"), (ref(far), b"\3")))
        driven.part.on_reply(node, reply)
    assert not driven.part.due
    driven.part.on_changed(3, NearbyChanged(ref(3), (other, 99)))
    assert driven.part.due == {other}, "and none that this node has not"
    driven.part.on_changed(3, NearbyChanged(ref(3)))
    assert driven.part.due == {TOPIC, other}, "an older node names none"


def test_topics_that_are_half_as_old_are_searched_together_with_old_ones() -> None:
    driven, other = Driven(2, 3, topics=(TOPIC, TOPIC + 1)), TOPIC + 1
    linked = ((2, 3), (3, 2))

    def search(nonce: int) -> set[tuple[int, ...]]:
        asked = {message.topics for _, message in driven.search() if isinstance(message, NearbyQuery)}
        for topics in asked:
            bits = bytes([(1 << len(topics)) - 1])
            for node, far in linked:
                named = ((ref(ME), bits), (ref(far), bits))
                driven.part.on_reply(node, NearbyReply(ref(node), nonce, bits, 2, False, named))
        return asked

    assert search(1) == {(TOPIC, other)}
    driven.context.clock.now += 3 * SECOND
    driven.part.on_changed(3, NearbyChanged(ref(3), (other,)))
    assert search(2) == {(other,)}
    driven.context.clock.now += 7 * SECOND
    assert search(3) == {(TOPIC, other)}


def test_an_answer_names_the_nodes_to_which_no_link_may_be_made_and_its_digest_counts_them() -> None:
    query, plain, barred = NearbyQuery(ref(9), 4, (TOPIC,)), Driven(2, 3), Driven(2, 3, forbid=(5, 6))
    replies = []
    for driven in (plain, barred):
        driven.part.on_query(9, query)
        ((_, reply),) = driven.take()
        assert isinstance(reply, NearbyReply)
        replies.append(reply)
    assert [reply.forbid for reply in replies] == [(), (5, 6)]
    assert digest_of(replies[0]) != digest_of(replies[1])


def test_an_answer_is_made_anew_when_what_it_says_has_changed() -> None:
    driven, other = Driven(2, 3, topics=(TOPIC, TOPIC + 1), max_links=3), TOPIC + 1

    def ask() -> tuple[bytes, bool, dict[int, bytes]]:
        driven.part.on_query(9, NearbyQuery(ref(9), 4, (TOPIC, other)))
        ((_, reply),) = driven.take()
        assert isinstance(reply, NearbyReply)
        return reply.mine, reply.full, {far.id: bits for far, bits in reply.links}

    assert ask() == ask() == (b"\3", False, {2: b"\3", 3: b"\3"})
    driven.links.note_fading([3], [other])
    assert ask() == (b"\3", False, {2: b"\3", 3: b"\1"})
    driven.context.clock.now += 60 * SECOND
    assert ask() == (b"\3", False, {2: b"\3", 3: b"\3"}), "it has stayed"
    driven.links.fade(2)
    assert ask() == (b"\3", False, {3: b"\3"})
    driven.context.peer_table.forget(3)
    assert ask() == (b"\3", False, {})
    driven.links.preset(ref(4), ())
    driven.context.peer_table.learn(describe(4, (other,)))
    assert ask() == (b"\3", True, {4: b"\2"})

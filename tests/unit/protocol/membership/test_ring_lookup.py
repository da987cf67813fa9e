"""Lookups on the ring: from node to nearer node, past those that are silent."""

from __future__ import annotations

from omen.protocol.context import Outbox
from omen.protocol.membership.ring_lookup import LookupPurpose, LookupTimer, RingLookup
from omen.protocol.messages.overlay import Locate, Located
from unit.protocol.contexts import make_context, ref, sent

ME = 1000


class Why(LookupPurpose, frozen=True):
    """What the lookups of these tests are for."""


def make_lookup() -> tuple[RingLookup, Outbox]:
    context = make_context(ME)
    return RingLookup(context), context.out


def test_a_lookup_moves_on_to_a_nearer_node_and_ends_with_the_nearest() -> None:
    lookup, out = make_lookup()
    lookup.find(100, Why(), [ref(500), ref(900)])
    assert sent(out)[0] == (500, Locate(ref(ME), 1, 100))
    assert lookup.on_located(500, Located(1, 100, (ref(200), ref(900)))) is None
    assert sent(out)[0][0] == 200
    found = lookup.on_located(200, Located(1, 100, (ref(500),)))
    assert found is not None
    assert (found.purpose, found.successor) == (Why(), ref(200))
    assert lookup.open_count == 0


def test_a_silent_peer_is_passed_over() -> None:
    lookup, out = make_lookup()
    lookup.find(100, Why(), [ref(200), ref(300)])
    assert lookup.on_timer(LookupTimer(1, 200)) is None
    assert [to for to, _ in sent(out)] == [200, 300]
    found = lookup.on_located(300, Located(1, 100, ()))
    assert found is not None
    assert found.successor == ref(300)


def test_a_lookup_that_no_peer_answers_finds_none() -> None:
    lookup, _ = make_lookup()
    lookup.find(100, Why(), [ref(200)])
    found = lookup.on_timer(LookupTimer(1, 200))
    assert found is not None
    assert found.successor is None
    assert lookup.open_count == 0


def test_one_that_seeks_its_own_place_is_neither_the_successor_nor_met() -> None:
    lookup, out = make_lookup()
    lookup.find(100, Why(), [ref(200), ref(300)])
    assert lookup.on_located(200, Located(1, 100, (), seeking=True)) is None
    assert [to for to, _ in sent(out)] == [200, 300]
    found = lookup.on_located(300, Located(1, 100, (ref(200), ref(400))))
    assert found is not None
    assert found.successor == ref(300)
    assert found.met == [ref(300), ref(400)]


def test_where_all_seek_their_place_the_nearest_of_them_is_the_successor() -> None:
    """Seeds that list each other begin like this."""
    lookup, _ = make_lookup()
    lookup.find(100, Why(), [ref(200), ref(300)])
    assert lookup.on_located(200, Located(1, 100, (), seeking=True)) is None
    found = lookup.on_located(300, Located(1, 100, (), seeking=True))
    assert found is not None
    assert found.successor == ref(200)
    assert found.met == [ref(200), ref(300)]
    assert not found.in_doubt


def test_one_that_seeks_and_is_answered_by_seekers_alone_doubts_as_long_as_another_is_silent() -> None:
    lookup, _ = make_lookup()
    lookup.find(100, Why(), [ref(200)])
    assert lookup.on_located(200, Located(1, 100, (ref(300),), seeking=True)) is None
    found = lookup.on_timer(LookupTimer(1, 300))
    assert found is not None
    assert (found.successor, found.in_doubt) == (ref(200), True)


def test_a_lookup_begun_anew_asks_those_who_turned_up_and_others_where_they_have_no_place() -> None:
    """World 40079309."""
    lookup, out = make_lookup()
    lookup.find(100, Why(), [ref(200)])
    lookup.find_anew(100, Why(), [ref(300)], [ref(200), ref(400)])
    assert lookup.open_count == 1
    assert [to for to, _ in sent(out)] == [200, 300], "the others are not waited for"
    assert lookup.on_located(300, Located(2, 100, (), seeking=True)) is None
    assert [to for to, _ in sent(out)] == [200, 400]
    assert lookup.goes_on_with(Why(), [ref(300)]), "it has answered"
    assert not lookup.goes_on_with(Why(), [ref(300, incarnation=2)])
    assert not lookup.goes_on_with(Why(), [ref(500)])
    assert lookup.on_located(400, Located(2, 100, ())) is None
    assert lookup.goes_on_with(Why(), [ref(500)]), "a node that has its place has answered"
    found = lookup.on_timer(LookupTimer(2, 200))
    assert found is not None and found.successor == ref(400)


def test_a_lookup_begun_anew_asks_others_where_those_who_turned_up_are_silent() -> None:
    lookup, out = make_lookup()
    lookup.find_anew(100, Why(), [ref(300)], [ref(400, incarnation=2)])
    assert lookup.on_timer(LookupTimer(1, 300)) is None
    assert [to for to, _ in sent(out)] == [300, 400]


def test_a_lookup_begun_anew_ends_by_those_who_turned_up_where_they_have_a_place() -> None:
    """A node whose contacts have all gone does not wait for each of them."""
    lookup, out = make_lookup()
    lookup.find(100, Why(), [ref(node) for node in range(200, 230)])
    lookup.find_anew(100, Why(), [ref(300)], [ref(node) for node in range(200, 230)])
    found = lookup.on_located(300, Located(2, 100, ()))
    assert found is not None and found.successor == ref(300)
    assert len(sent(out)) == 2

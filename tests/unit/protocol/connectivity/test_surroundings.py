"""What a search has seen, by itself: which neighbours are apart without the node in the middle, and what joins them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from random import Random

import msgspec
import networkx as nx
import pytest

from omen.maintain.choosing import choose_links
from omen.protocol.connectivity.surroundings import Seen, Surroundings, bits_by_topic, bits_of
from unit.protocol.contexts import ref

ME, TOPIC, OTHER = 1, 70, 71
BOTH = frozenset({TOPIC, OTHER})


def seen(node: int, *links: int, topics: Iterable[int] = (TOPIC,), degree: int = 0, full: bool = False) -> Seen:
    has = sum(1 << (topic - TOPIC) for topic in topics)
    return Seen(ref(node), has, {other: (ref(other), has) for other in links}, degree or len(links), full)


def around(*nodes: Seen, near: Iterable[int] = (2, 3)) -> Surroundings:
    found = Surroundings(ME, (TOPIC,), dict.fromkeys(near, frozenset({TOPIC})))
    for node in nodes:
        found.add(node)
    return found


def test_neighbours_that_are_linked_to_each_other_are_not_apart() -> None:
    assert not around(seen(2, ME, 3), seen(3, ME, 2)).apart()


def test_neighbours_that_meet_further_off_are_not_apart() -> None:
    assert around(seen(2, ME, 4), seen(3, ME, 5)).apart()
    assert not around(seen(2, ME, 4), seen(3, ME, 5), seen(4, 2, 5)).apart()


def test_a_way_through_the_node_in_the_middle_is_none() -> None:
    assert around(seen(2, ME), seen(3, ME)).apart()


def test_a_link_that_its_far_end_does_not_name_counts_for_nothing() -> None:
    assert around(seen(2, ME, 3), seen(3, ME)).apart()


def test_the_search_goes_on_from_the_smaller_pieces() -> None:
    found = around(seen(2, ME, 4), seen(3, ME, 5, 6, 7))
    assert set(found.frontier(found.apart())) == {4}
    found.add(seen(4, 2))
    assert not found.frontier(found.apart()), "it is explored, and leads nowhere"


def test_the_search_goes_on_in_the_largest_piece_where_nobody_met_there_takes_links() -> None:
    found = around(seen(2, ME), seen(3, ME, 5, 6, full=True))
    assert set(found.frontier(found.apart())) == {5, 6}
    found.add(seen(5, 3))
    assert not found.frontier(found.apart()), "one that takes links will do"
    ((one, other),) = found.plan(found.apart(), choose_links, 10.0)
    assert (one.id, other.id) == (2, 5)


def test_pieces_are_joined_and_those_with_few_links_are_taken() -> None:
    found = around(seen(2, ME, 4, degree=9), seen(4, 2, degree=1), seen(3, ME, degree=2))
    ((one, other),) = found.plan(found.apart(), choose_links, 10.0)
    assert {one.id, other.id} == {3, 4}


def test_one_link_joins_the_pieces_of_several_topics() -> None:
    found = Surroundings(ME, BOTH, {2: BOTH, 3: BOTH})
    found.add(seen(2, ME, topics=BOTH))
    found.add(seen(3, ME, topics=BOTH))
    assert len(found.plan(found.apart(), choose_links, 10.0)) == 1


def test_a_node_that_is_full_is_not_linked() -> None:
    found = around(seen(2, ME, 4), seen(4, 2, full=True), seen(3, ME))
    ((one, other),) = found.plan(found.apart(), choose_links, 10.0)
    assert {one.id, other.id} == {2, 3}
    assert not around(seen(2, ME, full=True), seen(3, ME)).plan(found.apart(), choose_links, 10.0)


def plan(found: Surroundings) -> list[tuple[int, int]]:
    return [(one.id, other.id) for one, other in found.plan(found.apart(), choose_links, 10.0, found.barred())]


def forbidding(node: Seen, *others: int) -> Seen:
    return msgspec.structs.replace(node, forbid=others)


def test_a_forbidden_link_makes_way_for_another_between_the_same_pieces_or_for_none() -> None:
    """Which end forbids it does not matter."""
    free = around(seen(2, ME, 4), seen(4, 2), seen(3, ME))
    ((one, other),) = plan(free)
    free.add(forbidding(free.seen[one], other))
    ((left, right),) = plan(free)
    assert {left, right} != {one, other}
    free.add(forbidding(free.seen[3], 2, 4))
    assert not plan(free)


@pytest.mark.parametrize("forbidden", combinations(combinations((2, 3, 4, 5), 2), 3))
def test_whichever_links_are_forbidden_those_that_are_not_join_the_pieces(
    forbidden: tuple[tuple[int, int], ...],
) -> None:
    """Four pieces of one node each: three pairs may be linked, or leave a piece apart."""
    leaves = [seen(node, ME) for node in (2, 3, 4, 5)]
    barred = {node.ref.id: [other for one, other in forbidden if one == node.ref.id] for node in leaves}
    found = around(*(forbidding(node, *barred[node.ref.id]) for node in leaves), near=(2, 3, 4, 5))
    made = plan(found)
    assert not set(made) & set(forbidden)
    allowed = nx.Graph(set(combinations((2, 3, 4, 5), 2)) - set(forbidden))
    allowed.add_nodes_from((2, 3, 4, 5))
    assert len(made) == 4 - nx.number_connected_components(allowed)


def test_the_search_goes_on_in_the_largest_piece_where_all_links_to_those_asked_are_forbidden() -> None:
    found = around(forbidding(seen(2, ME), 3, 4), seen(3, ME, 4))
    assert set(found.frontier(found.apart(), found.barred())) == {4}, "what 4 leads to may be linked"
    found.add(seen(4, 3, 5))
    assert set(found.frontier(found.apart(), found.barred())) == {5}
    assert not plan(found) or plan(found) == [(2, 5)]
    found.add(seen(5, 4))
    assert not found.frontier(found.apart(), found.barred())
    assert plan(found) == [(2, 5)]


def test_links_to_nodes_that_were_only_met_come_last_and_join_other_topics_too() -> None:
    found = Surroundings(ME, BOTH, {2: BOTH, 3: BOTH})
    found.add(forbidding(seen(2, ME, topics=BOTH), 3))
    found.add(seen(3, ME, 9, topics=BOTH))
    assert plan(found) == [(2, 9)]


def hub(*others: Seen) -> Surroundings:
    """Two neighbours in two topics; node 9, beyond the second, has both topics and many links."""
    found = Surroundings(ME, BOTH, {2: BOTH, 3: BOTH})
    for node in (seen(2, ME, topics=BOTH), seen(3, ME, 9, *(other.ref.id for other in others), topics=BOTH, degree=9)):
        found.add(node)
    for node in (seen(9, 3, topics=BOTH, degree=40), *others):
        found.add(node)
    return found


def test_a_node_with_far_more_links_than_others_around_is_spared() -> None:
    """By the greedy rule alone one link to it would be best: it joins both topics at once."""
    found = hub(seen(4, 3, topics=(TOPIC,)), seen(5, 3, topics=(OTHER,)), seen(6, 3, topics=(OTHER,)))
    pairs = {(one.id, other.id) for one, other in found.plan(found.apart(), choose_links, 1.5)}
    assert pairs == {(2, 4), (2, 5)}


def test_a_node_with_many_links_is_linked_where_no_other_joins_the_pieces() -> None:
    found = hub(seen(4, 3, topics=(TOPIC,)), seen(5, 3, topics=(TOPIC,)), seen(6, 2, topics=(TOPIC,)))
    ends = {node.id for pair in found.plan(found.apart(), choose_links, 1.5) for node in pair}
    assert ends & {3, 9}, "they alone have the other topic beyond node 2"


@pytest.mark.parametrize("seed", range(60))
def test_sparing_nodes_with_many_links_leaves_nothing_apart_that_others_would_join(seed: int) -> None:
    random = Random(seed)
    topics = frozenset(range(60, 60 + random.choice((1, 3, 12))))
    bits = bits_by_topic(sorted(topics))
    near = {node: draw(random, topics) for node in range(2, 6)}
    has = {node: draw(random, topics) | near.get(node, frozenset()) for node in range(2, 16)}
    linked: dict[int, set[int]] = {node: set() for node in has}
    for _ in range(random.randrange(12)):
        one, other = random.sample(sorted(has), 2)
        linked[one].add(other)
        linked[other].add(one)
    found = Surroundings(ME, topics, near)
    for node, others in linked.items():
        links = {other: (ref(other), bits_of(has[other], bits)) for other in others}
        full = random.random() < 0.2
        found.add(Seen(ref(node), bits_of(has[node], bits), links, random.choice((3, 4, 5, 30, 90)), full))
    takers = {node for node, said in found.seen.items() if not said.full}
    planned = [(one.id, other.id) for one, other in found.plan(found.apart(), choose_links, 3.0)]
    assert set().union(*planned) <= takers
    for one, other in planned:
        linked[one].add(other)
        linked[other].add(one)
    for topic in sorted(topics):
        roots = plain_pieces(topic, near, {n: (has[n], {o: has[o] for o in linked[n]}) for n in has})
        left = {roots[node] for node, shared in near.items() if topic in shared}
        open_pieces = {roots[node] for node in takers if topic in has[node] and roots.get(node) in left}
        assert len(left) <= 1 or len(open_pieces) <= 1, "two pieces with a taker each could have been joined"


def test_instead_of_a_link_in_vain_the_same_pieces_are_joined_by_another() -> None:
    found = around(seen(2, ME, 4), seen(4, 2), seen(3, ME, 5), seen(5, 3, full=True))
    ((one, other),) = found.plan(found.apart(), choose_links, 10.0, found.barred([(3, 4)]))
    assert (one.id, other.id) == (2, 3)
    assert not found.plan(found.apart(), choose_links, 10.0, found.barred([(2, 3), (3, 4)]))


def test_instead_of_a_link_in_vain_nothing_is_sought_in_a_topic_in_which_an_end_has_no_link() -> None:
    """Node 4, met by the first topic, has lost all its links of the other."""
    found = Surroundings(ME, BOTH, {2: BOTH, 3: BOTH})
    found.add(seen(2, topics=BOTH, degree=5))
    found.add(Seen(ref(3), 0b11, {4: (ref(4), 0b01)}, 9))
    found.add(Seen(ref(4), 0b11, {3: (ref(3), 0b01)}, 1))
    apart = found.apart()
    assert apart == {TOPIC: {2: 2, 3: 3, 4: 3}, OTHER: {2: 2, 3: 3}}
    pairs = [(one.id, other.id) for one, other in found.plan(apart, choose_links, 10.0, found.barred([(2, 4)]))]
    assert pairs == [(2, 3)]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_apart_is_what_a_plain_search_of_each_topic_finds(seed: int) -> None:
    random = Random(seed)
    topics = frozenset(random.sample(range(60, 160), random.choice((1, 5, 70))))
    bits = bits_by_topic(sorted(topics))
    near = {node: draw(random, topics) for node in range(2, 6)}
    said: dict[int, tuple[frozenset[int], dict[int, frozenset[int]]]] = {
        node: (draw(random, topics), {other: draw(random, topics) for other in random.sample(range(1, 20), 4)})
        for node in random.sample(range(2, 20), 12)
    }
    found = Surroundings(ME, topics, near)
    for node, (has, links) in said.items():
        named = {other: (ref(other), bits_of(shared, bits)) for other, shared in links.items()}
        found.add(Seen(ref(node), bits_of(has, bits), named, len(links)))
    pieces = {topic: plain_pieces(topic, near, said) for topic in sorted(topics)}
    apart = {
        topic: roots
        for topic, roots in pieces.items()
        if len({roots[node] for node, shared in near.items() if topic in shared}) > 1
    }
    assert found.apart() == apart


def draw(random: Random, topics: frozenset[int]) -> frozenset[int]:
    return frozenset(topic for topic in sorted(topics) if random.random() < 0.7)


def plain_pieces(
    topic: int,
    near: Mapping[int, frozenset[int]],
    said: Mapping[int, tuple[frozenset[int], Mapping[int, frozenset[int]]]],
) -> dict[int, int]:
    """For each node seen in the topic the lowest one it reaches, by links that no one contradicts."""
    adjacent: dict[int, set[int]] = {node: {node} for node, shared in near.items() if topic in shared}
    for node, (has, links) in said.items():
        for other, shared in links.items():
            far_has, far_links = said.get(other, (topic_alone := frozenset({topic}), {node: topic_alone}))
            if other != ME and topic in has & shared & far_has & far_links.get(node, frozenset()):
                adjacent.setdefault(node, {node}).add(other)
                adjacent.setdefault(other, {other}).add(node)
    roots = {}
    for node in adjacent:
        reached, new = set(), {node}
        while new:
            reached |= new
            new = {other for one in new for other in adjacent[one]} - reached
        roots[node] = min(reached)
    return roots


def test_the_bits_of_an_answer_are_those_of_its_topics_in_the_search() -> None:
    found = Surroundings(ME, (3, 5, 7, 9), {2: frozenset({5, 9})})
    asked = found.reader_of((5, 9))
    assert [asked(bits) for bits in range(4)] == [0, 0b0010, 0b1000, 0b1010]
    assert found.reader_of((3, 5, 7, 9))(0b1011) == 0b1011

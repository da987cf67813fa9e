"""What a search has seen, by itself: which neighbours are apart without the node in the middle, and what joins them."""

from __future__ import annotations

from collections.abc import Iterable

from omen.maintain.choosing import choose_links
from omen.protocol.connectivity.surroundings import Seen, Surroundings
from unit.protocol.contexts import ref

ME, TOPIC, OTHER = 1, 70, 71
BOTH = frozenset({TOPIC, OTHER})


def seen(node: int, *links: int, topics: Iterable[int] = (TOPIC,), degree: int = 0, full: bool = False) -> Seen:
    has = frozenset(topics)
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


def test_instead_of_a_link_in_vain_the_same_pieces_are_joined_by_another() -> None:
    found = around(seen(2, ME, 4), seen(4, 2), seen(3, ME, 5), seen(5, 3, full=True))
    ((one, other),) = found.plan(found.apart(), choose_links, 10.0, frozenset({(3, 4)}))
    assert (one.id, other.id) == (2, 3)
    assert not found.plan(found.apart(), choose_links, 10.0, frozenset({(2, 3), (3, 4)}))

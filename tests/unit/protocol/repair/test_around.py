"""Plans around links that do not come about."""

from __future__ import annotations

from collections.abc import Sequence

from omen.maintain.choosing import choose_links
from omen.protocol.repair.around import plan_around, plan_rest

NODES = (10, 20, 30, 40)


def choose(topics: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return choose_links(topics, labels, [0] * len(topics), 10.0, -1)


def test_a_refused_link_is_replaced_and_the_topic_is_connected() -> None:
    """Four pieces of one topic; 10 and 20 will not be linked."""
    found = plan_around({(10, 20)}, NODES, [[0]] * 4, [[label] for label in range(4)], choose)
    assert (0, 1) not in found and len(found) == 3
    pieces = [{place} for place in range(4)]
    for one, other in found:
        joined = next(piece for piece in pieces if one in piece) | next(piece for piece in pieces if other in piece)
        pieces = [piece for piece in pieces if not piece & joined] + [joined]
    assert pieces == [{0, 1, 2, 3}]


def test_a_node_that_all_refuse_is_left_out_and_the_others_are_linked() -> None:
    refused = {(10, 40), (20, 40), (30, 40)}
    found = plan_around(refused, NODES, [[0]] * 4, [[label] for label in range(4)], choose)
    assert len(found) == 2 and not any(3 in pair for pair in found)


def test_topics_that_only_the_two_have_stay_apart() -> None:
    topics, labels = [[0, 1], [0, 1], [1]], [[0, 0], [1, 1], [2]]
    assert plan_around({(10, 20)}, NODES[:3], topics, labels, choose) == [(1, 2), (0, 2)] or plan_around(
        {(10, 20)}, NODES[:3], topics, labels, choose
    ) == [(0, 2), (1, 2)]


def test_where_there_is_no_way_around_the_link_itself_is_what_is_left() -> None:
    """Two pieces, and messages between them are lost for a while: no other node can join them."""
    topics, labels = [[0], [0]], [[0], [1]]
    found = plan_around({(10, 20)}, NODES[:2], topics, labels, choose)
    assert found == []
    assert plan_rest(topics, labels, found, choose) == [(0, 1)]


def test_where_there_is_a_way_around_nothing_is_left() -> None:
    topics, labels = [[0]] * 4, [[label] for label in range(4)]
    found = plan_around({(10, 20)}, NODES, topics, labels, choose)
    assert plan_rest(topics, labels, found, choose) == []

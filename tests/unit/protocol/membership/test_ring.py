"""The ring: distances, the nearest on either side, and which node coordinates."""

from __future__ import annotations

import random

from omen.protocol.events import SECOND
from omen.protocol.membership.ring import SPACE, SPARE, Ring, clockwise, nearest_after, nearest_before, place_of
from unit.protocol.contexts import make_context, ref

ME = 1000
MINUTE = 60 * SECOND


def test_distances_wrap_round() -> None:
    assert clockwise(SPACE - 1, 1) == 2
    assert nearest_after(SPACE - 5, [1, 7, SPACE - 9], 2) == [1, 7]
    assert nearest_before(3, [1, 7, SPACE - 9], 2) == [1, SPACE - 9]


def test_names_are_spread_and_stay_where_they_are() -> None:
    assert place_of("ann") == place_of("ann") != place_of("bob")
    assert 0 <= place_of("ann") < SPACE


def make_ring(resilience: int = 2) -> Ring:
    return Ring(make_context(ME, resilience=resilience))


def test_the_nearest_on_either_side_are_kept_and_no_more() -> None:
    ring = make_ring()
    others = [node for node in range(0, 2000, 50) if node != ME]
    random.Random(1).shuffle(others)
    for node in others:
        ring.consider(ref(node))
    assert ring.get_succs() == [1050, 1100]
    assert ring.get_preds() == [950, 900]
    assert len(ring.members) == 2 * (2 + SPARE)


def test_a_loss_is_filled_from_the_spares_at_once() -> None:
    ring = make_ring()
    for node in (1050, 1100, 1150, 950):
        ring.consider(ref(node))
    assert ring.drop(1050)
    assert ring.get_succs() == [1100, 1150]
    assert not ring.drop(1050)


def test_on_a_small_ring_a_node_is_on_both_sides() -> None:
    ring = make_ring()
    ring.consider(ref(5))
    assert ring.get_succs() == ring.get_preds() == [5]


def test_the_coordinator_is_the_first_live_node_after_the_lost_one() -> None:
    ring = make_ring()
    for node in (900, 950, 1050):
        ring.consider(ref(node))
    assert ring.is_coordinator(960)
    assert not ring.is_coordinator(940)
    assert ring.nearest_successor_of(940) == 950
    ring.drop(950)
    assert ring.is_coordinator(940)


def test_fewer_than_l_nodes_between_are_in_range() -> None:
    ring = make_ring()
    for node in (850, 900, 950):
        ring.consider(ref(node))
    assert ring.is_in_pred_range(910)
    assert not ring.is_in_pred_range(840)
    assert ring.succ_range(910) == [950, ME]


def test_failed_nodes_and_the_node_itself_are_not_taken_in() -> None:
    context = make_context(ME)
    context.peer_table.declare_failed(5, 1, now=0)
    ring = Ring(context)
    assert not ring.consider(ref(5))
    assert not ring.consider(ref(ME))
    assert ring.consider(ref(5, incarnation=2))


def test_a_walk_goes_on_by_l_nodes_and_not_past_its_origin() -> None:
    context = make_context(ME, resilience=2)
    ring = Ring(context)
    for node in (*range(700, 1000, 50), *range(1050, 1350, 50)):
        ring.consider(ref(node))
    context.clock.now = MINUTE
    assert ring.next_step(ME, 7) == ref(1100)
    assert ring.next_step(1075, 7) == ref(1050)
    assert ring.next_step(1050, 7) is None, "none stands between, so it has gone round"
    assert ring.next_step(ME, 1050) == ref(1150), "not by the newcomer it is for"


def test_a_walk_goes_on_by_one_node_while_the_ring_may_have_gaps() -> None:
    """Worlds 40066983 and 40080902: just after losses, what follows a gap may be nodes that stand behind."""
    context = make_context(ME, resilience=3)
    ring = Ring(context)
    for node in (850, 900, 950, 1050, 1100, 1150):
        ring.consider(ref(node))
    assert ring.next_step(ME, 7) == ref(1050), "it has just begun"
    context.clock.now = MINUTE
    assert ring.next_step(ME, 7) == ref(1150), "a small ring that rests is known as a whole"
    ring.drop(1050)
    ring.drop(1100)
    assert ring.get_succs() == [1150, 850, 900]
    assert ring.next_step(ME, 7) == ref(1150)
    context.clock.now = 2 * MINUTE
    assert ring.next_step(ME, 7) == ref(900)

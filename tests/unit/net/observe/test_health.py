"""Estimates of a cluster's size, and what is made of them."""

from __future__ import annotations

import random

from omen.net.observe.health import SizeMemory, estimate_nodes
from omen.protocol.membership.ring import SPACE, nearest_after, nearest_before


def test_few_nodes_are_counted_and_many_estimated_by_their_spacing() -> None:
    assert estimate_nodes(5, {1, 2, 3}, 8) == 4
    draw = random.Random(1)
    places = sorted(draw.randrange(SPACE) for _ in range(1000))
    found = []
    for place in places[:50]:
        ring = {*nearest_after(place, places, 8), *nearest_before(place, places, 8)}
        found.append(estimate_nodes(place, ring, 8))
    assert 500 < sorted(found)[25] < 2000
    assert all(200 < nodes < 5000 for nodes in found)


def test_a_cluster_that_loses_most_of_its_nodes_seems_far_smaller_for_some_hours() -> None:
    memory = SizeMemory()
    for _ in range(100):
        memory.note(100.0, 5.0)
    assert not memory.is_far_smaller
    memory.note(20.0, 5.0)
    assert not memory.is_far_smaller  # one look may be wrong
    for _ in range(30):
        memory.note(20.0, 5.0)
    assert memory.is_far_smaller
    for _ in range(24 * 60):
        memory.note(20.0, 60.0)
    assert not memory.is_far_smaller


def test_a_few_nodes_less_are_no_warning() -> None:
    memory = SizeMemory()
    for nodes in (20.0, 12.0, 10.0):
        for _ in range(100):
            memory.note(nodes, 5.0)
    assert not memory.is_far_smaller

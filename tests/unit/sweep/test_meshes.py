"""Meshes drawn for each topic are what they are said to be, and are judged by themselves."""

from __future__ import annotations

from collections import Counter

import networkx
import pytest

from omen.interests import Interests
from omen.sweep.meshes import draw_meshes, measure_meshes
from omen.workloads import generate_interests


def interests_of_sizes(*sizes: int) -> Interests:
    return Interests.from_pairs([(node, topic) for topic, size in enumerate(sizes) for node in range(size)])


def test_every_subscriber_has_the_degree_of_the_mesh_and_no_link_leaves_its_topic() -> None:
    interests = interests_of_sizes(40, 3, 7, 60, 8)
    u, v = draw_meshes(interests, 6, seed=1)
    links = set(zip(u.tolist(), v.tolist(), strict=True))
    assert len(links) == u.size
    held = Counter([*u.tolist(), *v.tolist()])
    for topic, size in enumerate((40, 3, 7, 60, 8)):
        first = int(interests.topic_offsets[topic])
        places = range(first, first + size)
        assert all(held[place] <= min(6, size - 1) for place in places)
        assert sum(held[place] for place in places) >= min(6, size - 1) * size - 4
        assert all((one in places) == (other in places) for one, other in links)


def test_the_same_seed_draws_the_same_meshes_and_another_others() -> None:
    interests = interests_of_sizes(30)
    one, again, other = (draw_meshes(interests, 6, seed)[0].tolist() for seed in (1, 1, 2))
    assert one == again != other


def test_meshes_are_judged_by_their_own_links_alone() -> None:
    interests = generate_interests(40, 6, "uniform", "4", seed=3)
    assert measure_meshes(interests, 1, 1, seed=3)["mesh_k_holds"] == 0
    assert measure_meshes(interests, 6, 2, seed=3)["mesh_k_holds"] == 1


def test_links_in_common_are_counted_once() -> None:
    interests = generate_interests(40, 6, "uniform", "4", seed=3)
    u, v = draw_meshes(interests, 6, seed=3)
    nodes = interests.topic_nodes.tolist()
    union = networkx.Graph((nodes[one], nodes[other]) for one, other in zip(u.tolist(), v.tolist(), strict=True))
    found = measure_meshes(interests, 6, 2, seed=3)
    assert found["mesh_shared_avg_degree"] == pytest.approx(2 * union.number_of_edges() / 40)
    assert found["mesh_shared_avg_degree"] < found["mesh_avg_degree"]
    assert set(measure_meshes(interests, 6, 0, seed=3)) == {"mesh_avg_degree", "mesh_max_degree"}

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import (
    Degrees,
    Diameters,
    PerTopicLinks,
    degree_summary,
    diameter_summary,
    per_topic_mesh_links,
    per_topic_ring_links,
    topic_diameters,
    topic_link_counts,
)


def topics_of_sizes(*sizes: int, nodes: int | None = None) -> Interests:
    pairs = [(node, topic) for topic, size in enumerate(sizes) for node in range(size)]
    return Interests.from_pairs(pairs, nodes=range(max(sizes, default=0) if nodes is None else nodes))


def path(nodes: int) -> list[tuple[int, int]]:
    return [(node, node + 1) for node in range(nodes - 1)]


def test_average_degree_counts_nodes_without_links() -> None:
    overlay = Overlay.from_links(range(5), [(0, 1), (0, 2), (0, 3)])
    assert degree_summary(overlay) == Degrees(average=6 / 5, maximum=3, histogram=((0, 1), (1, 3), (3, 1)))


def test_no_nodes_and_no_links_have_degree_zero() -> None:
    assert degree_summary(Overlay.from_links([], [])) == Degrees(0.0, 0, ())
    assert degree_summary(Overlay.from_links([4, 5], [])) == Degrees(0.0, 0, ((0, 2),))


def test_summaries_are_made_of_plain_values() -> None:
    overlay = Overlay.from_links(range(3), path(3))
    interests = topics_of_sizes(3)
    assert [type(value) for value in asdict(degree_summary(overlay)).values()] == [float, int, tuple]
    diameters = diameter_summary(interests, topic_diameters(interests, overlay))
    assert [type(value) for value in asdict(diameters).values()] == [float, int, int, int]
    assert [type(value) for value in asdict(per_topic_ring_links(interests)).values()] == [int, float, int]


def test_diameter_is_measured_within_the_topic() -> None:
    shortcut = Overlay.from_links(range(7), [*path(6), (0, 6), (5, 6)])
    interests = Interests.from_pairs([(node, "path") for node in range(6)] + [(node, "ring") for node in range(7)])
    assert topic_diameters(interests, shortcut).tolist() == [5, 3]


def test_small_empty_and_split_topics_have_diameters_0_and_minus_1() -> None:
    nodes, topics = np.arange(4), np.arange(5)
    codes = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [2, 3], [0, 4], [1, 4], [2, 4]])
    interests = Interests.from_codes(nodes, topics, codes[:, 0], codes[:, 1])
    diameters = topic_diameters(interests, Overlay.from_links(range(4), [(0, 1), (1, 2)]))
    assert diameters.tolist() == [0, 0, 1, -1, 2]
    assert diameter_summary(interests, diameters) == Diameters(mean=1.5, maximum=2, topics=3, disconnected=1)


def test_without_a_measurable_topic_mean_and_maximum_are_zero() -> None:
    interests = topics_of_sizes(2)
    diameters = topic_diameters(interests, Overlay.from_links(range(2), []))
    assert diameter_summary(interests, diameters) == Diameters(0.0, 0, 1, 1)
    nothing = Interests.from_pairs([])
    diameters = topic_diameters(nothing, Overlay.from_links([], []))
    assert diameter_summary(nothing, diameters) == Diameters(0.0, 0, 0, 0)


@pytest.mark.parametrize("bounded_from", [0, 10**9])
@pytest.mark.parametrize("bounding_searches", [0, 1, 2, 50])
@pytest.mark.parametrize("nodes", [2, 63, 64, 65, 128, 200])
def test_paths_rings_and_stars_have_their_diameters_on_every_route(
    nodes: int, bounding_searches: int, bounded_from: int
) -> None:
    interests = topics_of_sizes(nodes)
    order = np.random.default_rng(nodes).permutation(nodes).tolist()
    shapes = {
        nodes - 1: path(nodes),
        nodes // 2: [*path(nodes), (0, nodes - 1)],
        min(2, nodes - 1): [(0, node) for node in range(1, nodes)],
    }
    for diameter, links in shapes.items():
        overlay = Overlay.from_links(range(nodes), [(order[u], order[v]) for u, v in links])
        measured = topic_diameters(
            interests, overlay, bounded_from=bounded_from, bounding_searches=bounding_searches, chunk_entries=1
        )
        assert measured.tolist() == [diameter]


def test_links_inside_each_topic_are_counted() -> None:
    interests = Interests.from_pairs([(0, "a"), (1, "a"), (2, "a"), (1, "b"), (2, "b"), (3, "b"), (3, "c")])
    overlay = Overlay.from_links(range(4), [(0, 1), (1, 2), (0, 3), (2, 3)])
    assert topic_link_counts(interests, overlay).tolist() == [2, 2, 0]


def test_per_topic_rings_need_a_link_a_subscriber() -> None:
    assert per_topic_ring_links(topics_of_sizes(1, 2, 3, 10)) == PerTopicLinks(0 + 1 + 3 + 10, 2.8, 0 + 1 + 2 + 2)


def test_per_topic_meshes_need_half_their_degree_a_subscriber_or_a_clique() -> None:
    interests = topics_of_sizes(1, 2, 5, 7, 8, nodes=10)
    assert per_topic_mesh_links(interests) == PerTopicLinks(0 + 1 + 10 + 21 + 24, 11.2, 0 + 1 + 4 + 6 + 6)
    assert per_topic_mesh_links(topics_of_sizes(5), degree=3).links == 8


def test_per_topic_overlays_of_nothing_need_nothing() -> None:
    nothing = PerTopicLinks(0, 0.0, 0)
    for interests in (Interests.from_pairs([]), Interests.from_pairs([], nodes=[1, 2])):
        assert per_topic_ring_links(interests) == nothing
        assert per_topic_mesh_links(interests) == nothing


def test_a_mesh_of_degree_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 or more"):
        per_topic_mesh_links(topics_of_sizes(3), degree=0)

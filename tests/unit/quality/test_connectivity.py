from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import (
    FailingTopic,
    check_overlay,
    component_labels,
    topic_components,
    topic_connectivity,
    topic_link_counts,
)
from omen.quality.topic_graphs import iterate_topic_graphs, label_components


def one_topic(nodes: int, links: list[tuple[int, int]]) -> tuple[Interests, Overlay]:
    interests = Interests.from_pairs([(node, "t") for node in range(nodes)])
    return interests, Overlay.from_links(range(nodes), links)


def ring(nodes: int, steps: int = 1) -> list[tuple[int, int]]:
    return [(node, (node + step) % nodes) for node in range(nodes) for step in range(1, steps + 1)]


def clique(nodes: int) -> list[tuple[int, int]]:
    return [(u, v) for v in range(nodes) for u in range(v)]


TEA_AND_RUM = Interests.from_pairs(
    [("ann", "tea"), ("bob", "tea"), ("cid", "tea"), ("bob", "rum"), ("dan", "rum"), ("ann", "oil")],
    nodes=["ann", "bob", "cid", "dan", "eve"],
)


def test_a_topic_linked_only_through_strangers_is_broken() -> None:
    overlay = Overlay.from_links(TEA_AND_RUM.nodes, [("ann", "bob"), ("bob", "dan"), ("cid", "dan")])
    check = check_overlay(TEA_AND_RUM, overlay)
    assert not check.holds
    assert not check.topic_connected
    assert check.failing == (FailingTopic("tea", subscribers=3, components=2, connectivity=0),)
    with pytest.deprecated_call(match="failing"):
        assert check.broken == check.failing


def test_taking_any_needed_link_away_is_noticed() -> None:
    links = [("ann", "bob"), ("bob", "cid"), ("bob", "dan")]
    assert check_overlay(TEA_AND_RUM, Overlay.from_links(TEA_AND_RUM.nodes, links)).holds
    for lost in links:
        rest = [link for link in links if link != lost]
        check = check_overlay(TEA_AND_RUM, Overlay.from_links(TEA_AND_RUM.nodes, rest))
        assert [topic.topic for topic in check.failing] == ["rum" if "dan" in lost else "tea"]


def test_labels_number_components_by_their_lowest_node_in_each_topic() -> None:
    overlay = Overlay.from_links(TEA_AND_RUM.nodes, [("bob", "cid")])
    assert TEA_AND_RUM.topics.tolist() == ["oil", "rum", "tea"]
    assert component_labels(TEA_AND_RUM, overlay).tolist() == [0, 0, 1, 0, 1, 1]
    assert topic_components(TEA_AND_RUM, overlay).tolist() == [1, 2, 2]
    assert component_labels(TEA_AND_RUM, overlay).dtype == np.int32


def test_an_overlay_without_links_splits_topics_into_their_subscribers() -> None:
    check = check_overlay(TEA_AND_RUM, Overlay.from_links(TEA_AND_RUM.nodes, []))
    assert [(topic.topic, topic.components) for topic in check.failing] == [("rum", 2), ("tea", 3)]


def test_a_verdict_is_made_of_plain_values() -> None:
    verdict = asdict(check_overlay(TEA_AND_RUM, Overlay.from_links(TEA_AND_RUM.nodes, []), k=2))
    assert {type(value) for value in verdict.values()} == {int, bool, tuple}
    assert {type(value) for value in verdict["failing"][0].values()} == {int, str}


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_nothing_to_connect_is_connected(k: int) -> None:
    empty = Interests.from_pairs([])
    assert check_overlay(empty, Overlay.from_links([], []), k).holds
    idle = Interests.from_pairs([], nodes=[1, 2, 3])
    assert check_overlay(idle, Overlay.from_links([1, 2, 3], []), k).holds
    alone = Interests.from_pairs([(1, 1), (2, 2)])
    assert check_overlay(alone, Overlay.from_links([1, 2], []), k).holds


def test_a_topic_nobody_wants_holds() -> None:
    labels = np.arange(2)
    interests = Interests.from_codes(labels, np.arange(3), np.array([0, 1]), np.array([1, 1]))
    overlay = Overlay.from_links([0, 1], [(0, 1)])
    assert topic_components(interests, overlay).tolist() == [0, 1, 0]
    for k in (1, 2, 3):
        assert check_overlay(interests, overlay, k).holds


@pytest.mark.parametrize("k", [2, 3, 8])
def test_two_subscribers_are_enough_where_they_are_linked(k: int) -> None:
    assert check_overlay(*one_topic(2, [(0, 1)]), k).holds
    assert check_overlay(*one_topic(2, []), k).failing == (FailingTopic("t", 2, 2, 0),)


@pytest.mark.parametrize("k", [3, 4, 5, 6, 50])
def test_at_most_k_subscribers_must_be_a_clique(k: int) -> None:
    links = clique(4)
    assert check_overlay(*one_topic(4, links), k).holds == (k >= 3)
    for lost in links:
        check = check_overlay(*one_topic(4, [link for link in links if link != lost]), k)
        assert check.failing == (FailingTopic("t", 4, 1, 2),)
        assert check.topic_connected


@pytest.mark.parametrize("linear_up_to", [0, 1, 2])
@pytest.mark.parametrize(("nodes", "steps"), [(7, 1), (9, 2), (40, 2), (11, 3), (60, 3)])
def test_a_ring_of_d_steps_survives_any_2d_minus_1_losses(nodes: int, steps: int, linear_up_to: int) -> None:
    links = ring(nodes, steps)
    for k in range(1, 2 * steps + 3):
        interests, overlay = one_topic(nodes, links)
        assert check_overlay(interests, overlay, k, linear_up_to=linear_up_to).holds == (k <= 2 * steps)
        found = topic_connectivity(interests, overlay, k, linear_up_to=linear_up_to).tolist()
        assert found == [min(k, 2 * steps)]
    broken = check_overlay(*one_topic(nodes, links[1:]), 2 * steps, linear_up_to=linear_up_to).failing
    assert [topic.connectivity for topic in broken] == [2 * steps - 1]


@pytest.mark.parametrize("shared", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("linear_up_to", [0, 1, 2])
def test_two_cliques_are_as_connected_as_what_they_share(shared: int, linear_up_to: int) -> None:
    size = 7
    second = [(u + size - shared, v + size - shared) for u, v in clique(size)]
    interests, overlay = one_topic(2 * size - shared, clique(size) + second)
    assert topic_connectivity(interests, overlay, 6, linear_up_to=linear_up_to).tolist() == [shared]


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "2"])
def test_k_below_one_or_no_number_is_refused(k: int) -> None:
    interests, overlay = one_topic(2, [(0, 1)])
    with pytest.raises(InvalidInput, match="k must be a whole number, 1 or more"):
        check_overlay(interests, overlay, k)
    with pytest.raises(InvalidInput, match="k must be"):
        topic_connectivity(interests, overlay, k)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 1], "node 2 is in the interests only"),
        ([0, 1, 2, 7], "node 7 is in the overlay only"),
        (["0", "1", "2"], "node '0' is in the overlay only"),
    ],
)
def test_an_overlay_over_other_nodes_is_refused(nodes: list[int], message: str) -> None:
    interests, _ = one_topic(3, [])
    for judge in (check_overlay, component_labels, topic_components, topic_link_counts):
        with pytest.raises(InvalidInput, match=message):
            judge(interests, Overlay.from_links(nodes, []))


def test_read_only_and_strided_arrays_are_judged_too() -> None:
    interests, overlay = one_topic(6, ring(6))
    links = np.stack((overlay.u, overlay.v), axis=1)
    strided = Overlay(overlay.nodes, links[:, 0], links[:, 1])
    for array in (interests.node_topics, interests.topic_offsets, interests.node_offsets, links):
        array.flags.writeable = False
    assert check_overlay(interests, strided, 2).holds


def test_unsorted_links_are_judged_alike() -> None:
    interests, overlay = one_topic(30, ring(30, 2))
    order = np.random.default_rng(1).permutation(overlay.link_count)
    mixed = Overlay(overlay.nodes, overlay.u[order], overlay.v[order])
    assert topic_connectivity(interests, mixed, 9).tolist() == [4]


def dense_instance(seed: int) -> tuple[Interests, Overlay]:
    random = np.random.default_rng(seed)
    wanted = random.random((30, 12)) < random.random(30)[:, None]
    interests = Interests.from_codes(np.arange(30), np.arange(12), *np.nonzero(wanted))
    return interests, Overlay.from_codes(np.arange(30), *np.nonzero(np.triu(random.random((30, 30)) < 0.3, 1)))


@pytest.mark.parametrize("seed", range(5))
def test_searched_and_streamed_topic_lists_give_the_same(seed: int) -> None:
    interests, overlay = dense_instance(seed)
    labels, counts = label_components(interests, overlay)
    for ratio in (0, 1, 1000):
        assert np.array_equal(labels, label_components(interests, overlay, ratio)[0])
        assert np.array_equal(counts, label_components(interests, overlay, ratio)[1])
        assert np.array_equal(topic_link_counts(interests, overlay, ratio), topic_link_counts(interests, overlay))


@pytest.mark.parametrize("chunk_entries", [0, 7, 100, 10**6])
def test_chunks_of_any_size_hold_every_topic_once_with_its_links(chunk_entries: int) -> None:
    interests, overlay = dense_instance(9)
    links = set(overlay.links())
    next_topic = 0
    for graphs in iterate_topic_graphs(interests, overlay, chunk_entries, search_ratio=1):
        assert graphs.first == next_topic
        next_topic = graphs.last
        rows = np.split(graphs.neighbours, graphs.row_offsets[1:-1])
        for topic in range(graphs.first, graphs.last):
            nodes = interests.subscribers_of(topic).tolist()
            for node in nodes:
                expected = [rank for rank, other in enumerate(nodes) if {(node, other), (other, node)} & links]
                assert rows.pop(0).tolist() == expected
    assert next_topic == interests.topic_count
    whole = topic_connectivity(interests, overlay, 5)
    assert np.array_equal(topic_connectivity(interests, overlay, 5, chunk_entries=chunk_entries), whole)

"""The judge against networkx: components, node connectivity and diameter of every topic's induced subgraph."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay, component_labels, topic_components, topic_connectivity, topic_diameters


def subgraphs(interests: Interests, overlay: Overlay) -> list[networkx.Graph]:
    graph = overlay.to_networkx()
    return [
        graph.subgraph(interests.nodes[interests.subscribers_of(topic)].tolist())
        for topic in range(interests.topic_count)
    ]


def connectivity_of(graph: networkx.Graph) -> int:
    return networkx.node_connectivity(graph) if len(graph) > 1 else 0


def holds_by_definition(graph: networkx.Graph, k: int) -> bool:
    """Definition 1, word for word."""
    n = len(graph)
    is_clique = graph.number_of_edges() == n * (n - 1) // 2
    return (n > k and connectivity_of(graph) >= k) or (n <= k and is_clique)


def assert_components_agree(interests: Interests, overlay: Overlay) -> None:
    labels = component_labels(interests, overlay)
    counts = topic_components(interests, overlay)
    for topic, graph in enumerate(subgraphs(interests, overlay)):
        nodes = interests.nodes[interests.subscribers_of(topic)].tolist()
        own = labels[interests.topic_offsets[topic] : interests.topic_offsets[topic + 1]].tolist()
        pieces = [{node for node, label in zip(nodes, own, strict=True) if label == piece} for piece in set(own)]
        assert sorted(map(sorted, pieces)) == sorted(map(sorted, networkx.connected_components(graph)))
        assert counts[topic] == len(pieces)
        assert set(own) == set(range(len(pieces)))


def assert_connectivity_agrees(interests: Interests, overlay: Overlay, linear_up_to: int) -> None:
    graphs = subgraphs(interests, overlay)
    exact = np.array([connectivity_of(graph) for graph in graphs], dtype=np.int64)
    for k in (1, 2, 3, 4, 5, 20):
        found = topic_connectivity(interests, overlay, k, linear_up_to=linear_up_to, chunk_entries=30)
        assert found.tolist() == np.minimum(exact, k).tolist()
        check = check_overlay(interests, overlay, k, linear_up_to=linear_up_to)
        failing = [topic for topic, graph in enumerate(graphs) if graph and not holds_by_definition(graph, k)]
        assert [broken.topic for broken in check.failing] == interests.topics[failing].tolist()
        for broken, topic in zip(check.failing, failing, strict=True):
            assert broken.subscribers == len(graphs[topic])
            assert broken.components == networkx.number_connected_components(graphs[topic])
            assert broken.connectivity == min(exact[topic], k)


def assert_diameters_agree(interests: Interests, overlay: Overlay, bounded_from: int, bounding_searches: int) -> None:
    found = topic_diameters(
        interests, overlay, bounded_from=bounded_from, bounding_searches=bounding_searches, chunk_entries=100
    )
    for topic, graph in enumerate(subgraphs(interests, overlay)):
        if len(graph) == 0:
            assert found[topic] == 0
        else:
            assert found[topic] == (networkx.diameter(graph) if networkx.is_connected(graph) else -1)


@st.composite
def judged(draw: st.DrawFn) -> tuple[Interests, Overlay]:
    nodes = draw(st.integers(0, 12))
    topics = draw(st.integers(1, 5))
    members = st.lists(st.integers(0, nodes - 1), max_size=nodes) if nodes else st.just([])
    rows = [(node, topic) for topic in range(topics) for node in draw(members)]
    codes = np.array(rows, dtype=np.int64).reshape(-1, 2)
    interests = Interests.from_codes(np.arange(nodes), np.arange(topics), codes[:, 0], codes[:, 1])
    possible = [(u, v) for v in range(nodes) for u in range(v)]
    links = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    if draw(st.booleans()):  # dense ones are rarely drawn, and connectivity above two needs them
        links = [link for link in possible if link not in links[:6]]
    return interests, Overlay.from_links(range(nodes), links)


@settings(max_examples=60, deadline=None)
@given(judged(), st.sampled_from([0, 1, 2]), st.sampled_from([(0, 0), (0, 2), (0, 30), (99, 1)]))
def test_judge_equals_networkx(
    instance: tuple[Interests, Overlay], linear_up_to: int, bounding: tuple[int, int]
) -> None:
    assert_components_agree(*instance)
    assert_connectivity_agrees(*instance, linear_up_to)
    assert_diameters_agree(*instance, *bounding)


def random_instance(nodes: int, topics: int, degree: float, seed: int) -> tuple[Interests, Overlay]:
    random = np.random.default_rng(seed)
    wanted = random.random((nodes, topics)) < random.random(topics)
    wanted[: nodes // 10] = False
    interests = Interests.from_codes(np.arange(nodes), np.arange(topics), *np.nonzero(wanted))
    linked = np.triu(random.random((nodes, nodes)) < degree / nodes, 1)
    return interests, Overlay.from_codes(np.arange(nodes), *np.nonzero(linked))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("degree", [3, 8, 14])
def test_judge_equals_networkx_on_larger_instances(degree: int, seed: int) -> None:
    interests, overlay = random_instance(50, 4, degree, seed)
    assert_components_agree(interests, overlay)
    assert_connectivity_agrees(interests, overlay, seed % 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounding", [(0, 4), (0, 1000), (10**9, 0)])
def test_diameters_equal_networkx_on_topics_of_many_subscribers(bounding: tuple[int, int], seed: int) -> None:
    interests, overlay = random_instance(150, 3, (4, 8, 15, 30)[seed], seed)
    ring = np.arange(150)
    whole = Overlay.from_codes(
        overlay.nodes, np.concatenate((overlay.u, ring)), np.concatenate((overlay.v, np.roll(ring, 1)))
    )
    assert_diameters_agree(interests, whole, *bounding)


@pytest.mark.parametrize("seed", range(6))
def test_harary_like_and_regular_graphs_have_the_connectivity_networkx_finds(seed: int) -> None:
    graph = networkx.random_regular_graph(3 + seed % 4, 24, seed=seed)
    interests = Interests.from_pairs([(node, 0) for node in graph])
    assert_connectivity_agrees(interests, Overlay.from_networkx(graph), 2)
    both = networkx.compose(graph, networkx.hkn_harary_graph(3, 24))
    assert_connectivity_agrees(interests, Overlay.from_networkx(both), 2)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("nodes", [7, 12])
def test_a_harary_graph_holds_and_without_any_one_link_does_not(k: int, nodes: int) -> None:
    graph = networkx.hkn_harary_graph(k, nodes)
    interests = Interests.from_pairs([(node, 0) for node in graph])
    assert check_overlay(interests, Overlay.from_networkx(graph), k).holds
    if k % 2 and nodes % 2 and k > 1:
        return  # one node has a link to spare
    for link in list(graph.edges):
        less = graph.copy()
        less.remove_edge(*link)
        check = check_overlay(interests, Overlay.from_networkx(less), k)
        assert [broken.connectivity for broken in check.failing] == [k - 1]

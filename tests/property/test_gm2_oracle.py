"""The compiled GM2 chooses the links of the literal algorithm, in the same order, on every path it has."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.interests import Interests
from omen.kernels.block_forest import JOINED, link_in_topic, share_block
from omen.kernels.engine import TUNED, Tuning, choose_block_links
from reference.gm2 import Graph, blocks_of, gm2
from reference.greedy import Link, Topics
from reference.instances import as_interests, as_topics, random_interests, tiny_topics

SPARSE, DENSE = 0, 1000

paths = st.builds(Tuning, st.sampled_from([1, 2, 3, TUNED.cache_length]), st.sampled_from([SPARSE, 2, 4, DENSE]))


def links_of_engine(interests: Interests, path: Tuning = TUNED) -> list[Link]:
    return [(u, v) for u, v in choose_block_links(interests, path).tolist()]


@settings(max_examples=250, deadline=None)
@given(tiny_topics(), paths)
def test_gm2_equals_its_oracle_in_order_on_tiny_instances(instance: tuple[Topics, int], path: Tuning) -> None:
    topics_of, topic_count = instance
    assert links_of_engine(as_interests(topics_of, topic_count), path) == gm2(topics_of)


LARGER = {
    "100 nodes, uniform": random_interests(100, 20, 3, 8, 0.0, seed=1),
    "100 nodes, skewed": random_interests(100, 40, 2, 7, 1.0, seed=2),
    "100 nodes, many small topics": random_interests(100, 80, 2, 9, 0.5, seed=3),
    "20 nodes that share 300 topics": random_interests(20, 300, 250, 300, 0.0, seed=4),
}


@pytest.mark.parametrize("name", LARGER)
def test_gm2_equals_its_oracle_in_order_on_larger_instances(name: str) -> None:
    interests = LARGER[name]
    expected = gm2(as_topics(interests))
    for path in [TUNED, Tuning(1, SPARSE), Tuning(2, DENSE), Tuning(3, 4), Tuning(dense_divisor=SPARSE)]:
        assert links_of_engine(interests, path) == expected


def graphs(max_nodes: int = 12) -> st.SearchStrategy[tuple[int, list[Link]]]:
    """A number of nodes, and distinct links among them in some order."""

    def links_among(nodes: int) -> st.SearchStrategy[tuple[int, list[Link]]]:
        pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes)]
        links = st.lists(st.sampled_from(pairs), unique=True, max_size=2 * nodes) if pairs else st.just([])
        return st.tuples(st.just(nodes), links)

    return st.integers(1, max_nodes).flatmap(links_among)


def adjacency(nodes: int, links: list[Link]) -> Graph:
    graph: Graph = {node: set() for node in range(nodes)}
    for u, v in links:
        graph[u].add(v)
        graph[v].add(u)
    return graph


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_the_oracle_finds_the_blocks_networkx_finds(instance: tuple[int, list[Link]]) -> None:
    nodes, links = instance
    graph = networkx.Graph(links)
    graph.add_nodes_from(range(nodes))
    expected = [set(block) for block in networkx.biconnected_components(graph)]
    expected += [{node} for node in networkx.isolates(graph)]
    found = blocks_of(adjacency(nodes, links))
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_the_forest_knows_shared_blocks_after_every_link(instance: tuple[int, list[Link]]) -> None:
    nodes, links = instance
    block, ring = np.arange(nodes, dtype=np.int32), np.arange(nodes, dtype=np.int32)
    above = np.full(nodes, -1, dtype=np.int32)
    path_a, path_b, mark = (np.zeros(nodes, dtype=np.int32) for _ in range(3))
    trees, blocks = nodes, 0
    for stamp, (a, b) in enumerate(links, start=1):
        merged = link_in_topic(block, above, ring, a, b, path_a, path_b, mark, stamp)
        trees -= merged == JOINED
        blocks += 1 if merged == JOINED else 1 - merged
        found = blocks_of(adjacency(nodes, links[:stamp]))
        assert blocks == sum(len(members) > 1 for members in found)
        for u in range(nodes):
            for v in range(u + 1, nodes):
                assert share_block(block, above, u, v) == any({u, v} <= members for members in found)
    assert trees == sum(size < 0 for size in above.tolist())
    assert -above[above < 0].sum() == nodes

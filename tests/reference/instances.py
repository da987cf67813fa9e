"""Instances to hold kernels against their oracles: hypothesis strategies for tiny ones, fixed seeds for larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from omen.interests import Interests
from reference.greedy import Link, Topics, all_pairs, topic_components


def as_interests(topics_of: Topics, topic_count: int) -> Interests:
    """The same instance as compressed rows; nodes are 0..n-1, topics without subscribers stay."""
    pairs = [(node, topic) for node, topics in topics_of.items() for topic in topics]
    nodes, topics = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Interests.from_codes(np.arange(len(topics_of)), np.arange(topic_count), nodes, topics)


def as_topics(interests: Interests) -> Topics:
    """The instance as a dict of sets."""
    return {node: set(interests.topics_of(node).tolist()) for node in range(interests.node_count)}


def component_labels(interests: Interests, topics_of: Topics, links: set[Link]) -> npt.NDArray[np.int32]:
    """For each entry of `topic_nodes`, the component it is in within its topic."""
    components = topic_components(topics_of, links)
    return np.array(
        [
            components[topic][int(node)]
            for topic in range(interests.topic_count)
            for node in interests.subscribers_of(topic)
        ],
        dtype=np.int32,
    )


@st.composite
def tiny_topics(draw: DrawFn, max_nodes: int = 14, max_topics: int = 8) -> tuple[Topics, int]:
    """Nodes with their topics, and how many topics there are.

    Some topics have 0, 1 or 2 subscribers, some nodes have no topic, some nodes have the very same topics.
    """
    node_count = draw(st.integers(1, max_nodes))
    topic_count = draw(st.integers(1, max_topics))
    popular = draw(st.integers(1, topic_count))
    topic_sets = st.sets(st.integers(0, popular - 1), max_size=popular)
    topics_of: Topics = {}
    for node in range(node_count):
        twin = draw(st.integers(-3 * node_count, node - 1))
        topics_of[node] = set(topics_of[twin]) if twin >= 0 else draw(topic_sets)
    for topic in range(popular, topic_count):
        for node in draw(st.sets(st.integers(0, node_count - 1), max_size=2)):
            topics_of[node].add(topic)
    return topics_of, topic_count


def partial_links(topics_of: Topics) -> SearchStrategy[set[Link]]:
    """Some links that exist already, useful or not."""
    pairs = sorted(all_pairs(topics_of))
    if not pairs:
        return st.just(set())
    return st.sets(st.sampled_from(pairs), max_size=len(pairs) // 3 + 1)


def random_interests(nodes: int, topics: int, low: int, high: int, skew: float, seed: int) -> Interests:
    """Each node draws between `low` and `high` topics without replacement, topic t with weight (t + 1) ** -skew."""
    generator = np.random.default_rng(seed)
    log_weights = -skew * np.log(np.arange(1, topics + 1))
    sizes = generator.integers(low, high + 1, nodes)
    keys = log_weights + generator.gumbel(size=(nodes, topics))
    ranked = np.argsort(-keys, axis=1)
    chosen: Any = [ranked[node, : sizes[node]] for node in range(nodes)]
    node_codes = np.repeat(np.arange(nodes), sizes)
    return Interests.from_codes(np.arange(nodes), np.arange(topics), node_codes, np.concatenate(chosen))

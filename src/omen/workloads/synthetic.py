"""Synthetic workloads: each node draws its topics without replacement until its size is reached.

Every random word is keyed by (seed, node, counter), so the rows of a range of nodes are the same however the whole is
split into ranges, here and on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Interests, group
from omen.kernels.sampling import build_guide, draw_sizes, draw_topics
from omen.workloads.specs import Floats, Popularity, Sizes

Integers = npt.NDArray[np.int64]

_LARGEST_COUNT = 2**31 - 1
_LARGEST_NODE = 2**62
_FAILURES_ALLOWED = (
    2  # repeats dropped for each topic wanted before drawing from what remains; part of what a seed means
)
_SMALLEST_WEIGHT = 1e-290


@dataclass(frozen=True, eq=False)
class _Tables:
    cdf: Floats
    guide: Integers
    weights: Floats
    log_weights: Floats


@lru_cache(maxsize=4)
def _tables(popularity: Popularity, topics: int) -> _Tables:
    log_weights = popularity.log_weights(topics)
    weights = np.exp(log_weights)
    sums = np.cumsum(weights)
    cdf = sums / sums[-1]
    return _Tables(cdf, build_guide(cdf), np.where(weights < _SMALLEST_WEIGHT, 0.0, weights), log_weights)


def check_synthesis(nodes: int, topics: int, sizes: Sizes, seed: int) -> None:
    """Refuse what no workload can be made of."""
    for count, what in ((nodes, "nodes"), (topics, "topics")):
        if not 1 <= count <= _LARGEST_COUNT:
            raise InvalidInput(f"the number of {what} must lie in 1..{_LARGEST_COUNT}, not {count}")
    _check_topics(topics, sizes)
    _check_seed(seed)


def generate_rows(
    first: int, last: int, topics: int, popularity: Popularity, sizes: Sizes, seed: int
) -> tuple[Integers, Integers]:
    """The subscriptions of nodes first..last-1 as (node, topic) columns, sorted. Nodes without topics have no row."""
    if not 0 <= first <= last <= _LARGEST_NODE:
        raise InvalidInput(f"nodes {first} to {last} are no range of nodes")
    _check_topics(topics, sizes)
    _check_seed(seed)
    tables = _tables(popularity, topics)
    offsets = np.zeros(last - first + 1, dtype=np.int64)
    np.cumsum(draw_sizes(first, last, np.uint64(seed), sizes.smallest, sizes.cdf()), out=offsets[1:])
    drawn = draw_topics(
        first, np.uint64(seed), offsets, tables.cdf, tables.guide, tables.weights, tables.log_weights, _FAILURES_ALLOWED
    )
    return np.repeat(np.arange(first, last, dtype=np.int64), np.diff(offsets)), drawn


def generate_interests(
    nodes: int, topics: int, popularity: Popularity | str, sizes: Sizes | str | int, seed: int = 0
) -> Interests:
    """The whole workload of nodes 0..nodes-1. A topic that no node drew is not part of it, as in the table on disk."""
    popularity = Popularity.parse(popularity) if isinstance(popularity, str) else popularity
    sizes = sizes if isinstance(sizes, Sizes) else Sizes.parse(str(sizes))
    check_synthesis(nodes, topics, sizes, seed)
    node_codes, drawn = generate_rows(0, nodes, topics, popularity, sizes, seed)
    node_offsets = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(node_codes, minlength=nodes), out=node_offsets[1:])
    subscribers = np.bincount(drawn, minlength=topics)
    topic_labels = np.flatnonzero(subscribers).astype(np.int64)
    topic_codes = (np.cumsum(subscribers > 0) - 1)[drawn]
    topic_offsets, topic_nodes = group(topic_codes, node_codes, topic_labels.size)
    return Interests(
        np.arange(nodes, dtype=np.int64),
        topic_labels,
        node_offsets,
        topic_codes.astype(np.int32),
        topic_offsets,
        topic_nodes,
    )


def generate_named_interests(
    nodes: int, topics: int, popularity: Popularity | str, sizes: Sizes | str | int, seed: int = 0
) -> Interests:
    """As `generate_interests`, with the nodes named n0, n1, ... and the topics t0, t1, ...: for live clusters."""
    drawn = generate_interests(nodes, topics, popularity, sizes, seed)
    return Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in drawn.pairs()])


def _check_topics(topics: int, sizes: Sizes) -> None:
    if sizes.largest > topics:
        raise InvalidInput(f"sizes {sizes}: a node cannot want {sizes.largest} of only {topics} topics")
    if not 1 <= topics <= _LARGEST_COUNT:
        raise InvalidInput(f"the number of topics must lie in 1..{_LARGEST_COUNT}, not {topics}")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**64:
        raise InvalidInput(f"the seed must lie in 0..2^64-1, not {seed}")

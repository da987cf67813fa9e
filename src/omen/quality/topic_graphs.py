"""The topic-induced subgraphs of an overlay, handed out a chunk of topics at a time to bound memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Interests, Offsets, encode, plain
from omen.kernels import components, topic_graphs
from omen.overlay import Overlay

SEARCH_RATIO = 16
"""A topic list this many times longer than the other end's is searched instead of streamed."""

CHUNK_ENTRIES = 1 << 25
"""Neighbour entries (4 bytes each) held at once; a single topic may exceed it."""


@dataclass(frozen=True, eq=False)
class TopicGraphs:
    """The subgraphs of topics [first, last): rows of neighbour ranks, one a slot, from topic_offsets[first] on."""

    first: int
    last: int
    row_offsets: Offsets
    neighbours: Codes


@dataclass(frozen=True, eq=False)
class _Arrays:
    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    ranks: Codes
    u: Codes
    v: Codes

    @property
    def all(self) -> tuple[Offsets, Codes, Offsets, Codes, Codes, Codes]:
        return self.node_offsets, self.node_topics, self.topic_offsets, self.ranks, self.u, self.v


def kernel_offsets(array: npt.NDArray[np.int64]) -> Offsets:
    """As kernels take them: contiguous and writeable. A copy only where they are not."""
    return np.require(array, np.int64, ("C", "W"))


def _kernel_arrays(interests: Interests, overlay: Overlay) -> _Arrays:
    require_same_nodes(interests, overlay)
    node_topics, u, v = (np.require(a, np.int32, ("C", "W")) for a in (interests.node_topics, overlay.u, overlay.v))
    ranks = topic_graphs.subscription_ranks(node_topics, interests.topic_count)
    node_offsets, topic_offsets = kernel_offsets(interests.node_offsets), kernel_offsets(interests.topic_offsets)
    return _Arrays(node_offsets, node_topics, topic_offsets, ranks, u, v)


def require_same_nodes(interests: Interests, overlay: Overlay) -> None:
    """Refuse an overlay over other nodes than those of the interests."""
    if overlay.nodes is interests.nodes or np.array_equal(overlay.nodes, interests.nodes):
        return
    found = ""
    for side, own, other in (("interests", interests, overlay), ("overlay", overlay, interests)):
        strangers = np.flatnonzero(encode(other.nodes, own.nodes) < 0)
        if strangers.size:
            found = f": node {plain(own.nodes, int(strangers[0]))!r} is in the {side} only"
    raise InvalidInput(
        f"the overlay's {overlay.node_count} nodes are not the interests' {interests.node_count}{found}; "
        "both must name the same nodes, in label order"
    )


def label_components(interests: Interests, overlay: Overlay, search_ratio: int = SEARCH_RATIO) -> tuple[Codes, Codes]:
    """(component of each subscriber, parallel to topic_nodes, from 0 in each topic; components of each topic)."""
    labels, counts = components.label_components(*_kernel_arrays(interests, overlay).all, search_ratio)
    return labels, counts


def topic_link_counts(
    interests: Interests, overlay: Overlay, search_ratio: int = SEARCH_RATIO
) -> npt.NDArray[np.int64]:
    """Links inside the subgraph of each topic."""
    arrays = _kernel_arrays(interests, overlay)
    degrees = topic_graphs.induced_degrees(*arrays.all, search_ratio)
    return _topic_entries(arrays.topic_offsets, degrees) // 2


def _topic_entries(topic_offsets: Offsets, degrees: Codes) -> npt.NDArray[np.int64]:
    running = _running_sum(degrees)
    return running[topic_offsets[1:]] - running[topic_offsets[:-1]]


def _running_sum(degrees: Codes | Offsets) -> Offsets:
    running = np.zeros(degrees.size + 1, dtype=np.int64)
    np.cumsum(degrees, out=running[1:])
    return running


def iterate_topic_graphs(
    interests: Interests, overlay: Overlay, chunk_entries: int = CHUNK_ENTRIES, search_ratio: int = SEARCH_RATIO
) -> Iterator[TopicGraphs]:
    """All topics in order, as many at a time as fit into `chunk_entries` neighbour entries, one at least."""
    arrays = _kernel_arrays(interests, overlay)
    degrees = topic_graphs.induced_degrees(*arrays.all, search_ratio)
    running = _running_sum(_topic_entries(arrays.topic_offsets, degrees))  # entries before each topic
    first = 0
    while first < interests.topic_count:
        last = int(np.searchsorted(running, running[first] + chunk_entries, side="right")) - 1
        last = min(max(last, first + 1), interests.topic_count)
        row_offsets = _running_sum(degrees[arrays.topic_offsets[first] : arrays.topic_offsets[last]])
        neighbours = topic_graphs.induced_rows(*arrays.all, search_ratio, first, last, row_offsets)
        yield TopicGraphs(first, last, row_offsets, neighbours)
        first = last

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


def kernel_offsets(array: npt.NDArray[np.int64]) -> Offsets:
    """As kernels take them: contiguous and writeable. A copy only where they are not."""
    return np.require(array, np.int64, ("C", "W"))


def _kernel_codes(array: npt.NDArray[np.int32]) -> Codes:
    return np.require(array, np.int32, ("C", "W"))


@dataclass(frozen=True, eq=False)
class _Arrays:
    """What the kernels take, as they take it."""

    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    u: Codes
    v: Codes

    @classmethod
    def of(cls, interests: Interests, overlay: Overlay) -> _Arrays:
        require_same_nodes(interests, overlay)
        if interests.subscription_count >= 2**31:
            raise InvalidInput(
                f"{interests.subscription_count} subscriptions are too many: fewer than 2**31 can be judged"
            )
        return cls(
            kernel_offsets(interests.node_offsets),
            _kernel_codes(interests.node_topics),
            kernel_offsets(interests.topic_offsets),
            _kernel_codes(overlay.u),
            _kernel_codes(overlay.v),
        )

    def slots(self) -> Codes:
        return topic_graphs.subscription_slots(self.node_topics, self.topic_offsets)

    def degrees(self, slots: Codes, search_ratio: int) -> Codes:
        topics = self.topic_offsets.size - 1
        return topic_graphs.induced_degrees(
            self.node_offsets, self.node_topics, slots, self.u, self.v, topics, search_ratio
        )


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
    arrays = _Arrays.of(interests, overlay)
    return components.label_components(
        arrays.node_offsets, arrays.node_topics, arrays.topic_offsets, arrays.u, arrays.v, search_ratio
    )


def topic_link_counts(
    interests: Interests, overlay: Overlay, search_ratio: int = SEARCH_RATIO
) -> npt.NDArray[np.int64]:
    """Links inside the subgraph of each topic."""
    arrays = _Arrays.of(interests, overlay)
    degrees = arrays.degrees(arrays.slots(), search_ratio)
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
    arrays = _Arrays.of(interests, overlay)
    slots = arrays.slots()
    degrees = arrays.degrees(slots, search_ratio)
    running = _running_sum(_topic_entries(arrays.topic_offsets, degrees))  # entries before each topic
    first = 0
    while first < interests.topic_count:
        last = int(np.searchsorted(running, running[first] + chunk_entries, side="right")) - 1
        last = min(max(last, first + 1), interests.topic_count)
        row_offsets = _running_sum(degrees[arrays.topic_offsets[first] : arrays.topic_offsets[last]])
        neighbours = topic_graphs.induced_rows(
            arrays.node_offsets,
            arrays.node_topics,
            arrays.topic_offsets,
            slots,
            arrays.u,
            arrays.v,
            search_ratio,
            first,
            last,
            row_offsets,
        )
        yield TopicGraphs(first, last, row_offsets, neighbours)
        first = last

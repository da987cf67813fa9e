"""Numbers about an overlay: degrees, topic diameters, and what per-topic overlays would need in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Interests
from omen.kernels.distances import measure_diameters
from omen.overlay import Overlay
from omen.quality.topic_graphs import CHUNK_ENTRIES, iterate_topic_graphs, kernel_offsets

BOUNDED_FROM = 1024
"""Subscribers from which eccentricities are bounded before all are searched from."""

BOUNDING_SEARCHES = 16


@dataclass(frozen=True)
class Degrees:
    """Links a node: over all nodes, those without topics too."""

    average: float
    maximum: int
    histogram: tuple[tuple[int, int], ...]  # (degree, nodes of that degree), ascending, no empty ones


@dataclass(frozen=True)
class Diameters:
    """Hops between the two subscribers of a topic that are farthest apart, within the topic.

    Mean and maximum are taken over the connected topics with at least two subscribers: in a topic of one nothing is
    apart. `topics` counts all with at least two, `disconnected` those among them that have no diameter.
    """

    mean: float
    maximum: int
    topics: int
    disconnected: int


@dataclass(frozen=True)
class PerTopicLinks:
    """What an overlay for each topic by itself would need, no link serving two topics."""

    links: int
    average: float  # links per node, over all nodes
    maximum: int


def degree_summary(overlay: Overlay) -> Degrees:
    """Average and maximum degree, and how many nodes have each degree."""
    if overlay.node_count == 0:
        return Degrees(0.0, 0, ())
    values, nodes = np.unique(overlay.degrees, return_counts=True)
    histogram = tuple(zip(values.tolist(), nodes.tolist(), strict=True))
    return Degrees(2 * overlay.link_count / overlay.node_count, int(values[-1]), histogram)


def topic_diameters(
    interests: Interests,
    overlay: Overlay,
    *,
    bounded_from: int = BOUNDED_FROM,
    bounding_searches: int = BOUNDING_SEARCHES,
    chunk_entries: int = CHUNK_ENTRIES,
) -> npt.NDArray[np.int32]:
    """The exact diameter of each topic's subgraph: 0 up to one subscriber, -1 where it is not connected.

    Searches from all subscribers, 64 at a time. In topics of `bounded_from` subscribers or more, up to
    `bounding_searches` searches first find out which need not be searched from.
    """
    diameters = np.zeros(interests.topic_count, dtype=np.int32)
    topic_offsets = kernel_offsets(interests.topic_offsets)
    for graphs in iterate_topic_graphs(interests, overlay, chunk_entries):
        diameters[graphs.first : graphs.last] = measure_diameters(
            topic_offsets,
            graphs.first,
            graphs.last,
            graphs.row_offsets,
            graphs.neighbours,
            bounded_from,
            bounding_searches,
        )
    return diameters


def diameter_summary(interests: Interests, diameters: Codes) -> Diameters:
    """Mean and maximum of the result of `topic_diameters`."""
    held = diameters[np.diff(interests.topic_offsets) > 1]
    connected = held[held >= 0]
    mean = float(connected.mean()) if connected.size else 0.0
    return Diameters(mean, int(connected.max(initial=0)), int(held.size), int(held.size - connected.size))


def per_topic_ring_links(interests: Interests) -> PerTopicLinks:
    """A ring for each topic: n links for n >= 3 subscribers, one for two, none below."""
    return _per_topic_links(interests, 2)


def per_topic_mesh_links(interests: Interests, degree: int = 6) -> PerTopicLinks:
    """A mesh of `degree` links a subscriber for each topic: ceil(degree * n / 2) links, a clique if that is fewer."""
    if degree < 1:
        raise InvalidInput(f"the degree of a mesh must be 1 or more, not {degree}")
    return _per_topic_links(interests, degree)


def _per_topic_links(interests: Interests, degree: int) -> PerTopicLinks:
    sizes = np.diff(interests.topic_offsets)
    links = int(np.minimum(sizes * (sizes - 1) // 2, (degree * sizes + 1) // 2).sum())
    if interests.node_count == 0:
        return PerTopicLinks(links, 0.0, 0)
    nodes, topics = interests.pair_codes
    held = np.bincount(nodes, weights=np.minimum(degree, sizes - 1)[topics], minlength=interests.node_count)
    return PerTopicLinks(links, 2 * links / interests.node_count, int(held.max(initial=0)))

"""Is every topic connected, and how well? The judge every algorithm, test and command asks."""

from __future__ import annotations

from dataclasses import dataclass
from warnings import warn

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Interests, Label
from omen.kernels.connectivity import measure_connectivity
from omen.overlay import Overlay
from omen.quality.topic_graphs import CHUNK_ENTRIES, iterate_topic_graphs, kernel_offsets, label_components

LINEAR_UP_TO = 2
"""Connectivity decided by depth-first search alone; above, by disjoint paths."""


@dataclass(frozen=True)
class FailingTopic:
    """A topic whose subscribers are not connected as asked for."""

    topic: Label
    subscribers: int
    components: int
    connectivity: int  # fewest subscribers whose loss splits it: 0 already split; at most k; a clique of n counts n - 1


@dataclass(frozen=True)
class Check:
    """The verdict: `holds` for the k asked, `topic_connected` for k = 1, and the topics for which it does not hold."""

    k: int
    holds: bool
    topic_connected: bool
    topics: int
    failing: tuple[FailingTopic, ...]

    @property
    def broken(self) -> tuple[FailingTopic, ...]:
        """The former name of `failing`."""
        warn("Check.broken is now Check.failing", DeprecationWarning, stacklevel=2)
        return self.failing


def component_labels(interests: Interests, overlay: Overlay) -> Codes:
    """The component of each subscriber in each topic, parallel to `interests.topic_nodes`.

    Components of a topic are numbered from 0 in the order of their lowest node.
    """
    return label_components(interests, overlay)[0]


def topic_components(interests: Interests, overlay: Overlay) -> Codes:
    """How many components the subscribers of each topic form; 0 for a topic without subscribers."""
    return label_components(interests, overlay)[1]


def topic_connectivity(
    interests: Interests,
    overlay: Overlay,
    k: int,
    *,
    linear_up_to: int = LINEAR_UP_TO,
    chunk_entries: int = CHUNK_ENTRIES,
) -> npt.NDArray[np.int32]:
    """Vertex connectivity of the subgraph of each topic, exact up to `k` and counted no further.

    0 where it is split, and for topics of at most one subscriber; n - 1 for a clique of n. Linear time for k up to 2;
    above, at most n + k(k - 1)/2 searches for k disjoint paths in a topic of n subscribers (Even's algorithm).
    """
    _require_positive(k)
    connectivity = np.zeros(interests.topic_count, dtype=np.int32)
    topic_offsets = kernel_offsets(interests.topic_offsets)
    bound = min(k, max(interests.node_count, 1))
    for graphs in iterate_topic_graphs(interests, overlay, chunk_entries):
        connectivity[graphs.first : graphs.last] = measure_connectivity(
            topic_offsets, graphs.first, graphs.last, graphs.row_offsets, graphs.neighbours, bound, linear_up_to
        )
    return connectivity


def check_overlay(
    interests: Interests,
    overlay: Overlay,
    k: int = 1,
    *,
    linear_up_to: int = LINEAR_UP_TO,
    chunk_entries: int = CHUNK_ENTRIES,
) -> Check:
    """Judge whether the overlay is k-topic-connected.

    Chen, Vitenberg, Jacobsen, Definition 1: the subgraph of every topic is k-connected (more than k subscribers, and no
    loss of fewer than k of them splits it), or a clique where the topic has at most k subscribers. With connectivity
    n - 1 for a clique of n, both say: connectivity at least min(k, n - 1). Exact. For k = 1 near linear in the topic
    lists at the link ends.
    """
    _require_positive(k)
    sizes = np.diff(interests.topic_offsets)
    components = topic_components(interests, overlay)
    if k == 1:
        connectivity = np.minimum(1, sizes - 1) * (components == 1)
    else:
        connectivity = topic_connectivity(
            interests, overlay, k, linear_up_to=linear_up_to, chunk_entries=chunk_entries
        ).astype(np.int64)
    found = np.flatnonzero(connectivity < np.minimum(k, np.maximum(sizes - 1, 0)))
    columns = (interests.topics[found], sizes[found], components[found], connectivity[found])
    failing = tuple(FailingTopic(*row) for row in zip(*(column.tolist() for column in columns), strict=True))
    connected = bool((components <= 1).all())
    return Check(k=int(k), holds=not failing, topic_connected=connected, topics=interests.topic_count, failing=failing)


def _require_positive(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInput(f"k must be a whole number, 1 or more, not {k!r}")

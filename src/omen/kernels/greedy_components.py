"""The topic components a greedy run works on: who is apart from whom, topic by topic, and what a new link merges.

A subscription is known by its place, its index in `topic_nodes`. A component is labelled by the place of one of its members, so
that comparing two labels says whether two subscribers of a topic are apart. Labels are rewritten eagerly on the smaller side of
a merge, because rows of them are read far more often than links are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Places = npt.NDArray[np.int32]
Members = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Helper = TypeVar("Helper", bound=Callable[..., Any])


def borrowing(function: Helper) -> Helper:
    """Compile a helper that allocates nothing: no reference counts, which took half the time of the innermost calls."""
    helper: Helper = numba.njit(nogil=True, _nrt=False)(function)
    return helper


class Components(NamedTuple):
    """Places are int32: up to 2**31 subscriptions."""

    node_offsets: Offsets
    node_topics: Members
    topic_offsets: Offsets
    members: Members  # topic_nodes; unsigned, so that indexing with them needs no check for negative ones
    label: Places  # of each place
    own: Places  # the same labels in the order of node_topics
    place: Places  # of each entry of node_topics
    entry: Places  # the way back: index into node_topics of each place
    ring: Places  # the next place of the same component, round and round
    size: Places  # of the component labelled by this place
    giant: Places  # of each topic: the label of the component that holds more than half of it, or -1
    rest: Places  # of each topic with a giant: the places that were outside it when last counted, ascending
    rest_count: Places
    dense_row: Places  # of each topic: its row in `dense`, or -1
    dense: npt.NDArray[np.int32]  # labels by node, -1 where a node is not subscribed


@compiled()
def components_of(
    node_offsets: Offsets,
    node_topics: npt.NDArray[np.int32],
    topic_offsets: Offsets,
    topic_nodes: npt.NDArray[np.int32],
    labels: npt.NDArray[np.int32],
    dense_divisor: int,
) -> Components:
    """Set up the components named by `labels`; topics held by more than 1/dense_divisor of the nodes get a dense row."""
    nodes = node_offsets.size - 1
    topics = topic_offsets.size - 1
    count = topic_nodes.size
    label = np.empty(count, np.int32)
    own = np.empty(count, np.int32)
    place = np.empty(count, np.int32)
    entry = np.empty(count, np.int32)
    ring = np.empty(count, np.int32)
    size = np.zeros(count, np.int32)
    giant = np.full(topics, np.int32(-1), np.int32)
    rest = np.empty(count, np.int32)
    rest_count = np.zeros(topics, np.int32)
    dense_row = np.full(topics, np.int32(-1), np.int32)
    dense_count = 0
    for t in range(topics):
        held = topic_offsets[t + 1] - topic_offsets[t]
        if held * dense_divisor > nodes and held > 1:
            dense_row[t] = dense_count
            dense_count += 1
    dense = np.full((dense_count, nodes), np.int32(-1), np.int32)
    components = Components(
        node_offsets,
        node_topics.view(np.uint32),
        topic_offsets,
        topic_nodes.view(np.uint32),
        label,
        own,
        place,
        entry,
        ring,
        size,
        giant,
        rest,
        rest_count,
        dense_row,
        dense,
    )
    fill = topic_offsets[:-1].copy()
    for i in range(count):
        q = fill[node_topics[i]]
        fill[node_topics[i]] = q + 1
        place[i] = q
        entry[q] = i
    _group(components, labels)
    return components


@compiled()
def _group(components: Components, labels: npt.NDArray[np.int32]) -> None:
    label, own, entry, ring, size = components.label, components.own, components.entry, components.ring, components.size
    dense, members, topic_offsets = components.dense, components.members, components.topic_offsets
    highest = np.int32(-1)
    lowest = np.int32(0)
    for q in range(labels.size):
        highest = max(highest, labels[q])
        lowest = min(lowest, labels[q])
    if lowest < 0:
        raise ValueError("component labels must not be negative")
    seat = np.full(highest + 1, np.int32(-1), np.int32)
    for t in range(topic_offsets.size - 1):
        start, end = topic_offsets[t], topic_offsets[t + 1]
        row = components.dense_row[t]
        for q in range(start, end):
            first = seat[labels[q]]
            if first < start:
                seat[labels[q]] = q
                first = np.int32(q)
                ring[q] = q
            else:
                ring[q] = ring[first]
                ring[first] = q
            label[q] = first
            own[entry[q]] = first
            size[first] += 1
            if row >= 0:
                dense[row, members[q]] = first
        for q in range(start, end):
            if 2 * size[q] > end - start:
                _crown(components, np.int64(t), np.int64(q))


@borrowing
def _crown(components: Components, topic: int, giant: int) -> None:
    """A component holds more than half of the topic from now on: list the places outside it."""
    label, rest = components.label, components.rest
    start, end = components.topic_offsets[topic], components.topic_offsets[topic + 1]
    kept = start
    for q in range(start, end):
        rest[kept] = q
        kept += label[q] != giant
    components.giant[topic] = giant
    components.rest_count[topic] = kept - start


@borrowing
def _shorten(components: Components, topic: int) -> None:
    label, rest = components.label, components.rest
    start = components.topic_offsets[topic]
    giant = components.giant[topic]
    kept = start
    for i in range(start, start + components.rest_count[topic]):
        q = rest[i]
        rest[kept] = q
        kept += label[q] != giant
    components.rest_count[topic] = kept - start


@borrowing
def _merge(components: Components, topic: int, a: int, b: int) -> None:
    """Make one component of those of places a and b."""
    label, own, entry, ring, size = components.label, components.own, components.entry, components.ring, components.size
    dense, members = components.dense, components.members
    large, small = label[a], label[b]
    if size[large] < size[small]:
        large, small = small, large
    row = components.dense_row[topic]
    q = small
    while True:
        label[q] = large
        own[entry[q]] = large
        if row >= 0:
            dense[row, members[q]] = large
        q = ring[q]
        if q == small:
            break
    size[large] += size[small]
    ring[large], ring[small] = ring[small], ring[large]
    held = components.topic_offsets[topic + 1] - components.topic_offsets[topic]
    if components.giant[topic] == large:
        if 2 * (held - size[large]) <= components.rest_count[topic]:
            _shorten(components, topic)
    elif 2 * size[large] > held:
        _crown(components, np.int64(topic), np.int64(large))


@borrowing
def link(components: Components, u: int, v: int) -> None:
    """Add the link (u, v): merge the components of its ends in every topic they share."""
    topics, own, place = components.node_topics, components.own, components.place
    i, i_end = components.node_offsets[u], components.node_offsets[u + 1]
    j, j_end = components.node_offsets[v], components.node_offsets[v + 1]
    while i < i_end and j < j_end:
        if topics[i] < topics[j]:
            i += 1
        elif topics[i] > topics[j]:
            j += 1
        else:
            if own[i] != own[j]:
                _merge(components, np.int64(topics[i]), np.int64(place[i]), np.int64(place[j]))
            i += 1
            j += 1


@borrowing
def first_after(places: Places, place: int) -> int:
    """Where in ascending places those beyond the given one begin."""
    low, high = 0, places.size
    while low < high:
        middle = (low + high) >> 1
        if places[middle] <= place:
            low = middle + 1
        else:
            high = middle
    return low

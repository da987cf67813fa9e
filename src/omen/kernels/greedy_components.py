"""The topic components a greedy run works on: who is apart from whom, topic by topic, and what a new link merges.

A subscription is known by its place, its index in `topic_nodes`. A component is labelled by the place of one of its
members, so that comparing two labels says whether two subscribers of a topic are apart. Labels are rewritten eagerly on
the smaller side of a merge, because rows of them are read far more often than links are added.
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
Whole = int | np.integer[Any]

MOST_NARROW = 2**15 - 1  # what an int16 can count and tell apart

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
    dense_row: Places  # of each topic: its row in `narrow`, or -1; its row in `wide` is -2 - dense_row
    narrow: npt.NDArray[np.int16]  # labels by node, less the topic's first place; -1 where a node is not subscribed
    wide: npt.NDArray[np.int32]  # the same for topics of more members than a narrow label can tell apart
    dense_divisor: int


@borrowing
def _lay_out_dense(
    topic_offsets: Offsets, dense_row: Places, nodes: int, dense_divisor: int, narrow_members: int
) -> int:
    """Give the topics held by more than 1/dense_divisor of the nodes a dense row; how many of them are narrow."""
    narrow = wide = 0
    for t in range(dense_row.size):
        held = topic_offsets[t + 1] - topic_offsets[t]
        if held < 2 or held * dense_divisor <= nodes:
            dense_row[t] = -1
        elif held <= narrow_members and narrow < MOST_NARROW:
            dense_row[t] = narrow
            narrow += 1
        else:
            dense_row[t] = -2 - wide
            wide += 1
    return narrow


@compiled()
def components_of(
    node_offsets: Offsets,
    node_topics: npt.NDArray[np.int32],
    topic_offsets: Offsets,
    topic_nodes: npt.NDArray[np.int32],
    labels: npt.NDArray[np.int32],
    dense_divisor: int,
) -> Components:
    """Set up the components named by `labels`."""
    nodes = node_offsets.size - 1
    topics = topic_offsets.size - 1
    count = topic_nodes.size
    dense_row = np.empty(topics, np.int32)
    narrow = _lay_out_dense(
        topic_offsets, dense_row, nodes, abs(dense_divisor), MOST_NARROW if dense_divisor > 0 else 0
    )
    wide = 0
    for t in range(topics):
        wide += dense_row[t] <= -2
    highest = np.int32(-1)
    lowest = np.int32(0)
    for q in range(count):
        highest = max(highest, labels[q])
        lowest = min(lowest, labels[q])
    if lowest < 0:
        raise ValueError("component labels must not be negative")
    components = Components(
        node_offsets,
        node_topics.view(np.uint32),
        topic_offsets,
        topic_nodes.view(np.uint32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(topics, np.int32),
        np.empty(count, np.int32),
        np.empty(topics, np.int32),
        dense_row,
        np.empty((narrow, nodes), np.int16),
        np.empty((wide, nodes), np.int32),
        abs(dense_divisor),
    )
    _cross_index(components, np.empty(topics, np.int32))
    _group(components, labels, np.empty(highest + 1, np.int32))
    return components


@borrowing
def _cross_index(components: Components, filled: Places) -> None:
    """Find each subscription's place, and the way back."""
    node_topics, topic_offsets = components.node_topics, components.topic_offsets
    place, entry = components.place, components.entry
    for t in range(filled.size):
        filled[t] = topic_offsets[t]
    for i in range(node_topics.size):
        t = node_topics[i]
        q = filled[t]
        filled[t] = q + 1
        place[i] = q
        entry[q] = i


@borrowing
def _group(components: Components, labels: npt.NDArray[np.int32], seat: Places) -> None:
    """Thread a ring through the places of each component; seat is scratch, by label."""
    label, own, entry, ring, size = components.label, components.own, components.entry, components.ring, components.size
    topic_offsets = components.topic_offsets
    for k in range(seat.size):
        seat[k] = -1
    for row in range(components.narrow.shape[0]):
        labels_of = components.narrow[row]
        for v in range(labels_of.size):
            labels_of[v] = -1
    for row in range(components.wide.shape[0]):
        wide_labels_of = components.wide[row]
        for v in range(wide_labels_of.size):
            wide_labels_of[v] = -1
    for t in range(topic_offsets.size - 1):
        start, end = topic_offsets[t], topic_offsets[t + 1]
        components.giant[t] = -1
        components.rest_count[t] = 0
        for q in range(start, end):
            first = seat[labels[q]]
            if first < start:
                first = np.int32(q)
                seat[labels[q]] = first
                ring[q] = first
                size[q] = 1
            else:
                ring[q] = ring[first]
                ring[first] = q
                size[q] = 0
                size[first] += 1
            label[q] = first
            own[entry[q]] = first
            _note_dense(components, np.int64(t), np.int64(q), first)
        for q in range(start, end):
            if 2 * size[q] > end - start:
                _crown(components, np.int64(t), np.int64(q))


@borrowing
def _note_dense(components: Components, topic: Whole, place: Whole, label: np.int32) -> None:
    row = components.dense_row[topic]
    if row >= 0:
        components.narrow[row, components.members[place]] = label - components.topic_offsets[topic]
    elif row < -1:
        components.wide[-2 - row, components.members[place]] = label


@borrowing
def _crown(components: Components, topic: Whole, giant: Whole) -> None:
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
def _shorten(components: Components, topic: Whole) -> None:
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
def _merge(components: Components, topic: Whole, a: Whole, b: Whole) -> None:
    """Make one component of those of places a and b."""
    label, own, entry, ring, size = components.label, components.own, components.entry, components.ring, components.size
    large, small = label[a], label[b]
    if size[large] < size[small]:
        large, small = small, large
    dense = components.dense_row[topic] != -1
    q = small
    while True:
        label[q] = large
        own[entry[q]] = large
        if dense:
            _note_dense(components, topic, np.int64(q), large)
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
def link(components: Components, u: Whole, v: Whole) -> None:
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
def first_after(places: Places, place: Whole) -> int:
    """Where in ascending places those beyond the given one begin."""
    low, high = 0, places.size
    while low < high:
        middle = (low + high) >> 1
        if places[middle] <= place:
            low = middle + 1
        else:
            high = middle
    return low

"""The topic-induced subgraphs G_t of an overlay: which topics the ends of a link share, and G_t as compressed rows.

A subscription of node v to topic t is known by its *place* in `node_topics` or by its *slot* in `topic_nodes`; its
*rank* among the subscribers of t is slot - topic_offsets[t]. The loops over links work on places, because those of a
node stand together in memory; G_t is handed out by slots, its vertices are ranks. Places are 32 bits wide.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@compiled("int32[::1](int32[::1], int64[::1])")
def subscription_slots(node_topics: Int32s, topic_offsets: Int64s) -> Int32s:
    """Slot of each place: nodes are visited in ascending order, as topic rows are."""
    slots = np.empty(node_topics.size, np.int32)
    cursors = topic_offsets[:-1].copy()
    for place in range(node_topics.size):
        topic = node_topics[place]
        slots[place] = cursors[topic]
        cursors[topic] += 1
    return slots


@compiled()
def most_topics(node_offsets: Int64s) -> int:
    """Length of the longest topic list."""
    most = 0
    for node in range(node_offsets.size - 1):
        most = max(most, node_offsets[node + 1] - node_offsets[node])
    return most


@compiled()
def remark(
    before: int,
    node: int,
    first_topic: int,
    last_topic: int,
    node_offsets: Int64s,
    node_topics: Int32s,
    marks: Int32s,
) -> None:
    """Clear the marks of `before`; then marks[t] = place + 1 for the topics of `node` in [first_topic, last_topic)."""
    if before >= 0:
        for place in range(node_offsets[before], node_offsets[before + 1]):
            marks[node_topics[place]] = 0
    for place in range(node_offsets[node], node_offsets[node + 1]):
        topic = node_topics[place]
        if first_topic <= topic < last_topic:
            marks[topic] = place + 1


@compiled()
def find_shared(
    node: int, other: int, node_offsets: Int64s, node_topics: Int32s, marks: Int32s, search_ratio: int, shared: Int64s
) -> int:
    """Put the places in other's topic list of the marked topics it shares with `node` into `shared`; returns how many.

    Streams other's list past the marks, or, where that list is over `search_ratio` times as long as node's, looks the
    topics of `node` up in it.
    """
    low, high = node_offsets[other], node_offsets[other + 1]
    start, stop = node_offsets[node], node_offsets[node + 1]
    found = 0
    if high - low <= search_ratio * (stop - start):
        for place in range(low, high):
            shared[found] = place
            found += marks[node_topics[place]] != 0
        return found
    for mine in range(start, stop):
        topic = node_topics[mine]
        end = high
        while low < end:
            middle = (low + end) >> 1
            if node_topics[middle] < topic:
                low = middle + 1
            else:
                end = middle
        if low < high and node_topics[low] == topic and marks[topic] != 0:
            shared[found] = low
            found += 1
    return found


@compiled("int32[::1](int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64)")
def induced_degrees(
    node_offsets: Int64s,
    node_topics: Int32s,
    slots: Int32s,
    link_u: Int32s,
    link_v: Int32s,
    topic_count: int,
    search_ratio: int,
) -> Int32s:
    """Degree of each slot in the subgraph of its topic. Links are best sorted by u, but need not be."""
    at_place = np.zeros(node_topics.size, np.int32)
    marks = np.zeros(topic_count, np.int32)
    shared = np.empty(most_topics(node_offsets) + 1, np.int64)
    marked = -1
    for link in range(link_u.size):
        u, v = link_u[link], link_v[link]
        if u != marked:
            remark(marked, u, 0, topic_count, node_offsets, node_topics, marks)
            marked = u
        for index in range(find_shared(u, v, node_offsets, node_topics, marks, search_ratio, shared)):
            place = shared[index]
            at_place[place] += 1
            at_place[marks[node_topics[place]] - 1] += 1
    degrees = np.empty(node_topics.size, np.int32)
    for place in range(node_topics.size):
        degrees[slots[place]] = at_place[place]
    return degrees


@compiled(
    "int32[::1](int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64,"
    "int64[::1])",
)
def induced_rows(
    node_offsets: Int64s,
    node_topics: Int32s,
    topic_offsets: Int64s,
    slots: Int32s,
    link_u: Int32s,
    link_v: Int32s,
    search_ratio: int,
    first_topic: int,
    last_topic: int,
    row_offsets: Int64s,
) -> Int32s:
    """Neighbours (as ranks) of each slot of the topics [first_topic, last_topic) in the subgraph of its topic.

    `row_offsets` come from `induced_degrees` of those slots. Rows are ascending where links are sorted by (u, v).
    """
    origin = topic_offsets[first_topic]
    cursors = row_offsets[:-1].copy()
    neighbours = np.empty(row_offsets[-1], np.int32)
    marks = np.zeros(topic_offsets.size - 1, np.int32)
    shared = np.empty(most_topics(node_offsets) + 1, np.int64)
    marked = -1
    for link in range(link_u.size):
        u, v = link_u[link], link_v[link]
        if u != marked:
            remark(marked, u, first_topic, last_topic, node_offsets, node_topics, marks)
            marked = u
        for index in range(find_shared(u, v, node_offsets, node_topics, marks, search_ratio, shared)):
            place = shared[index]
            topic = node_topics[place]
            u_slot, v_slot = slots[marks[topic] - 1], slots[place]
            neighbours[cursors[u_slot - origin]] = v_slot - topic_offsets[topic]
            cursors[u_slot - origin] += 1
            neighbours[cursors[v_slot - origin]] = u_slot - topic_offsets[topic]
            cursors[v_slot - origin] += 1
    return neighbours

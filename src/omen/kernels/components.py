"""Components of every topic-induced subgraph, by union-find over the links, without building the subgraphs."""

from __future__ import annotations

import numpy as np

from omen.kernels.compiling import compiled
from omen.kernels.topic_graphs import Int32s, Int64s, find_shared, most_topics, remark


@compiled()
def find_root(parents: Int32s, base: int, vertex: int) -> int:
    """Root of a vertex in the forest that starts at parents[base], halving the path on the way."""
    while True:
        parent = parents[base + vertex]
        if parent == vertex:
            return vertex
        grandparent = parents[base + parent]
        parents[base + vertex] = grandparent
        vertex = grandparent


@compiled()
def number_components(topic_offsets: Int64s, parents: Int32s) -> tuple[Int32s, Int32s]:
    """(labels, counts): components numbered 0.. in each topic, in the order of their first member.

    A parent never has a higher rank than its child, so it is already numbered when the child's turn comes.
    """
    topic_count = topic_offsets.size - 1
    labels = np.empty(parents.size, np.int32)
    counts = np.zeros(topic_count, np.int32)
    for topic in range(topic_count):
        base = topic_offsets[topic]
        for rank in range(topic_offsets[topic + 1] - base):
            parent = parents[base + rank]
            if parent == rank:
                labels[base + rank] = counts[topic]
                counts[topic] += 1
            else:
                labels[base + rank] = labels[base + parent]
    return labels, counts


@compiled(
    "Tuple((int32[::1], int32[::1]))(int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], int64)",
)
def label_components(
    node_offsets: Int64s,
    node_topics: Int32s,
    topic_offsets: Int64s,
    ranks: Int32s,
    link_u: Int32s,
    link_v: Int32s,
    search_ratio: int,
) -> tuple[Int32s, Int32s]:
    """(labels parallel to topic_nodes, components of each topic). Near linear in the topic lists met at link ends."""
    topic_count = topic_offsets.size - 1
    parents = np.empty(topic_offsets[topic_count], np.int32)
    for topic in range(topic_count):
        for slot in range(topic_offsets[topic], topic_offsets[topic + 1]):
            parents[slot] = slot - topic_offsets[topic]
    marks = np.zeros(topic_count, np.int32)
    shared = np.empty(most_topics(node_offsets) + 1, np.int64)
    marked = -1
    for link in range(link_u.size):
        u, v = link_u[link], link_v[link]
        if u != marked:
            remark(marked, u, 0, topic_count, node_offsets, node_topics, ranks, marks)
            marked = u
        for index in range(find_shared(u, v, node_offsets, node_topics, marks, search_ratio, shared)):
            place = shared[index]
            topic = node_topics[place]
            base = topic_offsets[topic]
            u_root = find_root(parents, base, marks[topic] - 1)
            v_root = find_root(parents, base, ranks[place])
            parents[base + max(u_root, v_root)] = min(u_root, v_root)
    return number_components(topic_offsets, parents)

"""Components of every topic-induced subgraph, by union-find over the links, without building the subgraphs."""

from __future__ import annotations

import numpy as np

from omen.kernels.compiling import compiled
from omen.kernels.topic_graphs import Int32s, Int64s, find_shared, most_topics, remark


@compiled()
def find_root(parents: Int32s, place: int) -> int:
    """Root of a subscription's tree, halving the path on the way."""
    while True:
        parent = parents[place]
        if parent == place:
            return place
        grandparent = parents[parent]
        parents[place] = grandparent
        place = grandparent


@compiled()
def number_components(
    node_topics: Int32s, parents: Int32s, topic_offsets: Int64s, labels: Int32s, counts: Int32s
) -> None:
    """Number the trees from 0 in each topic, in the order of their first member, and write the numbers by slot.

    A parent never stands behind its child, so it is numbered when the child's turn comes.
    """
    numbers = np.empty(node_topics.size, np.int32)
    cursors = topic_offsets[:-1].copy()
    for place in range(node_topics.size):
        topic = node_topics[place]
        if parents[place] == place:
            numbers[place] = counts[topic]
            counts[topic] += 1
        else:
            numbers[place] = numbers[parents[place]]
        labels[cursors[topic]] = numbers[place]
        cursors[topic] += 1


@compiled("Tuple((int32[::1], int32[::1]))(int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int64)")
def label_components(
    node_offsets: Int64s,
    node_topics: Int32s,
    topic_offsets: Int64s,
    link_u: Int32s,
    link_v: Int32s,
    search_ratio: int,
) -> tuple[Int32s, Int32s]:
    """(labels parallel to topic_nodes, components of each topic). Near linear in the topic lists met at link ends."""
    topic_count = topic_offsets.size - 1
    parents = np.empty(node_topics.size, np.int32)
    for place in range(node_topics.size):
        parents[place] = place
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
            u_root = find_root(parents, marks[node_topics[place]] - 1)
            v_root = find_root(parents, place)
            if u_root < v_root:
                parents[v_root] = u_root
            elif v_root < u_root:
                parents[u_root] = v_root
    labels = np.empty(node_topics.size, np.int32)
    counts = np.zeros(topic_count, np.int32)
    number_components(node_topics, parents, topic_offsets, labels, counts)
    return labels, counts

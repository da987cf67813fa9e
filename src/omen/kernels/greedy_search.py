"""The best pair of a row: from its candidates while they can tell, else by looking at its topics."""

from __future__ import annotations

import numpy as np

from omen.kernels.greedy_components import Components, Members, Places, Whole, borrowing, first_after
from omen.kernels.greedy_rows import Rows
from omen.kernels.greedy_streams import stream_row


@borrowing
def search_row(components: Components, rows: Rows, bound: Places, u: Whole, level: Whole, limit: Whole) -> np.int64:
    """The lowest v below the degree limit for which (u, v) contributes `level`; no such pair contributes more.

    -1 where there is none; the row's bound is then lowered.
    """
    if rows.limit[u] >= limit and level >= rows.threshold[u]:
        v, highest = _search_candidates(components, rows, u, level, limit)
        if level > rows.threshold[u]:
            if v < 0:
                bound[u] = max(highest, rows.threshold[u])
            return v
        if v >= 0 and v <= rows.tied_to[u]:
            return v
    if level == 1:
        v = _search_apart(components, rows, u, limit)
        if v < 0:
            bound[u] = 0
        return v
    stream_row(components, rows, u, limit)
    rows.bound[u] = rows.best[2]
    bound[u] = rows.best[1]
    return rows.best[0] if rows.best[1] == level else np.int64(-1)


@borrowing
def _search_candidates(
    components: Components, rows: Rows, u: Whole, level: Whole, limit: Whole
) -> tuple[np.int64, np.int32]:
    """The lowest candidate that contributes `level`, and the most any other candidate may still contribute."""
    node_offsets, node_topics, own = components.node_offsets, components.node_topics, components.own
    degrees, mine = rows.degrees, rows.mine
    candidates = rows.candidates[u, : rows.kept[u]]
    weights = rows.weights[u, : rows.kept[u]]
    topics = node_topics[node_offsets[u] : node_offsets[u + 1]]
    stamped = False
    highest = np.int32(0)
    found = np.int64(-1)
    for c in range(candidates.size):
        weight = weights[c]
        if weight <= highest:
            continue
        v = np.uint32(candidates[c])
        if degrees[v] >= limit:
            continue
        if weight >= level:
            if not stamped:
                labels = own[node_offsets[u] : node_offsets[u + 1]]
                for i in range(topics.size):
                    mine[topics[i]] = labels[i]
                stamped = True
            weight = _count_apart(
                mine, node_topics[node_offsets[v] : node_offsets[v + 1]], own[node_offsets[v] : node_offsets[v + 1]]
            )
            weights[c] = weight
            if weight >= level:
                found = np.int64(v)
                break
        highest = max(highest, weight)
    if stamped:
        for i in range(topics.size):
            mine[topics[i]] = -1
    return found, highest


@borrowing
def _count_apart(mine: Places, topics: Members, labels: Places) -> np.int32:
    """In how many of the topics the label differs from mine, where I have one."""
    weight = np.int32(0)
    for i in range(topics.size):
        label = mine[topics[i]]
        weight = np.int32(weight + np.int32((label >= np.int32(0)) & (label != labels[i])))
    return weight


@borrowing
def _search_apart(components: Components, rows: Rows, u: Whole, limit: Whole) -> np.int64:
    """The lowest v below the degree limit that is apart from u in any topic: all there is to know at level 1."""
    topic_offsets, degrees = components.topic_offsets, rows.degrees
    giants, rest, rest_count = components.giant, components.rest, components.rest_count
    members, labels = components.members, components.label
    none = np.uint32(degrees.size)
    best = none
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        if mine == giants[t]:
            outside = rest[topic_offsets[t] : topic_offsets[t] + rest_count[t]]
            for k in range(first_after(outside, components.place[i]), outside.size):
                q = np.uint32(outside[k])
                v = members[q]
                if v >= best:
                    break
                if labels[q] != mine and degrees[v] < limit:
                    best = v
                    break
        else:
            begin, end = components.place[i] + 1, topic_offsets[t + np.uint32(1)]
            after, after_labels = members[begin:end], labels[begin:end]
            for k in range(after.size):
                v = after[k]
                if v >= best:
                    break
                if after_labels[k] != mine and degrees[v] < limit:
                    best = v
                    break
    return np.int64(-1) if best == none else np.int64(best)

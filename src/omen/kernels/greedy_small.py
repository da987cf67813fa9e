"""The greedy rule on instances so small that every pair can be counted at once, and for the pairs of one node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Whole
from omen.kernels.greedy_rows import SATURATED

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@compiled()
def grown(links: Codes) -> Codes:
    """The same links with room for as many again."""
    larger = np.empty((2 * links.shape[0] + 1, 2), np.int32)
    for k in range(links.shape[0]):
        larger[k, 0] = links[k, 0]
        larger[k, 1] = links[k, 1]
    return larger


@compiled()
def prefers_first(friendly: Whole, best: Whole, rho: float) -> bool:
    """Low-ODA, line 10: the degree-friendly link wins if rho times its contribution reaches the best one."""
    return bool(friendly > 0 and friendly * rho >= best)


@compiled()
def saturate(degree: Codes, caps: Codes) -> None:
    """Mark the nodes that have reached their caps."""
    for u in range(caps.size):
        if degree[u] >= caps[u]:
            degree[u] = SATURATED


@compiled()
def saturate_ends(degree: Codes, caps: Codes, u: Whole, v: Whole) -> None:
    """The same for the ends of a new link."""
    if caps.size > 0:
        if degree[u] >= caps[u]:
            degree[u] = SATURATED
        if degree[v] >= caps[v]:
            degree[v] = SATURATED


@compiled()
def small_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    degrees: Codes,
    caps: Codes,
    max_degree: Whole,
    least: Whole,
    raising: Whole,
    rho: float,
) -> Codes:
    """Count all pairs, then count down those a merge brings together: O(nodes**2) per link, no other set-up."""
    nodes = degrees.size
    label = labels.copy()
    degree = degrees.copy()
    saturate(degree, caps)
    weight = np.zeros((nodes, nodes), np.int32)
    for t in range(topic_offsets.size - 1):
        for a in range(topic_offsets[t], topic_offsets[t + 1]):
            for b in range(a + 1, topic_offsets[t + 1]):
                if label[a] != label[b]:
                    weight[topic_nodes[a], topic_nodes[b]] += 1
    links = np.empty((16, 2), np.int32)
    chosen = 0
    while True:
        u, v = _best_pair(weight, degree, max_degree, least, raising if rho >= 1 else least, rho)
        if u < 0:
            return links[:chosen].copy()
        if chosen == links.shape[0]:
            links = grown(links)
        links[chosen, 0] = u
        links[chosen, 1] = v
        chosen += 1
        degree[u] += 1
        degree[v] += 1
        max_degree = max(max_degree, degree[u], degree[v])
        saturate_ends(degree, caps, u, v)
        i, j = node_offsets[u], node_offsets[v]
        while i < node_offsets[u + 1] and j < node_offsets[v + 1]:
            if node_topics[i] < node_topics[j]:
                i += 1
            elif node_topics[i] > node_topics[j]:
                j += 1
            else:
                start, end = topic_offsets[node_topics[i]], topic_offsets[node_topics[i] + 1]
                _merge_and_count_down(weight, label[start:end], topic_nodes[start:end], u, v)
                i += 1
                j += 1


@compiled()
def _best_pair(
    weight: npt.NDArray[np.int32], degree: Codes, max_degree: Whole, least: Whole, raising: Whole, rho: float
) -> tuple[int, int]:
    nodes = degree.size
    best, friendly = np.int32(least - 1), np.int32(least - 1)
    best_u = best_v = friendly_u = friendly_v = -1
    for u in range(nodes):
        if degree[u] == SATURATED:
            continue
        below = degree[u] < max_degree
        row = weight[u]
        for v in range(u + 1, nodes):
            if row[v] > friendly and degree[v] != SATURATED:
                both_below = below and degree[v] < max_degree
                if row[v] > best and (both_below or row[v] >= raising):
                    best, best_u, best_v = row[v], u, v
                if both_below:
                    friendly, friendly_u, friendly_v = row[v], u, v
    if friendly_u >= 0 and prefers_first(friendly, best, rho):
        return friendly_u, friendly_v
    return best_u, best_v


@compiled()
def _merge_and_count_down(weight: npt.NDArray[np.int32], label: Codes, members: Codes, u: int, v: int) -> None:
    mine = other = np.int32(-1)
    for q in range(members.size):
        if members[q] == u:
            mine = label[q]
        elif members[q] == v:
            other = label[q]
    if mine == other:
        return
    for p in range(members.size):
        if label[p] == mine:
            for q in range(members.size):
                if label[q] == other:
                    a, b = members[p], members[q]
                    weight[min(a, b), max(a, b)] -= 1
    for q in range(members.size):
        if label[q] == other:
            label[q] = mine


@compiled()
def index_of(ascending: Codes, value: int) -> int:
    """Where a value that is there stands."""
    low, high = 0, ascending.size
    while low + 1 < high:
        middle = (low + high) >> 1
        if ascending[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@compiled()
def centre_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    degrees: Codes,
    caps: Codes,
    max_degree: Whole,
    least: Whole,
    rho: float,
    centre: int,
) -> Codes:
    """Only pairs with the centre are candidates, as in a join: O(members of its topics), and O(nodes) a link.

    A component of one of its topics is either the centre's or wholly apart from it: it is merged once, as a whole.
    """
    nodes = degrees.size
    degree = degrees.copy()
    saturate(degree, caps)
    weight = np.zeros(nodes, np.int32)
    mine = node_topics[node_offsets[centre] : node_offsets[centre + 1]]
    starts, members, ring, apart = _apart_from(topic_offsets, topic_nodes, labels, mine, centre)
    for q in range(members.size):
        weight[members[q]] += apart[q]
    links = np.empty((min(nodes, mine.size), 2), np.int32)  # each link settles at least one topic component
    chosen = 0
    while True:
        v = _best_partner(weight, degree, max_degree, least, rho, centre)
        if v < 0:
            return links[:chosen].copy()
        if chosen == links.shape[0]:
            links = grown(links)
        links[chosen, 0] = min(v, centre)
        links[chosen, 1] = max(v, centre)
        chosen += 1
        degree[v] += 1
        degree[centre] += 1
        max_degree = max(max_degree, degree[v], degree[centre])
        saturate_ends(degree, caps, v, centre)
        theirs = node_topics[node_offsets[v] : node_offsets[v + 1]]
        i = j = 0
        while i < mine.size and j < theirs.size:
            if mine[i] < theirs[j]:
                i += 1
            elif mine[i] > theirs[j]:
                j += 1
            else:
                q = starts[i] + index_of(members[starts[i] : starts[i + 1]], v)
                while apart[q]:
                    apart[q] = 0
                    weight[members[q]] -= 1
                    q = ring[q]
                i += 1
                j += 1


@compiled()
def _best_partner(weight: Codes, degree: Codes, max_degree: Whole, least: Whole, rho: float, centre: int) -> int:
    best, friendly = np.int32(least - 1), np.int32(least - 1)
    best_v = friendly_v = -1
    if degree[centre] == SATURATED:
        return -1
    below = degree[centre] < max_degree
    for v in range(weight.size):
        if weight[v] > friendly and degree[v] != SATURATED:
            if weight[v] > best:
                best, best_v = weight[v], v
            if below and degree[v] < max_degree:
                friendly, friendly_v = weight[v], v
    return friendly_v if friendly_v >= 0 and prefers_first(friendly, best, rho) else best_v


@compiled()
def _apart_from(
    topic_offsets: Offsets, topic_nodes: Codes, labels: Codes, topics: Codes, centre: int
) -> tuple[Offsets, Codes, Codes, Codes]:
    """The members of the centre's topics, a ring through each component, and who is apart from the centre."""
    starts = np.zeros(topics.size + 1, np.int64)
    highest = -1
    for i in range(topics.size):
        start, end = topic_offsets[topics[i]], topic_offsets[topics[i] + 1]
        starts[i + 1] = starts[i] + end - start
        for q in range(start, end):
            if labels[q] < 0:
                raise ValueError("component labels must not be negative")
            highest = max(highest, labels[q])
    members = np.empty(starts[-1], np.int32)
    ring = np.empty(starts[-1], np.int32)
    apart = np.empty(starts[-1], np.int32)
    seat = np.empty(highest + 1, np.int32)
    for label in range(highest + 1):
        seat[label] = -1
    for i in range(topics.size):
        start = topic_offsets[topics[i]]
        row = topic_nodes[start : topic_offsets[topics[i] + 1]]
        mine = labels[start + index_of(row, centre)]
        for k in range(row.size):
            q = starts[i] + k
            first = seat[labels[start + k]]
            members[q] = row[k]
            apart[q] = labels[start + k] != mine
            if first < starts[i]:
                seat[labels[start + k]] = q
                ring[q] = q
            else:
                ring[q] = ring[first]
                ring[first] = q
    return starts, members, ring, apart

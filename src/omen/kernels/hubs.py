"""CD-ODA, CD-ODA-I and CD-ODA-II (Onus, Richa, section VI): every topic a star around a hub.

Each node has a score, a fraction. While topics are covered, weighted neighbours w_u are kept exactly; neighbours n_u
cannot be, but they only fall, and by at most the topic's other subscribers for each topic covered. So n_u is known
between two bounds, a score is known from above, and n_u is counted again only for a node that leads on its bound. This
is exact, since the leader is chosen only once its own score is counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

MOST_NEIGHBOURS = 0
MOST_WEIGHTED_NEIGHBOURS = 1
HIGHEST_DENSITY = 2


class Scores(NamedTuple):
    """The score of u is at most above[u] / below[u]; equal to it where `counted`. `leaders` is a tree of who wins."""

    above: Offsets
    below: Offsets
    counted: npt.NDArray[np.bool_]
    leaders: Codes


@compiled()
def wins(scores: Scores, a: int, b: int) -> bool:
    """Whether a goes before b: a higher score, compared as fractions without rounding, or the same and a lower node."""
    left = scores.above[a] * scores.below[b]
    right = scores.above[b] * scores.below[a]
    return bool(left > right or (left == right and a < b))


@compiled()
def play(scores: Scores, place: int) -> None:
    a = scores.leaders[2 * place]
    b = scores.leaders[2 * place + 1]
    scores.leaders[place] = a if b < 0 or (a >= 0 and wins(scores, a, b)) else b


@compiled()
def play_from(scores: Scores, u: int) -> None:
    """Bring the tree up to date after u's score changed."""
    place = (scores.leaders.size // 2 + u) // 2
    while place > 0:
        play(scores, place)
        place //= 2


@compiled()
def count_neighbours(
    u: int,
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    covered: npt.NDArray[np.bool_],
    seen: Offsets,
    stamp: int,
) -> int:
    """n_u; leaves `stamp` in `seen` at u and at each of its neighbours."""
    neighbours = 0
    seen[u] = stamp
    for i in range(node_offsets[u], node_offsets[u + 1]):
        t = node_topics[i]
        if not covered[t]:
            for j in range(topic_offsets[t], topic_offsets[t + 1]):
                v = topic_nodes[j]
                if seen[v] != stamp:
                    seen[v] = stamp
                    neighbours += 1
    return neighbours


@compiled()
def open_scores(node_offsets: Offsets, node_topics: Codes, topic_offsets: Offsets, rule: int) -> Scores:
    """Bounds from topic sizes alone: n_u is at most w_u, and at least the others in u's largest topic."""
    n = node_offsets.size - 1
    above = np.zeros(n, np.int64)
    below = np.ones(n, np.int64)
    for u in range(n):
        for i in range(node_offsets[u], node_offsets[u + 1]):
            t = node_topics[i]
            others = topic_offsets[t + 1] - topic_offsets[t] - 1
            above[u] += others
            if rule == HIGHEST_DENSITY:
                below[u] = max(below[u], others)
        if rule == MOST_NEIGHBOURS:
            above[u] = min(above[u], n - 1)
    leaves = 1
    while leaves < n:
        leaves *= 2
    leaders = np.full(2 * leaves, -1, np.int32)
    for u in range(n):
        leaders[leaves + u] = u
    scores = Scores(above, below, np.full(n, rule == MOST_WEIGHTED_NEIGHBOURS), leaders)
    for place in range(leaves - 1, 0, -1):
        play(scores, place)
    return scores


@compiled()
def cover_topic(members: Codes, scores: Scores, rule: int) -> None:
    """Lower the scores of a covered topic's subscribers."""
    others = members.size - 1
    if others == 0:
        return
    for u in members:
        if rule == MOST_NEIGHBOURS:
            scores.counted[u] = False
        elif rule == MOST_WEIGHTED_NEIGHBOURS:
            scores.above[u] -= others
        else:
            scores.above[u] -= others
            scores.below[u] = max(1, scores.below[u] - others)
            scores.counted[u] = False


@compiled("int32[:, ::1](int64[::1], int32[::1], int64[::1], int32[::1], int64)")
def hub_links(
    node_offsets: Offsets, node_topics: Codes, topic_offsets: Offsets, topic_nodes: Codes, rule: int
) -> Codes:
    """The links in order: hub after hub, its neighbours ascending; each as a row (u, v), u < v. None comes twice."""
    n = node_offsets.size - 1
    covered = np.zeros(topic_offsets.size - 1, np.bool_)
    seen = np.full(n, -1, np.int64)
    stamp = 0
    scores = open_scores(node_offsets, node_topics, topic_offsets, rule)
    ends = np.empty(2 * topic_nodes.size, np.int32)  # a topic's star takes fewer links than it has subscribers
    found = 0
    while n > 0:
        u = scores.leaders[1]
        if scores.above[u] == 0:
            break
        neighbours = count_neighbours(u, node_offsets, node_topics, topic_offsets, topic_nodes, covered, seen, stamp)
        stamp += 1
        if not scores.counted[u]:
            scores.counted[u] = True
            if rule == MOST_NEIGHBOURS:
                scores.above[u] = neighbours
            else:
                scores.below[u] = max(1, neighbours)
            play_from(scores, u)
            continue
        for v in range(n):
            if seen[v] == stamp - 1 and v != u:
                ends[found] = min(u, v)
                ends[found + 1] = max(u, v)
                found += 2
        for i in range(node_offsets[u], node_offsets[u + 1]):
            t = node_topics[i]
            if not covered[t]:
                covered[t] = True
                cover_topic(topic_nodes[topic_offsets[t] : topic_offsets[t + 1]], scores, rule)
                for j in range(topic_offsets[t], topic_offsets[t + 1]):
                    play_from(scores, topic_nodes[j])
    return ends[:found].copy().reshape(-1, 2)

"""The greedy engine: one loop for GM, MinMax-ODA, Low-ODA, and for every repair that adds links by the same rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Whole, borrowing, components_of, link
from omen.kernels.greedy_rows import UNLIMITED, Rows, befriend, next_row, raise_degrees, rows_of
from omen.kernels.greedy_search import search_row
from omen.kernels.greedy_small import centre_links, grown, small_links

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@compiled("int32[::1](int64[::1])")
def fresh_labels(topic_offsets: Offsets) -> Codes:
    """The components of an overlay without links: every subscriber its own."""
    labels = np.empty(topic_offsets[-1], np.int32)
    for t in range(topic_offsets.size - 1):
        for q in range(topic_offsets[t], topic_offsets[t + 1]):
            labels[q] = q - topic_offsets[t]
    return labels


@borrowing
def _find_low_edge(
    components: Components, rows: Rows, max_degree: Whole, raising: Whole, rho: float
) -> tuple[np.int64, np.int64]:
    """Low-ODA, lines 8-14. All pairs are searched only at levels that would beat the degree-friendly one."""
    u = v = friendly_u = friendly_v = np.int64(-1)
    to_beat = (max(rows.least, raising) if rho >= 1 else rows.least) - 1.0
    friendly = rho >= 1
    while True:  # one call of search_row for both searches, so that it is compiled into here but once
        if friendly:
            u = next_row(rows.friendly_bound, rows.friendly_block_bound, rows.friendly_level, rows.least)
            level, limit, bound = rows.friendly_level[0], np.int64(max_degree), rows.friendly_bound
        else:
            if rows.level[0] > to_beat:
                u = next_row(rows.bound, rows.block_bound, rows.level, rows.least)
            level, limit, bound = rows.level[0], np.int64(UNLIMITED), rows.bound
            if level <= to_beat:
                return friendly_u, friendly_v
        v = search_row(components, rows, bound, u, level, limit) if u >= 0 else np.int64(-1)
        if not friendly:
            if v >= 0:
                return u, v
        elif u < 0:
            friendly = False
        elif v >= 0:
            friendly = False
            friendly_u, friendly_v = u, v
            to_beat = max(to_beat, level * rho)


@borrowing
def _add_links(
    components: Components, rows: Rows, links: Codes, chosen: Whole, max_degree: Whole, raising: Whole, rho: float
) -> tuple[np.int64, np.int64, bool]:
    """Choose links until none is needed or the room is full: how many there are, the maximum degree, whether done."""
    count = np.int64(chosen)
    highest = np.int64(max_degree)
    while count < links.shape[0]:
        u, v = _find_low_edge(components, rows, highest, raising, rho)
        if u < 0:
            return count, highest, True
        links[count, 0] = u
        links[count, 1] = v
        count += np.int64(1)
        link(components, u, v)
        if rho >= 1 or rows.caps.size > 0:
            highest = raise_degrees(rows, u, v, highest)
    return count, highest, False


@compiled(
    "int32[:,::1](int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], "
    "int32[::1], int64, int64, int64, float64, int64, int64, int64, int64)"
)
def greedy_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    degrees: Codes,
    caps: Codes,
    max_degree: int,
    least: int,
    raising: int,
    rho: float,
    centre: int,
    cache_length: int,
    dense_divisor: int,
    small_nodes: int,
) -> Codes:
    """The links that connect every topic as far as the candidate pairs allow: rows (u, v), u < v, in the order chosen.

    constructLowEdges (Chen, Jacobsen, Vitenberg, Alg. 2), which is Low-ODA (Onus, Richa, Alg. 1) when nothing is linked
    yet. e1 is the best pair of nodes that are both below the maximum degree, e2 the best pair of all; e1 is taken if
    w(e1) * rho >= w(e2), else e2. Pairs that contribute nothing are no candidates; ties go to the lowest (u, v).

    - `labels`, parallel to `topic_nodes`: the component of that subscriber in that topic; equal means connected. Small
      numbers from 0; `fresh_labels` where nothing is linked.
    - `degrees`: the present ones. `max_degree`: of the whole overlay, where that is more than any has here; else -1.
    - `caps`: no link takes a node above its cap; empty where there are none. `least`, at least 1: the smallest
      contribution worth a link. Both take pairs out of the candidates, for e1 and e2 alike, so that topics may stay
      split.
    - `raising`: a pair with a node of the maximum degree is a candidate only where it contributes as much. Neither for
      GM nor with a centre.
    - `rho`: below 1 the degree never decides (GM); infinity is MinMax-ODA.
    - `centre`: only pairs with this node are candidates; -1: all pairs. To stay within a set of nodes, pass their
      instance.

    Cost: where the papers recompute every pair for every link, this looks at a row of pairs only when its upper bound
    says it may win: a few streams of each row through its topics. Memory O(subscriptions + nodes * cache_length).
    """
    highest = np.int64(max_degree)
    for u in range(degrees.size):
        highest = max(highest, np.int64(degrees[u]))
    if centre >= 0:
        return centre_links(
            node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, caps, highest, least, rho, centre
        )
    if degrees.size <= small_nodes:
        return small_links(
            node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, caps, highest, least, raising, rho
        )
    components = components_of(node_offsets, node_topics, topic_offsets, topic_nodes, labels, dense_divisor)
    rows = rows_of(components, degrees, caps, least, cache_length)
    if rho >= 1:
        befriend(rows, highest)
    links = np.empty((degrees.size, 2), np.int32)
    chosen = np.int64(0)
    done = False
    while not done:
        if chosen == links.shape[0]:
            links = grown(links)
        chosen, highest, done = _add_links(components, rows, links, chosen, highest, raising, rho)
    return links[:chosen].copy()

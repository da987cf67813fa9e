"""The greedy engine: one loop for GM, MinMax-ODA, Low-ODA, and for every repair that adds links by the same rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, borrowing, components_of, link
from omen.kernels.greedy_rows import UNLIMITED, Rows, next_row, raise_block_bounds, rows_of, search_row
from omen.kernels.greedy_small import centre_links, grown, small_links

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

# Where the paths inside the engine part; results do not depend on them.
CACHE_LENGTH = 64  # candidates a row keeps
DENSE_DIVISOR = (
    12  # topics held by more than nodes / 12 are compared as dense rows; negative: in 32 bits even if 16 suffice
)
SMALL_NODES = 64  # up to here all pairs are counted directly

NO_CENTRE = -1
NO_MAX_DEGREE = -1


@compiled("int32[::1](int64[::1])")
def fresh_labels(topic_offsets: Offsets) -> Codes:
    """The components of an overlay without links: every subscriber its own."""
    labels = np.empty(topic_offsets[-1], np.int32)
    for t in range(topic_offsets.size - 1):
        for q in range(topic_offsets[t], topic_offsets[t + 1]):
            labels[q] = q - topic_offsets[t]
    return labels


@borrowing
def _befriend(rows: Rows, max_degree: int, friendly_at: npt.NDArray[np.int64]) -> None:
    """The maximum degree has risen: every node below it is degree-friendly again."""
    friendly_bound, bound, degrees = rows.friendly_bound, rows.bound, rows.degrees
    highest = np.int32(0)
    for u in range(bound.size):
        friendly_bound[u] = bound[u] if degrees[u] < max_degree else np.int32(0)
        highest = max(highest, friendly_bound[u])
    raise_block_bounds(friendly_bound, rows.friendly_block_bound)
    friendly_at[0] = highest
    friendly_at[1] = 0


@borrowing
def _find_low_edge(
    components: Components,
    rows: Rows,
    at: npt.NDArray[np.int64],
    friendly_at: npt.NDArray[np.int64],
    max_degree: int,
    rho: float,
) -> tuple[int, int]:
    """Low-ODA, lines 8-14. All pairs are searched only at levels that would beat the degree-friendly one."""
    u = v = friendly_u = friendly_v = np.int64(-1)
    to_beat = 0.0
    friendly = rho >= 1
    while True:  # one call of each helper for both searches: each is compiled into here but once
        if friendly:
            u = next_row(rows.friendly_bound, rows.friendly_block_bound, friendly_at)
            level, limit, bound = friendly_at[0], max_degree, rows.friendly_bound
        else:
            if at[0] <= to_beat:
                return friendly_u, friendly_v
            u = next_row(rows.bound, rows.block_bound, at)
            level, limit, bound = at[0], np.int64(UNLIMITED), rows.bound
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
            to_beat = level * rho


@borrowing
def _count_degrees(rows: Rows, u: int, v: int, max_degree: int, friendly_at: npt.NDArray[np.int64]) -> int:
    """The link (u, v) has been added. The maximum degree after it."""
    degrees = rows.degrees
    highest = max_degree
    for end in (u, v):
        degrees[end] += 1
        highest = max(highest, np.int64(degrees[end]))
        if degrees[end] == max_degree:
            rows.friendly_bound[end] = 0
    if highest > max_degree:
        _befriend(rows, highest, friendly_at)
    return highest


@compiled()
def _run(components: Components, rows: Rows, max_degree: int, rho: float) -> Codes:
    links = np.empty((rows.bound.size, 2), np.int32)
    chosen = 0
    at = np.zeros(2, np.int64)
    friendly_at = np.zeros(2, np.int64)
    for u in range(rows.bound.size):
        at[0] = max(at[0], rows.bound[u])
    if rho >= 1:
        _befriend(rows, max_degree, friendly_at)
    while True:
        u, v = _find_low_edge(components, rows, at, friendly_at, max_degree, rho)
        if u < 0:
            return links[:chosen].copy()
        if chosen == links.shape[0]:
            links = grown(links)
        links[chosen, 0] = u
        links[chosen, 1] = v
        chosen += 1
        link(components, u, v)
        if rho >= 1:
            max_degree = _count_degrees(rows, u, v, max_degree, friendly_at)


@compiled(
    "int32[:,::1](int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], "
    "int64, float64, int64, int64, int64, int64)"
)
def greedy_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    degrees: Codes,
    max_degree: int,
    rho: float,
    centre: int,
    cache_length: int,
    dense_divisor: int,
    small_nodes: int,
) -> Codes:
    """The links that connect every topic as far as the candidate pairs allow: rows (u, v), u < v, in the order chosen.

    constructLowEdges (Chen, Jacobsen, Vitenberg, Alg. 2), which is Low-ODA (Onus, Richa, Alg. 1) when nothing is linked yet.
    e1 is the best pair of nodes that are both below the maximum degree, e2 the best pair of all; e1 is taken if
    w(e1) * rho >= w(e2), else e2. Pairs that contribute nothing are no candidates; ties go to the lowest (u, v).

    - `labels`, parallel to `topic_nodes`: the component of that subscriber in that topic; equal means connected. Small numbers
      from 0, `fresh_labels` where nothing is linked.
    - `degrees`: the present ones. `max_degree`: of the whole overlay, if that is more than the nodes here have; else -1.
    - `rho`: below 1 the degree never decides (GM); infinity is MinMax-ODA.
    - `centre`: only pairs with this node are candidates; -1: all pairs. To stay within a set of nodes, pass their instance.

    Cost: the papers recompute every pair for every link; this looks at a row of pairs when its upper bound says it may win:
    memory O(subscriptions + nodes * cache_length), time a few streams of each row through its topics for each maximum degree.
    """
    for u in range(degrees.size):
        max_degree = max(max_degree, degrees[u])
    if centre >= 0:
        return centre_links(
            node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, max_degree, rho, centre
        )
    if degrees.size <= small_nodes:
        return small_links(node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, max_degree, rho)
    components = components_of(node_offsets, node_topics, topic_offsets, topic_nodes, labels, dense_divisor)
    rows = rows_of(components, degrees, cache_length)
    return _run(components, rows, max_degree, rho)

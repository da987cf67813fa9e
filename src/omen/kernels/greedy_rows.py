"""Rows of candidate links: row u holds the pairs (u, v), v > u, and is looked at only when its bound says it may win.

Contributions only fall while links are added, so what a row knew stays an upper bound. A row keeps its best candidates
(those above a threshold, and the lowest of those that tie with it) and is streamed through its topics again only when
they are used up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Places, Whole, borrowing

UNLIMITED = 2**31 - 1  # a degree limit every node is below: all pairs are candidates
SATURATED = UNLIMITED  # the degree of a node that may take no more links, so that no search pays for caps
_BLOCK = 64

Levels = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """One entry for each node where nothing else is said."""

    degrees: Places  # SATURATED from when a node has reached its cap: it is then below no limit
    caps: Places  # the most links of each node; empty where there are none
    least: int  # pairs that contribute less are no candidates
    bound: Places  # no pair of the row contributes more
    block_bound: Places  # the highest bound of each block of rows, or more
    level: Levels  # of all rows, and the row before which no bound reaches it
    friendly_bound: Places  # the same among pairs of nodes below the maximum degree
    friendly_block_bound: Places
    friendly_level: Levels
    candidates: npt.NDArray[np.int32]  # nodes v, ascending
    weights: npt.NDArray[np.int32]  # their contributions when last looked at
    kept: Places  # how many candidates a row has
    limit: Places  # candidates were taken from nodes of a degree below this; 0: none were taken yet
    threshold: Places  # a pair left out of the candidates contributes no more than this
    tied_to: Places  # and if it does contribute as much, its v is beyond this
    best: npt.NDArray[np.int64]  # what the last stream found: v, its contribution, the highest of the row
    counts: Places  # scratch, zero between uses
    tally: npt.NDArray[np.int16]  # scratch, zero between uses: counts over narrow topics
    touched: Places  # scratch
    drawn: Places  # scratch
    drawn_weight: Places  # scratch
    histogram: Places  # scratch, by weight, zero between uses
    mine: Places  # scratch, by topic, -1 between uses


@compiled()
def rows_of(
    components: Components,
    degrees: npt.NDArray[np.int32],
    caps: npt.NDArray[np.int32],
    least: int,
    cache_length: int,
) -> Rows:
    """Rows that know no more than how many topics each node shares with any node beyond it."""
    nodes = degrees.size
    length = max(1, min(cache_length, nodes))
    blocks = (nodes + _BLOCK - 1) // _BLOCK
    widest = 0
    for u in range(nodes):
        widest = max(widest, components.node_offsets[u + 1] - components.node_offsets[u])
    rows = Rows(
        degrees.copy(),
        caps,
        least,
        np.zeros(nodes, np.int32),
        np.empty(blocks, np.int32),
        np.zeros(2, np.int64),
        np.zeros(nodes, np.int32),
        np.empty(blocks, np.int32),
        np.zeros(2, np.int64),
        np.empty((nodes, length), np.int32),
        np.empty((nodes, length), np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.empty(3, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int16),
        np.empty(nodes + 1, np.int32),
        np.empty(nodes + 1, np.int32),
        np.empty(nodes + 1, np.int32),
        np.zeros(widest + 2, np.int32),
        np.empty(components.topic_offsets.size - 1, np.int32),
    )
    _set_bounds(components, rows)
    return rows


@borrowing
def _set_bounds(components: Components, rows: Rows) -> None:
    node_offsets, node_topics = components.node_offsets, components.node_topics
    topic_offsets, place = components.topic_offsets, components.place
    bound, mine = rows.bound, rows.mine
    for u in range(bound.size):
        for i in range(node_offsets[u], node_offsets[u + 1]):
            bound[u] += place[i] + 1 < topic_offsets[node_topics[i] + np.uint32(1)]
    for t in range(mine.size):
        mine[t] = -1
    for u in range(rows.caps.size):
        if rows.degrees[u] >= rows.caps[u]:
            _saturate(rows, np.int64(u))
    start_levels(bound, rows.block_bound, rows.level)


@borrowing
def _saturate(rows: Rows, u: Whole) -> None:
    """A node has reached its cap: no pair with it is a candidate any more."""
    rows.degrees[u] = SATURATED
    rows.bound[u] = 0
    rows.friendly_bound[u] = 0


@borrowing
def start_levels(bound: Places, block_bound: Places, level: Levels) -> None:
    """Begin at the highest bound."""
    level[0] = 0
    level[1] = 0
    for block in range(block_bound.size):
        highest = np.int32(0)
        for u in range(block * _BLOCK, min(bound.size, (block + 1) * _BLOCK)):
            highest = max(highest, bound[u])
        block_bound[block] = highest
        level[0] = max(level[0], highest)


@borrowing
def next_row(bound: Places, block_bound: Places, level: Levels, least: Whole) -> np.int64:
    """The lowest row whose bound reaches the level, which falls until there is one; -1 when it has fallen below least.

    Bounds only fall, so at one level the search only moves on.
    """
    while level[0] >= least:
        present = level[0]
        u = level[1]
        for block in range(u // _BLOCK, block_bound.size):
            if block_bound[block] >= present:
                end = min(bound.size, (block + 1) * _BLOCK)
                for row in range(max(u, block * _BLOCK), end):
                    if bound[row] >= present:
                        level[1] = row
                        return np.int64(row)
                highest = np.int32(0)
                for row in range(block * _BLOCK, end):
                    highest = max(highest, bound[row])
                block_bound[block] = highest
        level[0] = 0
        level[1] = 0
        for block in range(block_bound.size):
            level[0] = max(level[0], block_bound[block])
    return np.int64(-1)


@borrowing
def befriend(rows: Rows, max_degree: Whole) -> None:
    """The maximum degree has risen: every node below it is degree-friendly again."""
    friendly_bound, bound, degrees = rows.friendly_bound, rows.bound, rows.degrees
    for u in range(bound.size):
        friendly_bound[u] = bound[u] if degrees[u] < max_degree else np.int32(0)
    start_levels(friendly_bound, rows.friendly_block_bound, rows.friendly_level)


@borrowing
def raise_degrees(rows: Rows, u: Whole, v: Whole, max_degree: Whole) -> np.int64:
    """The link (u, v) has been added. The maximum degree after it."""
    degrees = rows.degrees
    highest = np.int64(max_degree)
    for end in (u, v):
        degrees[end] += 1
        highest = max(highest, np.int64(degrees[end]))
        if degrees[end] == max_degree:
            rows.friendly_bound[end] = 0
        if rows.caps.size > 0 and degrees[end] >= rows.caps[end]:
            _saturate(rows, end)
    if highest > max_degree:
        befriend(rows, highest)
    return highest

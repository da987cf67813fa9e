"""Rows of candidate links: row u holds the pairs (u, v), v > u, and is looked at only when its bound says it may win.

Contributions only fall while links are added, so what a row knew stays an upper bound. A row keeps its best candidates (those
above a threshold, and the lowest of those that tie with it) and is streamed through its topics again only when they are used up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Places, rest_after

UNLIMITED = np.int32(2**31 - 1)  # a degree limit every node is below: all pairs are candidates
_BLOCK = 64


class Rows(NamedTuple):
    degrees: Places
    bound: Places  # of each row: no pair contributes more
    block_bound: Places  # the highest bound of each block of rows, or more
    friendly_bound: Places  # the same among pairs of nodes below the maximum degree
    friendly_block_bound: Places
    candidates: npt.NDArray[np.int32]  # of each row: nodes v, ascending
    weights: npt.NDArray[np.int32]  # their contributions when last looked at
    kept: Places  # how many candidates a row has
    limit: Places  # candidates were taken from nodes of a degree below this; 0: none were taken yet
    threshold: Places  # a pair left out of the candidates contributes no more than this
    tied_to: Places  # and if it does contribute as much, its v is beyond this
    count: Places  # scratch, by node, zero between uses
    touched: Places  # scratch, by node
    drawn: Places  # scratch, by node
    drawn_weight: Places  # scratch, by node
    histogram: Places  # scratch, by weight, zero between uses
    mine: Places  # scratch, by topic, -1 between uses


@compiled()
def rows_of(components: Components, degrees: npt.NDArray[np.int32], cache_length: int) -> Rows:
    nodes = degrees.size
    length = max(1, min(cache_length, nodes))
    blocks = (nodes + _BLOCK - 1) // _BLOCK
    bound = np.zeros(nodes, np.int32)
    widest = 0
    for u in range(nodes):
        first, last = components.node_offsets[u], components.node_offsets[u + 1]
        widest = max(widest, last - first)
        for i in range(first, last):
            if components.place[i] + 1 < components.topic_offsets[components.node_topics[i] + np.uint32(1)]:
                bound[u] += 1
    rows = Rows(
        degrees.copy(),
        bound,
        np.empty(blocks, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(blocks, np.int32),
        np.empty((nodes, length), np.int32),
        np.empty((nodes, length), np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.empty(nodes + 1, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.zeros(widest + 2, np.int32),
        np.full(components.topic_offsets.size - 1, np.int32(-1), np.int32),
    )
    raise_block_bounds(rows.bound, rows.block_bound)
    return rows


@compiled()
def raise_block_bounds(bound: Places, block_bound: Places) -> None:
    for block in range(block_bound.size):
        highest = np.int32(0)
        for u in range(block * _BLOCK, min(bound.size, (block + 1) * _BLOCK)):
            highest = max(highest, bound[u])
        block_bound[block] = highest


@compiled()
def next_row(bound: Places, block_bound: Places, at: npt.NDArray[np.int64]) -> int:
    """The lowest row whose bound reaches the level at[0], which falls until there is one; -1 when it has fallen to 0.

    at[1] is a row that all rows with a bound at the level are not below: bounds only fall, so it only moves on.
    """
    while at[0] > 0:
        level = at[0]
        u = at[1]
        for block in range(u // _BLOCK, block_bound.size):
            if block_bound[block] >= level:
                end = min(bound.size, (block + 1) * _BLOCK)
                for row in range(max(u, block * _BLOCK), end):
                    if bound[row] >= level:
                        at[1] = row
                        return row
                highest = np.int32(0)
                for row in range(block * _BLOCK, end):
                    highest = max(highest, bound[row])
                block_bound[block] = highest
        at[0] = 0
        for block in range(block_bound.size):
            at[0] = max(at[0], block_bound[block])
        at[1] = 0
    return -1


@compiled()
def search_row(components: Components, rows: Rows, bound: Places, u: int, level: int, limit: int) -> int:
    """The lowest v for which (u, v) contributes `level`, the most any pair with v below the degree limit can contribute.

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
    v, weight, highest = _stream(components, rows, u, limit)
    rows.bound[u] = highest
    bound[u] = weight
    return v if weight == level else -1


@compiled()
def _search_candidates(components: Components, rows: Rows, u: int, level: int, limit: int) -> tuple[int, int]:
    """The lowest candidate that contributes `level`, and the most any other candidate may still contribute."""
    candidates = rows.candidates[u]
    weights = rows.weights[u]
    first, last = components.node_offsets[u], components.node_offsets[u + 1]
    stamped = False
    highest = np.int32(0)
    found = np.int32(-1)
    for c in range(rows.kept[u]):
        if weights[c] <= highest:
            continue
        v = candidates[c]
        if rows.degrees[v] >= limit:
            continue
        if weights[c] >= level:
            if not stamped:
                for i in range(first, last):
                    rows.mine[components.node_topics[i]] = components.own[i]
                stamped = True
            weight = 0
            for i in range(components.node_offsets[v], components.node_offsets[v + 1]):
                mine = rows.mine[components.node_topics[i]]
                weight += (mine >= 0) & (mine != components.own[i])
            weights[c] = weight
            if weight >= level:
                found = v
                break
        highest = max(highest, weights[c])
    if stamped:
        for i in range(first, last):
            rows.mine[components.node_topics[i]] = -1
    return found, highest


@compiled()
def _search_apart(components: Components, rows: Rows, u: int, limit: int) -> int:
    """The lowest v below the degree limit that is apart from u in any topic."""
    best = np.uint32(components.node_offsets.size - 1)
    none = best
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        if mine == components.giant[t]:
            for k in range(
                rest_after(components, t, components.place[i]),
                components.topic_offsets[t] + components.rest_count[t],
            ):
                q = components.rest[k]
                v = components.members[q]
                if v >= best:
                    break
                if components.label[q] != mine and rows.degrees[v] < limit:
                    best = v
                    break
        else:
            for q in range(components.place[i] + 1, components.topic_offsets[t + np.uint32(1)]):
                v = components.members[q]
                if v >= best:
                    break
                if components.label[q] != mine and rows.degrees[v] < limit:
                    best = v
                    break
    return -1 if best == none else np.int64(best)


@compiled()
def _stream(components: Components, rows: Rows, u: int, limit: int) -> tuple[int, int, int]:
    """Count row u anew. The lowest best v below the degree limit, its contribution, the highest of all pairs."""
    count = rows.count
    nodes = count.size
    dense = False
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        row = components.dense_row[t]
        if row >= 0 and components.own[i] != components.giant[t]:
            mine = components.own[i]
            labels = components.dense[row]
            for v in range(u + 1, nodes):
                count[v] += (labels[v] >= 0) & (labels[v] != mine)
            dense = True
    touched = 0
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        if mine == components.giant[t]:
            for k in range(
                rest_after(components, t, components.place[i]),
                components.topic_offsets[t] + components.rest_count[t],
            ):
                q = components.rest[k]
                v = components.members[q]
                apart = np.int32(components.label[q] != mine)
                rows.touched[touched] = v
                touched += (count[v] == 0) & apart
                count[v] += apart
        elif components.dense_row[t] < 0:
            for q in range(components.place[i] + 1, components.topic_offsets[t + np.uint32(1)]):
                v = components.members[q]
                apart = np.int32(components.label[q] != mine)
                rows.touched[touched] = v
                touched += (count[v] == 0) & apart
                count[v] += apart
    if dense:
        touched = 0
        for v in range(u + 1, nodes):
            rows.touched[touched] = v
            touched += count[v] > 0
    return _draw(rows, u, limit, touched, dense)


@compiled()
def _draw(rows: Rows, u: int, limit: int, touched: int, ascending: bool) -> tuple[int, int, int]:
    """Take the best candidates from the nodes touched, and zero their counts.

    A contribution of 1 is never worth keeping: at level 1 the first node apart is searched directly.
    """
    highest = 0
    best_weight = 0
    best = -1
    drawn = 0
    for k in range(touched):
        v = rows.touched[k]
        weight = rows.count[v]
        rows.count[v] = 0
        highest = max(highest, weight)
        friendly = rows.degrees[v] < limit
        if friendly and weight >= best_weight and (weight > best_weight or v < best):
            best_weight = weight
            best = v
        if weight > 1:
            rows.drawn[drawn] = v
            rows.drawn_weight[drawn] = weight
            drawn += 1
    rows.limit[u] = UNLIMITED
    _keep(rows, u, drawn, highest, ascending)
    return best, best_weight, highest


@compiled()
def _keep(rows: Rows, u: int, drawn: int, highest: int, ascending: bool) -> None:
    length = rows.candidates.shape[1]
    threshold = 1
    tied_to = -1
    if drawn > length:
        threshold, room = _threshold(rows, drawn, highest, length)
        if room > 0:
            ties = 0
            for k in range(drawn):
                if rows.drawn_weight[k] == threshold:
                    rows.touched[ties] = rows.drawn[k]
                    ties += 1
            tied_to = rows.touched[room - 1] if ascending else _select(rows.touched, ties, room - 1)
    kept = 0
    for k in range(drawn):
        weight, v = rows.drawn_weight[k], rows.drawn[k]
        if weight > threshold or (weight == threshold and v <= tied_to):
            slot = kept
            while slot > 0 and rows.candidates[u, slot - 1] > v:
                rows.candidates[u, slot] = rows.candidates[u, slot - 1]
                rows.weights[u, slot] = rows.weights[u, slot - 1]
                slot -= 1
            rows.candidates[u, slot] = v
            rows.weights[u, slot] = weight
            kept += 1
    rows.kept[u] = kept
    rows.threshold[u] = threshold
    rows.tied_to[u] = tied_to


@compiled()
def _threshold(rows: Rows, drawn: int, highest: int, length: int) -> tuple[int, int]:
    """The lowest contribution above which at most `length` are drawn, and how many at it there is room for."""
    for k in range(drawn):
        rows.histogram[rows.drawn_weight[k]] += 1
    room = length
    threshold = highest
    while rows.histogram[threshold] <= room:
        room -= rows.histogram[threshold]
        threshold -= 1
    rows.histogram[: highest + 1] = 0
    return threshold, room


@compiled()
def _select(values: Places, count: int, rank: int) -> int:
    """The value of the given rank, counted from 0; reorders the values."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]

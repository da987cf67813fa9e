"""Rows of candidate links: row u holds the pairs (u, v), v > u, and is looked at only when its bound says it may win.

Contributions only fall while links are added, so what a row knew stays an upper bound. A row keeps its best candidates (those
above a threshold, and the lowest of those that tie with it) and is streamed through its topics again only when they are used up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Members, Places, borrowing, first_after

UNLIMITED = 2**31 - 1  # a degree limit every node is below: all pairs are candidates
_BLOCK = 64
_STRIDE = 32


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
    tally: npt.NDArray[np.int16]  # scratch, by node, zero between uses: counts over narrow topics
    mine: Places  # scratch, by topic, -1 between uses
    best: npt.NDArray[np.int64]  # what the last stream found: v, its contribution, the highest of the row


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
        np.zeros(nodes, np.int16),
        np.empty(components.topic_offsets.size - 1, np.int32),
        np.empty(3, np.int64),
    )
    for t in range(rows.mine.size):
        rows.mine[t] = -1
    raise_block_bounds(rows.bound, rows.block_bound)
    return rows


@borrowing
def raise_block_bounds(bound: Places, block_bound: Places) -> None:
    for block in range(block_bound.size):
        highest = np.int32(0)
        for u in range(block * _BLOCK, min(bound.size, (block + 1) * _BLOCK)):
            highest = max(highest, bound[u])
        block_bound[block] = highest


@borrowing
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


@borrowing
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


@borrowing
def _search_candidates(components: Components, rows: Rows, u: int, level: int, limit: int) -> tuple[int, int]:
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
    return found, np.int64(highest)


@borrowing
def _count_apart(mine: Places, topics: Members, labels: Places) -> np.int32:
    """In how many of the topics the label differs from mine, where I have one."""
    weight = np.int32(0)
    for i in range(topics.size):
        label = mine[topics[i]]
        weight = np.int32(weight + np.int32((label >= np.int32(0)) & (label != labels[i])))
    return weight


@borrowing
def _search_apart(components: Components, rows: Rows, u: int, limit: int) -> int:
    """The lowest v below the degree limit that is apart from u in any topic."""
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
            after = members[components.place[i] + 1 : topic_offsets[t + np.uint32(1)]]
            after_labels = labels[components.place[i] + 1 : topic_offsets[t + np.uint32(1)]]
            for k in range(after.size):
                v = after[k]
                if v >= best:
                    break
                if after_labels[k] != mine and degrees[v] < limit:
                    best = v
                    break
    return -1 if best == none else np.int64(best)


@borrowing
def _stream(components: Components, rows: Rows, u: int, limit: int) -> tuple[int, int, int]:
    """Count row u anew. The lowest best v below the degree limit, its contribution, the highest of all pairs."""
    topic_offsets, dense_row = components.topic_offsets, components.dense_row
    giants, rest_count = components.giant, components.rest_count
    count, tally = rows.count, rows.tally[u + 1 :]
    any_dense = False
    reached = np.int64(0)
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        in_giant = mine == giants[t]
        dense = dense_row[t]
        if dense != -1 and not (in_giant and rest_count[t] * components.dense_divisor <= count.size):
            any_dense = True
            if dense >= 0:
                _compare(tally, components.narrow[dense, u + 1 :], np.int16(mine - topic_offsets[t]))
            else:
                _compare(count[u + 1 :], components.wide[-2 - dense, u + 1 :], mine)
        elif in_giant:
            outside = components.rest[topic_offsets[t] : topic_offsets[t] + rest_count[t]]
            reached = _scatter_outside(
                count,
                rows.touched,
                reached,
                outside[first_after(outside, components.place[i]) :],
                components.members,
                components.label,
                mine,
            )
        else:
            begin, end = components.place[i] + 1, topic_offsets[t + np.uint32(1)]
            reached = _scatter(
                count, rows.touched, reached, components.members[begin:end], components.label[begin:end], mine
            )
    if any_dense:
        _draw_all(rows, u, limit)
    else:
        _draw_touched(rows, u, limit, reached)
    return np.int64(rows.best[0]), np.int64(rows.best[1]), np.int64(rows.best[2])


@borrowing
def _scatter(count: Places, touched: Places, reached: int, members: Members, labels: Places, mine: int) -> int:
    for k in range(members.size):
        v = members[k]
        apart = np.int32(labels[k] != mine)
        before = count[v]
        touched[np.uint64(reached)] = v
        reached += (before == 0) & apart
        count[v] = before + apart
    return reached


@borrowing
def _scatter_outside(
    count: Places, touched: Places, reached: int, outside: Places, members: Members, labels: Places, mine: int
) -> int:
    for k in range(outside.size):
        q = np.uint32(outside[k])
        v = members[q]
        apart = np.int32(labels[q] != mine)
        before = count[v]
        touched[np.uint64(reached)] = v
        reached += (before == 0) & apart
        count[v] = before + apart
    return reached


@borrowing
def _compare(count: npt.NDArray[Any], labels: npt.NDArray[Any], mine: np.int16 | np.int32) -> None:
    for k in range(count.size):
        count[k] += (labels[k] >= np.int16(0)) & (labels[k] != mine)


@borrowing
def _draw_all(rows: Rows, u: int, limit: int) -> None:
    """Take the best candidates of row u from the counts of all nodes beyond u, and zero them."""
    count = rows.count[u + 1 :]
    tally = rows.tally[u + 1 :]
    degrees = rows.degrees[u + 1 :]
    degree_limit = np.int32(limit)
    length = np.int32(rows.candidates.shape[1])
    highest = np.int32(0)
    best_weight = np.int32(0)
    for k in range(count.size):
        weight = np.int32(count[k] + tally[k])
        count[k] = weight
        tally[k] = 0
        highest = weight if weight > highest else highest
        weight = weight if degrees[k] < degree_limit else np.int32(0)
        best_weight = weight if weight > best_weight else best_weight
    threshold, high = np.int32(1), max(highest, np.int32(1))
    room = np.int32(0)
    while threshold < high:
        middle = np.int32((threshold + high) >> 1)
        left = np.int32(length - _count_above(count, middle))
        if left >= 0:
            high = middle
            room = left
        else:
            threshold = np.int32(middle + 1)
    if threshold == 1:  # pairs that contribute 1 are never worth keeping
        room = np.int32(0)
    elif threshold == highest:
        room = length
    _take(rows, u, degree_limit, threshold, room, best_weight)
    rows.best[1] = best_weight
    rows.best[2] = highest


@borrowing
def _count_above(count: Places, level: np.int32) -> np.int32:
    above = np.int32(0)
    for k in range(count.size):
        above = np.int32(above + np.int32(count[k] > level))
    return above


@borrowing
def _take(rows: Rows, u: int, limit: np.int32, threshold: np.int32, room: np.int32, best_weight: np.int32) -> None:
    """Keep what is above the threshold and as many at it as there is room for; find the first of the best weight."""
    candidates, weights = rows.candidates[u], rows.weights[u]
    kept = 0
    best = tied_to = np.int64(-1)
    for begin in range(u + 1, rows.count.size, _STRIDE):
        count = rows.count[begin : min(begin + _STRIDE, rows.count.size)]
        highest = np.int32(0)
        for k in range(count.size):
            highest = count[k] if count[k] > highest else highest
        if highest >= threshold or (best < 0 and highest >= best_weight):
            for k in range(count.size):
                weight = count[k]
                if best < 0 and weight == best_weight and rows.degrees[begin + k] < limit:
                    best = np.int64(begin + k)
                if weight < threshold or (weight == threshold and room == 0):
                    continue
                if weight == threshold:
                    room = np.int32(room - 1)
                    tied_to = np.int64(begin + k)
                candidates[kept] = begin + k
                weights[kept] = weight
                kept += 1
        for k in range(count.size):
            count[k] = 0
    rows.limit[u] = UNLIMITED
    rows.kept[u] = kept
    rows.threshold[u] = threshold
    rows.tied_to[u] = tied_to
    rows.best[0] = best if best_weight > 0 else -1


@borrowing
def _draw_touched(rows: Rows, u: int, limit: int, reached: int) -> None:
    """Take the best candidates from the nodes touched, and zero their counts.

    A contribution of 1 is never worth keeping: at level 1 the first node apart is searched directly.
    """
    touched, count, degrees, drawn, drawn_weight = rows.touched, rows.count, rows.degrees, rows.drawn, rows.drawn_weight
    candidates, weights = rows.candidates, rows.weights
    highest = np.int32(0)
    best_weight = np.int32(0)
    best = np.int64(-1)
    size = 0
    for k in range(reached):
        v = np.uint32(touched[k])
        weight = count[v]
        count[v] = 0
        highest = max(highest, weight)
        if weight >= best_weight and degrees[v] < limit and (weight > best_weight or v < best):
            best_weight = weight
            best = np.int64(v)
        drawn[size] = v
        drawn_weight[size] = weight
        size += weight > 1
    length = candidates.shape[1]
    threshold = np.int32(1)
    tied_to = np.int32(-1)
    if size > length:
        threshold, room = _threshold(rows.histogram, drawn_weight[:size], highest, length)
        if room > 0:
            ties = 0
            for k in range(size):
                touched[ties] = drawn[k]
                ties += drawn_weight[k] == threshold
            tied_to = _select(touched, ties, room - 1)
    kept = 0
    for k in range(size):
        weight, v = drawn_weight[k], drawn[k]
        if weight > threshold or (weight == threshold and v <= tied_to):
            slot = kept
            while slot > 0 and candidates[u, slot - 1] > v:
                candidates[u, slot] = candidates[u, slot - 1]
                weights[u, slot] = weights[u, slot - 1]
                slot -= 1
            candidates[u, slot] = v
            weights[u, slot] = weight
            kept += 1
    rows.limit[u] = UNLIMITED
    rows.kept[u] = kept
    rows.threshold[u] = threshold
    rows.tied_to[u] = tied_to
    rows.best[0] = best
    rows.best[1] = best_weight
    rows.best[2] = highest


@borrowing
def _threshold(histogram: Places, weights: Places, highest: np.int32, length: int) -> tuple[np.int32, int]:
    """The lowest contribution above which at most `length` are drawn, and how many at it there is room for."""
    for k in range(weights.size):
        histogram[weights[k]] += 1
    room = length
    threshold = highest
    while histogram[threshold] <= room:
        room -= histogram[threshold]
        threshold = np.int32(threshold - 1)
    histogram[: highest + 1] = 0
    return threshold, room


@borrowing
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

"""A row streamed through its topics: what each pair contributes now, and which pairs are worth keeping."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from omen.kernels.greedy_components import Components, Members, Places, Whole, borrowing, first_after
from omen.kernels.greedy_rows import UNLIMITED, Rows

_STRIDE = 32


@borrowing
def stream_row(components: Components, rows: Rows, u: Whole, limit: Whole) -> None:
    """Count row u anew and keep its best candidates.

    `rows.best` then holds the lowest best v below the degree limit, its contribution, and the highest of all pairs.
    """
    topic_offsets, dense_row = components.topic_offsets, components.dense_row
    giants, rest_count = components.giant, components.rest_count
    counts, tally = rows.counts, rows.tally[u + 1 :]
    any_dense = False
    reached = np.int64(0)
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        in_giant = mine == giants[t]
        dense = dense_row[t]
        if dense != -1 and not (in_giant and rest_count[t] * components.dense_divisor <= counts.size):
            any_dense = True
            if dense >= 0:
                _compare(tally, components.narrow[dense, u + 1 :], np.int16(mine - topic_offsets[t]))
            else:
                _compare(counts[u + 1 :], components.wide[-2 - dense, u + 1 :], mine)
        elif in_giant:
            outside = components.rest[topic_offsets[t] : topic_offsets[t] + rest_count[t]]
            reached = _scatter_outside(
                counts,
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
                counts, rows.touched, reached, components.members[begin:end], components.label[begin:end], mine
            )
    if any_dense:
        _draw_all(rows, u, limit)
    else:
        _draw_touched(rows, u, limit, reached)


@borrowing
def _scatter(
    counts: Places, touched: Places, reached: np.int64, members: Members, labels: Places, mine: np.int32
) -> np.int64:
    """Count the members of a topic that are apart from me; list those counted for the first time."""
    for k in range(members.size):
        v = members[k]
        apart = np.int32(labels[k] != mine)
        before = counts[v]
        touched[np.uint64(reached)] = v
        reached += np.int64((before == 0) & apart)
        counts[v] = before + apart
    return reached


@borrowing
def _scatter_outside(
    counts: Places,
    touched: Places,
    reached: np.int64,
    outside: Places,
    members: Members,
    labels: Places,
    mine: np.int32,
) -> np.int64:
    """The same among the few places outside the giant component, which is mine."""
    for k in range(outside.size):
        q = np.uint32(outside[k])
        v = members[q]
        apart = np.int32(labels[q] != mine)
        before = counts[v]
        touched[np.uint64(reached)] = v
        reached += np.int64((before == 0) & apart)
        counts[v] = before + apart
    return reached


@borrowing
def _compare(count: npt.NDArray[Any], labels: npt.NDArray[Any], mine: np.int16 | np.int32) -> None:
    for k in range(count.size):
        count[k] += (labels[k] >= np.int16(0)) & (labels[k] != mine)


@borrowing
def _draw_all(rows: Rows, u: Whole, limit: Whole) -> None:
    """Take the best candidates of row u from the counts of all nodes beyond u, and zero them."""
    count = rows.counts[u + 1 :]
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
def _take(rows: Rows, u: Whole, limit: np.int32, threshold: np.int32, room: np.int32, best_weight: np.int32) -> None:
    """Keep what is above the threshold and as many at it as there is room for; find the first of the best weight."""
    candidates, weights = rows.candidates[u], rows.weights[u]
    kept = 0
    best = tied_to = np.int64(-1)
    for begin in range(u + 1, rows.counts.size, _STRIDE):
        count = rows.counts[begin : min(begin + _STRIDE, rows.counts.size)]
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
def _draw_touched(rows: Rows, u: Whole, limit: Whole, reached: np.int64) -> None:
    """Take the best candidates from the nodes touched, and zero their counts.

    A contribution of 1 is never worth keeping: at level 1 the first node apart is searched directly.
    """
    touched, count, degrees, drawn, drawn_weight = (
        rows.touched,
        rows.counts,
        rows.degrees,
        rows.drawn,
        rows.drawn_weight,
    )
    candidates, weights = rows.candidates, rows.weights
    highest = np.int32(0)
    best_weight = np.int32(0)
    best = np.int64(-1)
    size = np.int64(0)
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
        size += np.int64(weight > 1)
    length = candidates.shape[1]
    threshold = np.int32(1)
    tied_to = np.int32(-1)
    if size > length:
        threshold, room = _threshold(rows.histogram, drawn_weight[:size], highest, length)
        if room > 0:
            ties = np.int64(0)
            for k in range(size):
                touched[ties] = drawn[k]
                ties += np.int64(drawn_weight[k] == threshold)
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
def _select(values: Places, count: Whole, rank: Whole) -> np.int32:
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
    return np.int32(values[rank])

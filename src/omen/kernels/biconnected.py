"""GM2 (Chen, Vitenberg, Jacobsen, Alg. 1): greedy links until every topic's subscribers form one block.

Estimates never increase while links are added (nodes that share a block always will), so a pair's last known estimate
bounds it from above and the greedy choice can be lazy without ceasing to be exact. Laziness is by row: one bound for
each node u over its pairs (u, v), v > u, and a short list of the row's best pairs; memory stays O(subscriptions + n K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.block_forest import JOINED, link_in_topic, share_block
from omen.kernels.compiling import compiled

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


class Forests(NamedTuple):
    """The instance, and the block-cut forest of each topic t at [starts[t], starts[t + 1]) of blocks, aboves, rings.

    A topic held by more than n / dense_divisor nodes is dense: slot = node code, so that a row compares as one vector;
    slots without a subscriber have block -1. Elsewhere slot = place among the subscribers. `slots` is parallel to
    node_topics.
    `unsettled[t]` is 2 trees + blocks - 3: falls with every link that matters, and is 0 once all share one block.
    """

    node_offsets: Offsets
    node_topics: Codes
    topic_offsets: Offsets
    topic_nodes: Codes
    slots: Codes
    dense: npt.NDArray[np.bool_]
    starts: Offsets
    blocks: Codes
    aboves: Codes
    rings: Codes
    unsettled: Offsets


class Rows(NamedTuple):
    """What is known of each row u: a bound on all its pairs, and the best of them by ascending v."""

    bound: Codes
    candidates: Codes
    weights: Codes  # their last known estimates
    kept: Codes
    rest: Codes  # bound on the pairs not kept
    tied: npt.NDArray[np.bool_]  # more pairs than fit are at the bound; those not kept have a higher v


class Scratch(NamedTuple):
    """Room for one row's work, allocated once."""

    counts: Codes
    histogram: Codes
    slot_of_topic: Codes  # u's slot in each of its topics, -1 elsewhere
    path_u: Codes
    path_v: Codes
    mark: Codes


@compiled()
def plant_forests(
    node_offsets: Offsets, node_topics: Codes, topic_offsets: Offsets, topic_nodes: Codes, dense_divisor: int
) -> Forests:
    """Every subscriber a tree of its own."""
    n = node_offsets.size - 1
    topics = topic_offsets.size - 1
    dense = np.zeros(topics, np.bool_)
    starts = np.zeros(topics + 1, np.int64)
    unsettled = np.zeros(topics, np.int64)
    for t in range(topics):
        members = topic_offsets[t + 1] - topic_offsets[t]
        dense[t] = members * dense_divisor > n
        starts[t + 1] = starts[t] + (n if dense[t] else members)
        unsettled[t] = max(2 * members - 3, 0)
    blocks = np.full(starts[topics], -1, np.int32)
    slots = np.empty(node_topics.size, np.int32)
    filled = node_offsets[:-1].copy()
    for t in range(topics):  # topics ascend here and in each node's row, so the rows fill in their own order
        for i in range(topic_offsets[t], topic_offsets[t + 1]):
            v = topic_nodes[i]
            slot = v if dense[t] else i - topic_offsets[t]
            blocks[starts[t] + slot] = slot
            slots[filled[v]] = slot
            filled[v] += 1
    aboves = np.full(blocks.size, -1, np.int32)
    rings = blocks.copy()
    return Forests(
        node_offsets,
        node_topics,
        topic_offsets,
        topic_nodes,
        slots,
        dense,
        starts,
        blocks,
        aboves,
        rings,
        unsettled,
    )


@compiled()
def open_rows(forests: Forests, cache_length: int) -> Rows:
    n = forests.node_offsets.size - 1
    bound = np.zeros(n, np.int32)
    for u in range(n):
        for i in range(forests.node_offsets[u], forests.node_offsets[u + 1]):
            if forests.unsettled[forests.node_topics[i]] > 0:
                bound[u] += 1
    return Rows(
        bound,
        np.empty((n, cache_length), np.int32),
        np.empty((n, cache_length), np.int32),
        np.zeros(n, np.int32),
        bound.copy(),
        np.zeros(n, np.bool_),
    )


@compiled()
def count_row(u: int, counts: Codes, forests: Forests) -> None:
    """counts[v] = estimate(u, v) for every v > u."""
    one = np.int32(1)
    zero = np.int32(0)
    counts[u + 1 :] = 0
    for i in range(forests.node_offsets[u], forests.node_offsets[u + 1]):
        t = forests.node_topics[i]
        if forests.unsettled[t] == 0:
            continue
        slot = forests.slots[i]
        at = forests.starts[t] + slot
        own = forests.blocks[at]
        top = forests.aboves[at]
        block = forests.blocks[at + 1 : forests.starts[t + 1]]
        above = forests.aboves[at + 1 : forests.starts[t + 1]]
        # The vertex above u shares a block with it: counted with the others, then taken back.
        if forests.dense[t]:
            row = counts[u + 1 :]
            for j in range(row.size):
                row[j] += one if (block[j] != own) & (above[j] != slot) & (block[j] >= 0) else zero
            if top > slot:
                counts[top] -= 1
        else:
            first = forests.topic_offsets[t]
            members = forests.topic_nodes[first + slot + 1 : forests.topic_offsets[t + 1]]
            for j in range(members.size):
                counts[members[j]] += one if (block[j] != own) & (above[j] != slot) else zero
            if top > slot:
                counts[forests.topic_nodes[first + top]] -= 1


@compiled()
def evaluate_row(u: int, forests: Forests, rows: Rows, scratch: Scratch) -> None:
    """Count row u afresh and keep its best pairs: all above a floor, or, of too many equal bests, the lowest v."""
    counts = scratch.counts
    histogram = scratch.histogram
    candidates = rows.candidates[u]
    weights = rows.weights[u]
    count_row(u, counts, forests)
    n = counts.size
    floor = 0
    best = 0
    above_floor = 0
    for v in range(u + 1, n):
        count = counts[v]
        if count > floor:
            histogram[count] += 1
            above_floor += 1
            best = max(best, count)
            while above_floor > candidates.size:
                floor += 1
                above_floor -= histogram[floor]
    histogram[: best + 1] = 0
    tied = best > 0 and floor == best
    least = best if tied else floor + 1
    kept = 0
    if best > 0:
        for v in range(u + 1, n):
            if counts[v] >= least:
                candidates[kept] = v
                weights[kept] = counts[v]
                kept += 1
                if kept == candidates.size:
                    break
    rows.bound[u] = best
    rows.kept[u] = kept
    rows.rest[u] = floor
    rows.tied[u] = tied


@compiled()
def estimate(v: int, slot_of_topic: Codes, forests: Forests) -> int:
    """In how many shared topics no block holds both u and v. `slot_of_topic` is u's."""
    total = 0
    for i in range(forests.node_offsets[v], forests.node_offsets[v + 1]):
        t = forests.node_topics[i]
        slot = slot_of_topic[t]
        if slot >= 0 and forests.unsettled[t] > 0:
            block = forests.blocks[forests.starts[t] : forests.starts[t + 1]]
            above = forests.aboves[forests.starts[t] : forests.starts[t + 1]]
            if not share_block(block, above, slot, forests.slots[i]):
                total += 1
    return total


@compiled()
def search_kept(u: int, level: int, forests: Forests, rows: Rows, slot_of_topic: Codes) -> int:
    """The lowest kept v with estimate(u, v) == level, or -1; kept estimates met on the way are brought up to date."""
    candidates = rows.candidates[u]
    weights = rows.weights[u]
    for i in range(rows.kept[u]):
        if weights[i] == level:
            weights[i] = estimate(candidates[i], slot_of_topic, forests)
            if weights[i] == level:
                return int(candidates[i])
    return -1


@compiled()
def search_row(u: int, level: int, forests: Forests, rows: Rows, scratch: Scratch) -> int:
    """The lowest v > u with estimate(u, v) == level, the bound of u's row; or -1, and the bound is lowered."""
    if rows.rest[u] < level or rows.tied[u]:
        v = search_kept(u, level, forests, rows, scratch.slot_of_topic)
        if v >= 0:
            return v
        if rows.rest[u] < level:
            bound = rows.rest[u]
            for i in range(rows.kept[u]):
                bound = max(bound, rows.weights[u, i])
            rows.bound[u] = bound
            return -1
    evaluate_row(u, forests, rows, scratch)
    if rows.bound[u] < level:
        return -1
    for i in range(rows.kept[u]):
        if rows.weights[u, i] == level:
            return int(rows.candidates[u, i])
    return -1


@compiled()
def add_link(v: int, forests: Forests, scratch: Scratch, stamp: int) -> int:
    """Add the link to v, from the node that slot_of_topic belongs to, in every shared topic. Returns the next stamp."""
    for i in range(forests.node_offsets[v], forests.node_offsets[v + 1]):
        t = forests.node_topics[i]
        slot = scratch.slot_of_topic[t]
        if slot >= 0 and forests.unsettled[t] > 0:
            first = forests.starts[t]
            last = forests.starts[t + 1]
            merged = link_in_topic(
                forests.blocks[first:last],
                forests.aboves[first:last],
                forests.rings[first:last],
                slot,
                forests.slots[i],
                scratch.path_u,
                scratch.path_v,
                scratch.mark,
                stamp,
            )
            stamp += 1
            forests.unsettled[t] -= 1 if merged == JOINED else merged - 1
    return stamp


@compiled()
def load_slots(u: int, slot_of_topic: Codes, forests: Forests) -> None:
    for i in range(forests.node_offsets[u], forests.node_offsets[u + 1]):
        slot_of_topic[forests.node_topics[i]] = forests.slots[i]


@compiled()
def unload_slots(u: int, slot_of_topic: Codes, forests: Forests) -> None:
    for i in range(forests.node_offsets[u], forests.node_offsets[u + 1]):
        slot_of_topic[forests.node_topics[i]] = -1


@compiled()
def highest(bounds: Codes) -> int:
    best = np.int32(0)
    for bound in bounds:
        best = max(best, bound)
    return int(best)


@compiled()
def doubled(ends: Codes) -> Codes:
    larger = np.empty(2 * ends.size, np.int32)
    for i in range(ends.size):
        larger[i] = ends[i]
    return larger


@compiled("int32[:, ::1](int64[::1], int32[::1], int64[::1], int32[::1], int64, int64)")
def gm2_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    cache_length: int,
    dense_divisor: int,
) -> Codes:
    """The links GM2 chooses, in order, as rows (u, v), u < v; of equal estimates the lowest pair.

    cache_length: pairs kept for each row, at least 1. dense_divisor: see Forests; 0 makes every topic sparse.
    """
    n = node_offsets.size - 1
    topics = topic_offsets.size - 1
    forests = plant_forests(node_offsets, node_topics, topic_offsets, topic_nodes, dense_divisor)
    rows = open_rows(forests, cache_length)
    scratch = Scratch(
        np.zeros(n, np.int32),
        np.zeros(topics + 1, np.int32),
        np.full(topics, -1, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.zeros(n, np.int32),
    )
    ends = np.empty(2 * n + 2, np.int32)
    found = 0
    stamp: int = np.int64(1)  # type: ignore[assignment]  # typed for numba, so that one add_link serves
    level = highest(rows.bound)
    while level > 0:
        # Rows passed over on this level cannot come back to it, so one ascending walk meets the lowest pair each time.
        for u in range(n):
            if rows.bound[u] != level:
                continue
            load_slots(u, scratch.slot_of_topic, forests)
            v = search_row(u, level, forests, rows, scratch)
            while v >= 0:
                if found == ends.size:
                    ends = doubled(ends)
                ends[found] = u
                ends[found + 1] = v
                found += 2
                stamp = add_link(v, forests, scratch, stamp)
                v = search_row(u, level, forests, rows, scratch)
            unload_slots(u, scratch.slot_of_topic, forests)
        level = highest(rows.bound)
    return ends[:found].copy().reshape(-1, 2)

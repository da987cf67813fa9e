"""Into which pieces a topic fell: found from the overlay as it is, without any standing structure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.population import Bits, Codes, Int64s, mask_of, wants, word_of
from omen.kernels.rows import Pool, Spans, holds_sorted

EXACT, HALO, LITERAL, HALO_NEAR = 0, 1, 2, 3


@compiled()
def root_of(parent: Codes, item: int) -> int:
    """The representative of an item; paths are halved on the way."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@compiled()
def search_pieces(
    topic: int,
    seeds: Codes,
    topic_spans: Spans,
    topic_pool: Pool,
    link_spans: Spans,
    link_pool: Pool,
    bits: Bits,
    clock: Int64s,
    marks: Int64s,
    queue: Codes,
    parent: Codes,
    ends: Codes,
) -> tuple[int, int]:
    """Breadth-first searches in G_t from all seeds in turn, until one unfinished group remains: the rest belongs to it.

    Seeds are distinct subscribers of the topic, one at least in each piece of G_t. Returns (pieces, group of the nodes
    not reached). A reached node w has marks[w] = clock[0] + its seed; root_of(parent, seed) is its group. The
    caller advances the clock by the number of seeds when it has read the marks. `ends` is scratch, three places for
    each seed. Cost: what the smaller pieces hold and as much again of the largest, or, where the topic did not split,
    the balls around the seeds up to where they meet.
    """
    base, count = clock[0], seeds.size
    heads, tails, pending = ends[:count], ends[count : 2 * count], ends[2 * count : 3 * count]
    for seed in range(count):
        parent[seed] = seed
        heads[seed] = tails[seed] = seeds[seed]
        pending[seed] = 1
        queue[seeds[seed]] = -1
        marks[seeds[seed]] = base + seed
    searched = bits.shape[1] == 0
    word, mask = word_of(topic), mask_of(topic)
    pieces = live = count
    while live > 1:
        for seed in range(count):
            node = heads[seed]
            if node < 0:
                continue
            group = root_of(parent, seed)
            start, length = link_spans[node, 0], link_spans[node, 1]
            for place in range(start, start + length):
                other = link_pool[place]
                if searched:
                    if not holds_sorted(topic_spans, topic_pool, other, topic):
                        continue
                elif bits[other, word] & mask == 0:
                    continue
                if marks[other] < base:
                    marks[other] = base + seed
                    queue[other] = -1
                    queue[tails[seed]] = other
                    tails[seed] = other
                    pending[group] += 1
                    continue
                met = root_of(parent, marks[other] - base)
                if met != group:
                    parent[met] = group
                    pending[group] += pending[met]
                    pieces -= 1
                    live -= 1
            heads[seed] = queue[node]
            pending[group] -= 1
            if pending[group] == 0:
                live -= 1
            if live <= 1:
                break
    rest = 0
    for seed in range(count):
        if parent[seed] == seed and pending[seed] > 0:
            rest = seed
    return pieces, rest


@compiled()
def join_seen(
    topic: int,
    inside: Codes,
    with_neighbours: bool,
    topic_spans: Spans,
    topic_pool: Pool,
    link_spans: Spans,
    link_pool: Pool,
    bits: Bits,
    clock: Int64s,
    marks: Int64s,
    parent: Codes,
) -> int:
    """Pieces of a topic as seen from a set of its subscribers alone: by links among them, and, `with_neighbours`, by
    links to common neighbours outside. Returns their number; root_of(parent, i) is the piece of inside[i].
    """
    base = clock[0]
    clock[0] += inside.size
    pieces = inside.size
    for item in range(inside.size):
        parent[item] = item
        marks[inside[item]] = base + item
    for item in range(inside.size):
        start, length = link_spans[inside[item], 0], link_spans[inside[item], 1]
        for place in range(start, start + length):
            other = link_pool[place]
            if marks[other] < base:
                if with_neighbours and wants(bits, topic_spans, topic_pool, other, topic):
                    marks[other] = base + item
                continue
            mine, theirs = root_of(parent, item), root_of(parent, marks[other] - base)
            if mine != theirs:
                parent[theirs] = mine
                pieces -= 1
    return pieces


@compiled("void(int32[::1], int64[::1])")
def sort_by_order(slots: Codes, order: npt.NDArray[np.int64]) -> None:
    """Put slots into label order, in place. Shell's sort: small to compile, and the sets are small."""
    gap = 1
    while 9 * gap < 4 * slots.size:
        gap = 9 * gap // 4 + 1
    while gap > 0:
        for i in range(gap, slots.size):
            moving = slots[i]
            key = order[moving]
            j = i - gap
            while j >= 0 and order[slots[j]] > key:
                slots[j + gap] = slots[j]
                j -= gap
            slots[j + gap] = moving
        gap = max(1, 4 * gap // 9) if gap > 1 else 0

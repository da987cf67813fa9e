"""Into which pieces a topic fell: labels for the nodes concerned, from the overlay as it is, without any standing structure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.population import Bits, Codes, Int64s, wants
from omen.kernels.rows import Pool, Spans

EXACT, HALO, LITERAL = 0, 1, 2


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
) -> tuple[int, int]:
    """Breadth-first searches in G_t from all seeds in turn, until one unfinished group remains: the rest belongs to it.

    Seeds are distinct subscribers of the topic, one at least in each piece of G_t. Returns (pieces, group of whoever was
    not reached). A reached node w has marks[w] = clock[0] + its seed; root_of(parent, seed) is its group. The caller
    advances the clock by the number of seeds when it has read the marks. Cost: what the smaller pieces hold and as much
    again of the largest, or, where the topic did not split, the balls around the seeds up to where they meet.
    """
    base = clock[0]
    heads = np.empty(seeds.size, np.int32)
    tails = np.empty(seeds.size, np.int32)
    pending = np.ones(seeds.size, np.int32)
    for seed in range(seeds.size):
        parent[seed] = seed
        heads[seed] = tails[seed] = seeds[seed]
        queue[seeds[seed]] = -1
        marks[seeds[seed]] = base + seed
    pieces = live = seeds.size
    while live > 1:
        for seed in range(seeds.size):
            node = heads[seed]
            if node < 0:
                continue
            group = root_of(parent, seed)
            start, length = link_spans[node, 0], link_spans[node, 1]
            for place in range(start, start + length):
                other = link_pool[place]
                if not wants(bits, topic_spans, topic_pool, other, topic):
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
    for seed in range(seeds.size):
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
    """Pieces of a topic as seen from a set of its subscribers alone: by links among them, and, `with_neighbours`, by links
    to common neighbours outside. Returns their number; root_of(parent, i) is the piece of inside[i].
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


@compiled()
def sort_by_order(slots: Codes, order: npt.NDArray[np.int64]) -> None:
    """Put slots into label order, in place."""
    if slots.size > 48:
        keys = np.empty(slots.size, np.int64)
        for i in range(slots.size):
            keys[i] = order[slots[i]]
        slots[:] = slots[np.argsort(keys)]
        return
    for i in range(1, slots.size):
        moving = slots[i]
        key = order[moving]
        j = i - 1
        while j >= 0 and order[slots[j]] > key:
            slots[j + 1] = slots[j]
            j -= 1
        slots[j + 1] = moving

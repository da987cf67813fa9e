"""Drawing each node's topics: successive sampling without replacement, keyed by (seed, node).

A node draws topics one after another with probability p(t), taking no topic twice, until its size is reached. To draw
and drop repeats is fastest while little of the probability has been taken. After `failures_allowed` drops for each
topic wanted the rest is drawn from what remains: by descent in a tree of weight sums, and, where the remaining weights
are too small for floating point, by the smallest of exponential keys E / p(t), compared as logarithms (Efraimidis and
Spirakis 2006). When to change over depends on the draws made so far alone, so the distribution is that of successive
sampling throughout, and a node costs O(size (failures_allowed + log topics)), O(topics log size) where keys are used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.counter_random import draw, stream_key, to_unit

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SIZE_COUNTER = 0  # a node's draw 0 gives its size; draws 1, 2, .. its topics
_KEY_COUNTERS = 1 << 40  # exponential keys count from here, one for each topic
_SMALLEST_SUM = 1e-250  # below this the weights left out of the tree (under 1e-290) could be missed
_HALF_STEP = 2.0**-54


@compiled("int64[::1](int64, int64, uint64, int64, float64[::1])")
def draw_sizes(first: int, last: int, seed: np.uint64, smallest: int, size_cdf: Floats) -> Integers:
    """How many topics each of the nodes first..last-1 wants: `smallest` + i with probability cdf[i] - cdf[i - 1]."""
    sizes = np.empty(last - first, dtype=np.int64)
    for node in range(first, last):
        unit = to_unit(draw(stream_key(np.uint64(seed), np.uint64(node)), np.uint64(_SIZE_COUNTER)))
        place = int(np.searchsorted(size_cdf, unit, side="right"))
        sizes[node - first] = smallest + min(place, size_cdf.size - 1)
    return sizes


@compiled("int64[::1](float64[::1])")
def build_guide(cdf: Floats) -> Integers:
    """Where the search in `cdf` may start, for each of as many equal slices of [0, 1) as there are topics."""
    guide = np.empty(cdf.size, dtype=np.int64)
    topic = 0
    for part in range(cdf.size):
        while topic < cdf.size - 1 and cdf[topic] <= part / cdf.size:
            topic += 1
        guide[part] = topic
    return guide


@compiled("float64[::1](float64[::1])")
def build_tree(weights: Floats) -> Floats:
    """Sums over a complete binary tree: the root at 1, the children of i at 2i and 2i + 1, weights in the leaves."""
    leaves = 1
    while leaves < weights.size:
        leaves *= 2
    tree = np.zeros(2 * leaves, dtype=np.float64)
    for topic in range(weights.size):
        tree[leaves + topic] = weights[topic]
    for i in range(leaves - 1, 0, -1):
        tree[i] = tree[2 * i] + tree[2 * i + 1]
    return tree


@compiled("void(float64[::1], int64, float64)")
def set_leaf(tree: Floats, topic: int, weight: float) -> None:
    """Sums are added up anew, never subtracted from: a tree set back holds the very same numbers as before."""
    i = tree.size // 2 + topic
    tree[i] = weight
    i //= 2
    while i >= 1:
        tree[i] = tree[2 * i] + tree[2 * i + 1]
        i //= 2


@compiled("int64(float64[::1], float64)")
def find_leaf(tree: Floats, unit: float) -> int:
    """The topic at `unit` of the way through the weights in the tree; never one of weight 0."""
    leaves = tree.size // 2
    rest = unit * tree[1]
    i = 1
    while i < leaves:
        i *= 2
        if rest >= tree[i] and tree[i + 1] > 0.0:
            rest -= tree[i]
            i += 1
    return i - leaves


@compiled("void(float64[::1], int64[::1], int64, float64, int64)")
def sink(keys: Floats, ids: Integers, i: int, key: float, identity: int) -> None:
    """Put (key, identity) at place i of a heap with the largest key on top, or as far below i as it belongs."""
    child = 2 * i + 1
    while child < keys.size:
        if child + 1 < keys.size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[i] = keys[child]
        ids[i] = ids[child]
        i = child
        child = 2 * i + 1
    keys[i] = key
    ids[i] = identity


@compiled("void(int64[::1], uint64, int64, int64[::1], float64[::1])")
def fill_by_keys(row: Integers, key: np.uint64, node: int, taken_by: Integers, log_weights: Floats) -> None:
    """Fill `row` with the topics not taken by `node` whose exponential keys are smallest."""
    keys = np.full(row.size, np.inf, dtype=np.float64)
    for topic in range(taken_by.size):
        if taken_by[topic] != node:
            unit = to_unit(draw(key, np.uint64(_KEY_COUNTERS + topic))) + _HALF_STEP
            exponential = np.log(-np.log(unit)) - log_weights[topic]
            if exponential < keys[0]:
                sink(keys, row, 0, exponential, topic)


@compiled("int64[::1](int64, uint64, int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], int64)")
def draw_topics(
    first: int,
    seed: np.uint64,
    offsets: Integers,
    cdf: Floats,
    guide: Integers,
    weights: Floats,
    log_weights: Floats,
    failures_allowed: int,
) -> Integers:
    """The topics of nodes first, first + 1, ..: node first + i at [offsets[i], offsets[i + 1]), ascending."""
    topics = np.empty(offsets[-1], dtype=np.int64)
    taken_by = np.full(cdf.size, -1, dtype=np.int64)
    tree = build_tree(weights)
    for i in range(offsets.size - 1):
        node = first + i
        key = stream_key(np.uint64(seed), np.uint64(node))
        row = topics[offsets[i] : offsets[i + 1]]
        counter = _SIZE_COUNTER
        filled = 0
        failures = failures_allowed * row.size
        while filled < row.size and failures >= 0:
            counter += 1
            unit = to_unit(draw(key, np.uint64(counter)))
            topic = guide[np.int64(unit * cdf.size)]
            while cdf[topic] <= unit and topic < cdf.size - 1:
                topic += 1
            if taken_by[topic] == node:
                failures -= 1
            else:
                taken_by[topic] = node
                row[filled] = topic
                filled += 1
        if filled < row.size:
            for j in range(filled):
                set_leaf(tree, row[j], 0.0)
            while filled < row.size and tree[1] > _SMALLEST_SUM:
                counter += 1
                topic = find_leaf(tree, to_unit(draw(key, np.uint64(counter))))
                set_leaf(tree, topic, 0.0)
                taken_by[topic] = node
                row[filled] = topic
                filled += 1
            for j in range(filled):
                set_leaf(tree, row[j], weights[row[j]])
            if filled < row.size:
                fill_by_keys(row[filled:], key, node, taken_by, log_weights)
        row.sort()
    return topics

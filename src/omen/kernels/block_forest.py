"""Rooted block-cut forest of one topic's subgraph G_t: which subscribers share a block, and what a new link changes.

A subscriber is known by its slot in the topic. Each tree of the forest is rooted at a vertex, so every other vertex is
child of exactly one block and every block hangs under exactly one vertex:

- `block[a]`  label of the block that a is child of: the slot of one of that block's children; a root has its own slot;
- `above[a]`  the vertex that block hangs under; a root holds minus the size of its tree;
- `ring[a]`   the next child of the same block, round and round.

Two vertices share a block iff they are children of one block or one is the vertex above the other: O(1), no search.
Labels are rewritten eagerly when blocks merge, because rows of them are read far more often than links are added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Slots = npt.NDArray[np.int32]

JOINED = 0


@compiled()
def share_block(block: Slots, above: Slots, a: int, b: int) -> bool:
    return bool(block[a] == block[b] or above[a] == b or above[b] == a)


@compiled()
def hang(block: Slots, above: Slots, ring: Slots, path: Slots, length: int, under: int) -> None:
    """Re-root a tree at path[0] (path leads from there to its root) and hang it by a new bridge under `under`."""
    for i in range(length - 1, 0, -1):
        upper = path[i]
        lower = path[i - 1]
        # The block between the two hung under `upper`; now `upper` is its child, in the place of `lower`.
        block[upper] = upper
        above[upper] = lower
        last = lower
        child = ring[lower]
        while child != lower:
            block[child] = upper
            above[child] = lower
            last = child
            child = ring[child]
        if last == lower:
            ring[upper] = upper
        else:
            ring[upper] = ring[lower]
            ring[last] = upper
        ring[lower] = lower
    block[path[0]] = path[0]
    above[path[0]] = under


@compiled()
def absorb(block: Slots, above: Slots, ring: Slots, member: int, into: int, top: int) -> None:
    """Make the children of member's block children of into's block, which hangs under `top`."""
    label = block[into]
    child = member
    while True:
        block[child] = label
        above[child] = top
        child = ring[child]
        if child == member:
            break
    ring[member], ring[into] = ring[into], ring[member]


@compiled()
def link_in_topic(
    block: Slots, above: Slots, ring: Slots, a: int, b: int, path_a: Slots, path_b: Slots, mark: Slots, stamp: int
) -> int:
    """Add the link (a, b). Returns how many blocks became one, or JOINED if it is a bridge between two trees.

    `mark` must hold `stamp` nowhere. The cost is the two paths to the root and the blocks that change.
    """
    length_a = 0
    at = a
    while at >= 0:
        path_a[length_a] = at
        mark[at] = stamp
        length_a += 1
        at = above[at]
    length_b = 0
    at = b
    while at >= 0 and mark[at] != stamp:
        path_b[length_b] = at
        length_b += 1
        at = above[at]
    if at < 0:
        root_a = path_a[length_a - 1]
        root_b = path_b[length_b - 1]
        total = above[root_a] + above[root_b]
        if above[root_a] > above[root_b]:  # sizes are negative: the tree of a is the smaller
            hang(block, above, ring, path_a, length_a, b)
            above[root_b] = total
        else:
            hang(block, above, ring, path_b, length_b, a)
            above[root_a] = total
        return JOINED
    # The cycle that the link closes runs up both paths to the vertex where they meet: its blocks become one, under that
    # vertex.
    top = at
    length_a = 0
    while path_a[length_a] != top:
        length_a += 1
    merged = length_a + length_b
    into = path_a[length_a - 1] if length_a > 0 else path_b[length_b - 1]
    if length_a > 0 and length_b > 0:
        if block[path_b[length_b - 1]] == block[into]:
            merged -= 1
        else:
            absorb(block, above, ring, path_b[length_b - 1], into, top)
    for i in range(length_a - 1):
        absorb(block, above, ring, path_a[i], into, top)
    for i in range(length_b - 1):
        absorb(block, above, ring, path_b[i], into, top)
    return merged

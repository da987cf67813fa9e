"""SpiderCast's rules for the next neighbour (Fig. 5), over a membership table that all nodes share.

Row t of the table holds the subscribers of topic t, in any order. A node's view is the whole table, or the share of it
that its key draws: no view is ever stored, so a full view of ten thousand nodes costs ten thousand nodes nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.counter_random import draw
from omen.kernels.rows import POOL, SPANS, TAIL, Pool, Spans, Tail, append, make_room, remove

Codes = npt.NDArray[np.int32]

ALL_NODES = np.uint64(0xFFFFFFFFFFFFFFFF)
_BARRED = -(1 << 30)
_CHOOSER = f"int64({SPANS}, {POOL}, {POOL}, {POOL}, {POOL}, {POOL}, uint64, uint64, uint64)"


@compiled(f"int64({SPANS}, {POOL}, {TAIL}, {POOL}, int64, int64)")
def enroll(spans: Spans, pool: Pool, tail: Tail, topics: Codes, node: int, first: int) -> int:
    """Put the node into the rows of its topics, from the `first` of them on; how far the pool had room."""
    for place in range(first, topics.size):
        if not make_room(spans, pool, tail, topics[place], 1):
            return place
        append(spans, pool, topics[place], node)
    return topics.size


@compiled(f"void({SPANS}, {POOL}, {POOL}, int64)")
def strike(spans: Spans, pool: Pool, topics: Codes, node: int) -> None:
    """Take the node out of the rows of its topics."""
    for topic in topics:
        remove(spans, pool, topic, node)


@compiled()
def count_covered(
    spans: Spans, pool: Pool, uncovered: Codes, excluded: Codes, counts: Codes, met: Codes, key: int, share: int
) -> int:
    """counts[n] = |n.interest & uncovered| for the n of the view that are not excluded; they stand in `met`."""
    for node in excluded:
        counts[node] = _BARRED
    reached = 0
    for topic in uncovered:
        start = spans[topic, 0]
        for place in range(start, start + spans[topic, 1]):
            node = pool[place]
            covered = counts[node]
            if covered > 0:
                counts[node] = covered + 1
            elif covered == 0:
                if share == ALL_NODES or draw(np.uint64(key), np.uint64(node)) < share:
                    counts[node] = 1
                    met[reached] = node
                    reached += 1
                else:
                    counts[node] = -1
    return reached


@compiled()
def forget_counts(spans: Spans, pool: Pool, uncovered: Codes, excluded: Codes, counts: Codes, met: Codes) -> None:
    """Leave `counts` at zero for the next one."""
    for node in excluded:
        counts[node] = 0
    for node in met:
        counts[node] = 0
    for topic in uncovered:
        start = spans[topic, 0]
        for place in range(start, start + spans[topic, 1]):
            counts[pool[place]] = 0


@compiled(_CHOOSER)
def next_greedy(
    spans: Spans,
    pool: Pool,
    uncovered: Codes,
    excluded: Codes,
    counts: Codes,
    met: Codes,
    key: int,
    share: int,
    word: int,
) -> int:
    """The node that covers most of what is uncovered, `word` choosing among equals; -1 where none covers any of it.

    Costs the subscribers of the uncovered topics. `counts` is zero before and after; `met` is scratch.
    """
    reached = count_covered(spans, pool, uncovered, excluded, counts, met, key, share)
    best, ties = 0, 0
    for index in range(reached):
        node = met[index]
        covered = counts[node]
        if covered > best:
            best = covered
            ties = 0
        counts[node] = 0
        if covered == best:
            met[ties] = node
            ties += 1
    forget_counts(spans, pool, uncovered[:0] if share == ALL_NODES else uncovered, excluded, counts, met[:0])
    return met[np.int64(word % np.uint64(ties))] if ties else -1


@compiled(_CHOOSER)
def next_random(
    spans: Spans,
    pool: Pool,
    uncovered: Codes,
    excluded: Codes,
    counts: Codes,
    met: Codes,
    key: int,
    share: int,
    word: int,
) -> int:
    """Any node that covers some of what is uncovered, `word` choosing; -1 where none does. Else as `next_greedy`."""
    reached = count_covered(spans, pool, uncovered, excluded, counts, met, key, share)
    forget_counts(spans, pool, uncovered[:0] if share == ALL_NODES else uncovered, excluded, counts, met[:reached])
    return met[np.int64(word % np.uint64(reached))] if reached else -1

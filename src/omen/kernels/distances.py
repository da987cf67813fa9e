"""Exact diameters of topic-induced subgraphs.

Breadth-first searches run 64 at a time, one bit of a word each, so that searches that stand at the same vertex share a
step. On topics of many subscribers a few single searches come first and bound the eccentricity of every vertex from
above (Takes and Kosters, "Determining the diameter of small world networks"): a vertex that cannot beat the longest
distance seen so far need not be searched from. Where hubs shorten everything that leaves nothing to do; where it does
not help, all vertices are searched from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.topic_graphs import Int32s, Int64s

UInt64s = npt.NDArray[np.uint64]


@compiled()
def search_from(
    rows: Int64s, neighbours: Int32s, n: int, source: int, distances: Int32s, queue: Int32s
) -> tuple[int, int]:
    """(eccentricity, vertices reached) of a vertex; `distances` are filled, -1 where not reached."""
    for x in range(n):
        distances[x] = -1
    distances[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        x = queue[head]
        head += 1
        for place in range(rows[x], rows[x + 1]):
            y = neighbours[place]
            if distances[y] < 0:
                distances[y] = distances[x] + 1
                queue[tail] = y
                tail += 1
    return distances[queue[tail - 1]], tail


@compiled()
def search_together(rows: Int64s, neighbours: Int32s, n: int, sources: Int32s, words: UInt64s, queues: Int32s) -> int:
    """The largest eccentricity of at most 64 sources of a connected graph.

    `words` has three rows: searches that have met a vertex, that stand at it, that come to it. The first and the last
    are all zero on entry and return.
    """
    met, here, coming = words[0], words[1], words[2]
    active, upcoming = queues[0], queues[1]
    count = 0
    for index in range(sources.size):
        x = sources[index]
        met[x] = np.uint64(1) << np.uint64(index)
        here[x] = met[x]
        active[count] = x
        count += 1
    rounds = -1
    while count > 0:
        rounds += 1
        fresh = 0
        for index in range(count):
            x = active[index]
            standing = here[x]
            for place in range(rows[x], rows[x + 1]):
                y = neighbours[place]
                new = standing & ~met[y]
                if new != 0:
                    if coming[y] == 0:
                        upcoming[fresh] = y
                        fresh += 1
                    coming[y] |= new
        for index in range(fresh):
            y = upcoming[index]
            met[y] |= coming[y]
            here[y] = coming[y]
            coming[y] = 0
        active, upcoming = upcoming, active
        count = fresh
    for x in range(n):
        met[x] = 0
    return rounds


@compiled()
def bound_eccentricities(
    rows: Int64s, neighbours: Int32s, n: int, best: int, searches: int, upper: Int32s, distances: Int32s, queue: Int32s
) -> int:
    """The longest distance seen in single searches, from the centre and the rim by turns; `upper` bounds the rest."""
    lower = np.zeros(n, np.int32)
    for turn in range(searches):
        chosen = -1
        for x in range(n):
            if upper[x] <= best:
                continue
            if chosen < 0:
                chosen = x
                continue
            gain = lower[chosen] - lower[x] if turn & 1 == 0 else upper[x] - upper[chosen]
            if gain > 0 or (gain == 0 and rows[x + 1] - rows[x] > rows[chosen + 1] - rows[chosen]):
                chosen = x
        if chosen < 0:
            break
        eccentricity, _ = search_from(rows, neighbours, n, chosen, distances, queue)
        best = max(best, eccentricity)
        for x in range(n):
            lower[x] = max(lower[x], max(distances[x], eccentricity - distances[x]))
            upper[x] = min(upper[x], eccentricity + distances[x])
        upper[chosen] = eccentricity
    return best


@compiled("int32[::1](int64[::1], int64, int64, int64[::1], int32[::1], int64, int64)")
def measure_diameters(
    topic_offsets: Int64s,
    first_topic: int,
    last_topic: int,
    row_offsets: Int64s,
    neighbours: Int32s,
    bounded_from: int,
    bounding_searches: int,
) -> Int32s:
    """Diameter of the subgraph of each topic in [first_topic, last_topic): -1 not connected, 0 up to one subscriber.

    Topics of `bounded_from` or more subscribers get up to `bounding_searches` bounding searches first.
    """
    largest = 0
    for topic in range(first_topic, last_topic):
        largest = max(largest, topic_offsets[topic + 1] - topic_offsets[topic])
    distances, upper = np.empty(largest, np.int32), np.empty(largest, np.int32)
    queues = np.empty((2, largest), np.int32)
    words = np.zeros((3, largest), np.uint64)
    sources = np.empty(64, np.int32)
    diameters = np.zeros(last_topic - first_topic, np.int32)
    for topic in range(first_topic, last_topic):
        base = topic_offsets[topic] - topic_offsets[first_topic]
        n = topic_offsets[topic + 1] - topic_offsets[topic]
        if n < 2:
            continue
        rows = row_offsets[base : base + n + 1]
        best, reached = search_from(rows, neighbours, n, 0, distances, queues[0])
        if reached < n:
            diameters[topic - first_topic] = -1
            continue
        for x in range(n):
            upper[x] = best + distances[x]
        if n >= bounded_from:
            best = bound_eccentricities(rows, neighbours, n, best, bounding_searches, upper, distances, queues[0])
        count = 0
        for x in range(n):
            if upper[x] > best:
                sources[count] = x
                count += 1
            if count == 64 or (x == n - 1 and count > 0):
                best = max(best, search_together(rows, neighbours, n, sources[:count], words, queues))
                count = 0
        diameters[topic - first_topic] = best
    return diameters

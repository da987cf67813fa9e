"""Vertex connectivity of topic-induced subgraphs, exact up to a bound.

Up to two by one depth-first search (Hopcroft and Tarjan's cut vertices), linear. Beyond, by Even's algorithm: disjoint
paths between the pairs among the first k vertices, then from each later vertex to the set of all vertices before it.
A set S of fewer than k vertices that separates the graph would separate either two of the first k, or the first vertex
that S cuts off from all those before it. Both are *fans*: paths from one vertex to a set that share only their start.
They are sought one augmenting path at a time and no more than the bound, which falls whenever fewer are found; the
value is then exact, since every smaller fan comes from a separating set of its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omen.kernels.compiling import compiled
from omen.kernels.topic_graphs import Int32s, Int64s

FREE, FREED = -1, -2


@compiled()
def search_cut_vertices(rows: Int64s, neighbours: Int32s, n: int) -> int:
    """0: not connected; 1: connected, with a cut vertex; 2: connected, without one. `n` at least 1."""
    entered = np.full(n, -1, np.int32)
    low = np.zeros(n, np.int32)
    cursors = rows[:n].copy()
    stack = np.empty(n, np.int32)
    stack[0] = 0
    entered[0] = 0
    top, time, root_children = 0, 1, 0
    cut = False
    while top >= 0:
        x = stack[top]
        if cursors[x] < rows[x + 1]:
            y = neighbours[cursors[x]]
            cursors[x] += 1
            if entered[y] < 0:
                root_children += x == 0
                entered[y] = time
                low[y] = time
                time += 1
                top += 1
                stack[top] = y
            elif top == 0 or y != stack[top - 1]:
                low[x] = min(low[x], entered[y])
        else:
            top -= 1
            if top >= 0:
                p = stack[top]
                low[p] = min(low[p], low[x])
                cut |= p != 0 and low[x] >= entered[p]
    if time < n:
        return 0
    return 1 if cut or root_children > 1 else 2


@compiled()
def order_vertices(rows: Int64s, neighbours: Int32s, n: int, head: int) -> Int32s:
    """Vertex 0, `head` - 1 of its neighbours, then all others shuffled. Any order is right, this one is fast.

    Neighbours need no paths between them. Shuffled, the vertices before one are soon spread over the whole graph, and
    paths to them are short, also where the graph is a long ring.
    """
    order = np.zeros(n, np.int32)
    placed = np.zeros(n, np.bool_)
    placed[0] = True
    for place in range(1, head):
        order[place] = neighbours[rows[0] + place - 1]
        placed[order[place]] = True
    place = head
    for vertex in range(n):
        if not placed[vertex]:
            order[place] = vertex
            place += 1
    state = np.uint64(1)
    for place in range(n - 1, head, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = head + np.int64((state >> np.uint64(33)) % np.uint64(place - head + 1))
        order[place], order[other] = order[other], order[place]
    return order


class Scratch(NamedTuple):
    """Working space of the searches in one graph of n vertices."""

    before: Int32s  # whence the path through a vertex comes; FREE, or FREED where a path was there in this fan
    targets: Int32s  # marks of the set the fan leads to
    seen: Int32s  # stamps of the 2n states
    came_from: Int32s
    queue: Int32s
    touched: Int32s
    counters: Int32s  # [stamp of the last search, mark of the present targets]


@compiled()
def make_scratch(n: int) -> Scratch:
    return Scratch(
        np.full(n, FREE, np.int32),
        np.zeros(n, np.int32),
        np.zeros(2 * n, np.int32),
        np.empty(2 * n, np.int32),
        np.empty(2 * n, np.int32),
        np.empty(n, np.int32),
        np.zeros(2, np.int32),
    )


@compiled()
def seek_path(rows: Int64s, neighbours: Int32s, source: int, scratch: Scratch) -> int:
    """A free target that an augmenting path from `source` reaches, or -1. The path is read back from `came_from`.

    Each vertex x is split into an entry 2x and an exit 2x + 1 with room for one path between them. Targets have no
    exit: a path ends at the first it meets.
    """
    before, targets, seen, came_from, queue = scratch[:5]
    scratch.counters[0] += 1
    stamp, mark = scratch.counters
    head, tail = 0, 1
    queue[0] = 2 * source + 1
    while head < tail:
        state = queue[head]
        head += 1
        x = state >> 1
        step = -1  # the one residual arc that does not follow a link outwards
        if state & 1:
            for place in range(rows[x], rows[x + 1]):
                y = int(neighbours[place])
                if y == source or before[y] == x or seen[2 * y] == stamp:
                    continue
                seen[2 * y] = stamp
                came_from[2 * y] = state
                if targets[y] == mark and before[y] < 0:
                    return y
                queue[tail] = 2 * y
                tail += 1
            if x != source and before[x] >= 0:
                step = 2 * x
        elif before[x] < 0:
            step = 2 * x + 1
        elif before[x] != source:
            step = 2 * before[x] + 1
        if step >= 0 and seen[step] != stamp:
            seen[step] = stamp
            came_from[step] = state
            queue[tail] = step
            tail += 1
    return -1


@compiled()
def take_path(source: int, end: int, scratch: Scratch, count: int) -> int:
    """Take the path found into `before`, what it cancels, then what it adds. Returns the new length of touched."""
    before, came_from, touched = scratch.before, scratch.came_from, scratch.touched
    start = 2 * source + 1
    state = 2 * end
    while state != start:
        previous = came_from[state]
        if state & 1 and not previous & 1 and state >> 1 != previous >> 1:
            before[previous >> 1] = FREED
        state = previous
    state = 2 * end
    while state != start:
        previous = came_from[state]
        if previous & 1 and not state & 1 and state >> 1 != previous >> 1:
            if before[state >> 1] == FREE:
                touched[count] = state >> 1
                count += 1
            before[state >> 1] = previous >> 1
        state = previous
    return count


@compiled()
def measure_fan(rows: Int64s, neighbours: Int32s, source: int, limit: int, scratch: Scratch) -> int:
    """How many paths lead from `source` to different targets and share only the source, counted up to `limit`.

    `before` is FREE everywhere on entry and again on return.
    """
    before, touched, mark = scratch.before, scratch.touched, scratch.counters[1]
    size, count = 0, 0
    for place in range(rows[source], rows[source + 1]):
        y = neighbours[place]
        if size < limit and scratch.targets[y] == mark:
            before[y] = source
            touched[count] = y
            count += 1
            size += 1
    while size < limit:
        end = seek_path(rows, neighbours, source, scratch)
        if end < 0:
            break
        count = take_path(source, end, scratch, count)
        size += 1
    for index in range(count):
        before[touched[index]] = FREE
    return size


@compiled()
def aim_at_neighbours(rows: Int64s, neighbours: Int32s, source: int, end: int, scratch: Scratch) -> bool:
    """Make the neighbours of `end` the targets; False where `source` is one of them.

    Paths from source to end that share nothing else are a fan from source to the neighbours of end.
    """
    scratch.counters[1] += 1
    mark = scratch.counters[1]
    for place in range(rows[end], rows[end + 1]):
        scratch.targets[neighbours[place]] = mark
    return bool(scratch.targets[source] != mark)


@compiled()
def measure_by_fans(rows: Int64s, neighbours: Int32s, n: int, limit: int, floor: int) -> int:
    """Vertex connectivity (n - 1 for a clique) counted up to `limit` < n, given that it is at least `floor`."""
    head = limit
    order = order_vertices(rows, neighbours, n, head)
    scratch = make_scratch(n)
    for later in range(head):
        for earlier in range(later):
            if limit <= floor:
                return limit
            if aim_at_neighbours(rows, neighbours, order[earlier], order[later], scratch):
                limit = min(limit, measure_fan(rows, neighbours, order[earlier], limit, scratch))
    scratch.counters[1] += 1
    for place in range(n):
        if limit <= floor:
            return limit
        if place >= head:
            limit = min(limit, measure_fan(rows, neighbours, order[place], limit, scratch))
        scratch.targets[order[place]] = scratch.counters[1]
    return limit


@compiled("int32[::1](int64[::1], int64, int64, int64[::1], int32[::1], int64, int64)")
def measure_connectivity(
    topic_offsets: Int64s,
    first_topic: int,
    last_topic: int,
    row_offsets: Int64s,
    neighbours: Int32s,
    k: int,
    linear_up_to: int,
) -> Int32s:
    """Vertex connectivity of the subgraph of each topic in [first_topic, last_topic), counted up to `k`.

    A clique of n has n - 1. `linear_up_to` (0, 1 or 2) says up to which value the depth-first search is believed; fans
    decide the rest.
    """
    found = np.zeros(last_topic - first_topic, np.int32)
    for topic in range(first_topic, last_topic):
        base = topic_offsets[topic] - topic_offsets[first_topic]
        n = topic_offsets[topic + 1] - topic_offsets[topic]
        rows = row_offsets[base : base + n + 1]
        limit = min(k, n - 1)
        for x in range(n):
            limit = min(limit, rows[x + 1] - rows[x])
        if limit <= 0:
            continue
        floor = 0
        if linear_up_to > 0:
            status = search_cut_vertices(rows, neighbours, n)
            floor = min(status, linear_up_to)
            if status < linear_up_to or limit <= floor:
                found[topic - first_topic] = min(limit, floor)
                continue
        found[topic - first_topic] = measure_by_fans(rows, neighbours, n, limit, floor)
    return found

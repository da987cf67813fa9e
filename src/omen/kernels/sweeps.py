"""Bounds on the diameters of connected pieces by a few breadth-first searches each.

The double sweep (Magnien, Latapy, Habib 2009): the vertex farthest from any start is a good start for a second search,
whose depth is a lower bound; twice the depth of any search is an upper one. A third search from the middle of the path
found lowers the upper bound (the four-sweep idea of Crescenzi et al. 2013, stopped half way).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@compiled()
def search_from(start: int, rows: Int64s, neighbours: Int32s, came_from: Int32s, depths: Int32s, queue: Int32s) -> int:
    """Breadth-first from `start` over vertices whose depth is -1; returns the vertex met last, and fills the queue."""
    depths[start] = 0
    came_from[start] = start
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        x = queue[head]
        head += 1
        for place in range(rows[x], rows[x + 1]):
            y = neighbours[place]
            if depths[y] < 0:
                depths[y] = depths[x] + 1
                came_from[y] = x
                queue[tail] = y
                tail += 1
    return int(queue[tail - 1])


@compiled("void(int64[::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def bound_diameters(offsets: Int64s, rows: Int64s, neighbours: Int32s, lowest: Int32s, highest: Int32s) -> None:
    """Fill lowest[t] <= diameter <= highest[t] of the graph on the vertices offsets[t]:offsets[t + 1], for each t.

    Every graph must be connected and have a vertex, and no link may leave it. Three searches each: linear.
    """
    n = rows.size - 1
    came_from = np.empty(n, np.int32)
    depths = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    for t in range(offsets.size - 1):
        first, last = offsets[t], offsets[t + 1]
        start = first
        for x in range(first, last):
            if rows[x + 1] - rows[x] > rows[start + 1] - rows[start]:
                start = x
        lowest[t] = 0
        highest[t] = np.int32(2**31 - 1)
        for sweep in range(3):
            depths[first:last] = -1
            end = search_from(start, rows, neighbours, came_from, depths, queue)
            depth = depths[end]
            lowest[t] = max(lowest[t], depth)
            highest[t] = min(highest[t], 2 * depth)
            start = end
            if sweep == 1:
                for _ in range(depth // 2):
                    start = came_from[start]

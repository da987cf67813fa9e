"""Rows of codes that grow and shrink in place: many short lists inside one pool.

`spans[row]` is (start, length, capacity) of a row inside `pool`; `tail[0]` is the first free place of the pool. A row
that outgrows its capacity moves to the tail; what it leaves behind is won back by `compacted` when the pool is full.
Rows are unordered unless they are only ever changed by `insert_sorted` and `remove_sorted`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Pool = npt.NDArray[np.int32]
Spans = npt.NDArray[np.int64]
Tail = npt.NDArray[np.int64]

SPANS = "int64[:,::1]"
POOL = "int32[::1]"
TAIL = "int64[::1]"


@compiled()
def make_room(spans: Spans, pool: Pool, tail: Tail, row: int, items: int) -> bool:
    """Let `items` more fit into the row. False where the pool is full; nothing is changed then."""
    start, length, capacity = spans[row, 0], spans[row, 1], spans[row, 2]
    if length + items <= capacity:
        return True
    wanted = max(4, length + items, capacity + capacity // 2)
    if capacity > 0 and start + capacity == tail[0]:
        if start + wanted > pool.size:
            return False
        tail[0] = start + wanted
        spans[row, 2] = wanted
        return True
    if tail[0] + wanted > pool.size:
        return False
    moved = tail[0]
    pool[moved : moved + length] = pool[start : start + length]
    spans[row, 0] = moved
    spans[row, 2] = wanted
    tail[0] = moved + wanted
    return True


@compiled()
def append(spans: Spans, pool: Pool, row: int, value: int) -> None:
    """Add a value behind the last; `make_room` comes first."""
    pool[spans[row, 0] + spans[row, 1]] = value
    spans[row, 1] += 1


@compiled()
def remove(spans: Spans, pool: Pool, row: int, value: int) -> bool:
    """Take a value out; the last one takes its place. False where it is not in the row."""
    start, length = spans[row, 0], spans[row, 1]
    for place in range(start, start + length):
        if pool[place] == value:
            pool[place] = pool[start + length - 1]
            spans[row, 1] = length - 1
            return True
    return False


@compiled()
def holds(spans: Spans, pool: Pool, row: int, value: int) -> bool:
    """Whether an unordered row holds the value."""
    start = spans[row, 0]
    for place in range(start, start + spans[row, 1]):  # noqa: SIM110  # numba
        if pool[place] == value:
            return True
    return False


@compiled()
def find_sorted(spans: Spans, pool: Pool, row: int, value: int) -> int:
    """The place in the pool of the first item not below `value`."""
    low: int = spans[row, 0]
    high: int = low + spans[row, 1]
    while low < high:
        middle = (low + high) >> 1
        if pool[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def holds_sorted(spans: Spans, pool: Pool, row: int, value: int) -> bool:
    place = find_sorted(spans, pool, row, value)
    found: bool = place < spans[row, 0] + spans[row, 1] and pool[place] == value
    return found


@compiled()
def insert_sorted(spans: Spans, pool: Pool, row: int, value: int) -> None:
    """Put a value where it belongs in an ascending row; `make_room` comes first."""
    place = find_sorted(spans, pool, row, value)
    end = spans[row, 0] + spans[row, 1]
    for moving in range(end, place, -1):
        pool[moving] = pool[moving - 1]
    pool[place] = value
    spans[row, 1] += 1


@compiled()
def remove_sorted(spans: Spans, pool: Pool, row: int, value: int) -> bool:
    """Take a value out of an ascending row. False where it is not in the row."""
    place = find_sorted(spans, pool, row, value)
    end = spans[row, 0] + spans[row, 1]
    if place == end or pool[place] != value:
        return False
    for moving in range(place, end - 1):
        pool[moving] = pool[moving + 1]
    spans[row, 1] -= 1
    return True


@compiled(f"int64({SPANS})")
def wanted_room(spans: Spans) -> int:
    """What a pool must hold for every row to have some room to grow."""
    total = 0
    for row in range(spans.shape[0]):
        if spans[row, 2] > 0:
            total += spans[row, 1] + (spans[row, 1] >> 2) + 2
    return total


@compiled(f"void({SPANS}, {POOL}, {POOL}, {TAIL})")
def compact(spans: Spans, pool: Pool, fresh: Pool, tail: Tail) -> None:
    """Move all rows into the fresh pool, one behind the other, each with the room `wanted_room` counts."""
    place = 0
    for row in range(spans.shape[0]):
        if spans[row, 2] == 0:
            continue
        start, length = spans[row, 0], spans[row, 1]
        for item in range(length):
            fresh[place + item] = pool[start + item]
        spans[row, 0] = place
        spans[row, 2] = length + (length >> 2) + 2
        place += spans[row, 2]
    tail[0] = place


@compiled(f"void({SPANS}, {POOL}, {TAIL}, int64[::1], {POOL})")
def load(spans: Spans, pool: Pool, tail: Tail, offsets: npt.NDArray[np.int64], values: Pool) -> None:
    """Fill empty rows 0, 1, ... from compressed rows; the pool must have the room."""
    place = 0
    for row in range(offsets.size - 1):
        length = offsets[row + 1] - offsets[row]
        for item in range(length):
            pool[place + item] = values[offsets[row] + item]
        spans[row, 0] = place
        spans[row, 1] = length
        spans[row, 2] = length + (length >> 2) + 2
        place += spans[row, 2]
    tail[0] = place

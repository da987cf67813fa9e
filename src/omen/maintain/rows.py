"""The owner of one family of rows: spans, pool and tail, and when they grow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels import rows as kernel
from omen.kernels.rows import Pool, Spans


class Rows:
    """Growing lists of codes, one per row, in one pool (see kernels/rows.py).

    Kernels get `spans`, `pool` and `tail`; a kernel that finds the pool full says how far it came, `grow` is called
    and the kernel goes on from there. Memory follows what the rows hold: places left behind are reused before the
    pool grows.
    """

    def __init__(self, rows: int) -> None:
        self.spans: Spans = np.zeros((max(rows, 1), 3), np.int64)
        self.pool: Pool = np.zeros(64, np.int32)
        self.tail = np.zeros(1, np.int64)

    @classmethod
    def from_compressed(cls, offsets: npt.NDArray[np.int64], values: Pool, rows: int) -> Rows:
        made = cls(max(rows, offsets.size - 1))
        made.pool = np.zeros(2 * (values.size + values.size // 4 + 2 * offsets.size) + 64, np.int32)
        kernel.load(made.spans, made.pool, made.tail, offsets, np.ascontiguousarray(values, np.int32))
        return made

    @property
    def capacity(self) -> int:
        return int(self.spans.shape[0])

    def widen(self, rows: int) -> None:
        """Have at least this many rows."""
        if rows > self.capacity:
            spans = np.zeros((rows, 3), np.int64)
            spans[: self.capacity] = self.spans
            self.spans = spans

    def grow(self, items: int = 0) -> None:
        """Make place in a pool that was found full, for at least `items` more."""
        room = kernel.wanted_room(self.spans) + items
        size = self.pool.size if 2 * room <= self.pool.size else 3 * room + 64
        fresh = np.zeros(size, np.int32)
        kernel.compact(self.spans, self.pool, fresh, self.tail)
        self.pool = fresh

    def of(self, row: int) -> Pool:
        """A copy of one row."""
        start, length, _ = self.spans[row].tolist()
        return self.pool[start : start + length].copy()

    def length(self, row: int) -> int:
        return int(self.spans[row, 1])

    def clear(self, row: int) -> None:
        """Empty a row and give up its place."""
        self.spans[row] = 0

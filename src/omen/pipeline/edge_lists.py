"""Lines of edge lists read by Spark's workers, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from omen.kernels.edge_lines import copy_words
from omen.kernels.edge_lines_small import LOOP, ODD, PLAIN
from omen.pipeline.line_readers import LineReader
from omen.pipeline.lines import bare, is_comment
from omen.workloads.edge_lists import SELF_LOOP, header_among, read_edge_line, read_plain, whole_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def find_header(lines: DataFrame) -> str | None:
    """The header of an edge list, as `header_among` finds it."""
    text = bare(F.col("text"))
    return header_among([row[0] for row in lines.filter(~is_comment(text)).select(text).limit(2).collect()])


@dataclass(frozen=True)
class EdgeReader(LineReader):
    """Lines of two labels; `header` is no data, wherever it stands."""

    header: str | None = None

    def read(self, lines: pa.Array) -> tuple[npt.NDArray[np.bool_], list[Any]]:
        text, offsets = _buffers(lines)
        left, right, spans, kinds = read_plain(text, offsets)
        odd = np.flatnonzero(kinds == ODD)
        outcomes = [read_edge_line(line, self.header) for line in lines.take(pa.array(odd)).to_pylist()]
        is_data = np.ones(kinds.size, dtype=bool)
        is_data[odd] = [outcome is not None for outcome in outcomes]
        found = [outcome or (None, None, None) for outcome in outcomes]
        plain = kinds == PLAIN
        sides = []
        for side, numbers in enumerate((left, right)):
            words = [outcome[side] for outcome in found]
            if self.as_text[side]:
                cut = _cut_words(text, spans[plain, 2 * side], spans[plain, 2 * side + 1])
                both = [cut, pa.array(words, pa.string())]
                sides.append(_place_words(both, [np.flatnonzero(plain), odd], kinds.size))
            else:
                sides.append(_place_numbers(numbers, plain, words, odd))
        reasons = np.full(kinds.size, None, dtype=object)
        reasons[kinds == LOOP] = SELF_LOOP
        reasons[odd] = [outcome[2] for outcome in found]
        return is_data, [*sides, pa.array(reasons, pa.string())]


def _buffers(lines: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The text of all lines, and where in it each begins."""
    _, ends, words = lines.buffers()
    offsets = np.frombuffer(ends, np.int32, len(lines) + 1, lines.offset * 4) if len(lines) else np.zeros(1, np.int32)
    return np.frombuffer(words, np.uint8) if words is not None and words.size else np.empty(0, np.uint8), offsets


def _place_numbers(
    numbers: npt.NDArray[np.int64], known: npt.NDArray[np.bool_], words: list[str | None], odd: npt.NDArray[Any]
) -> pa.Array:
    """The numbers of the plain lines and of the odd ones, null where there is none."""
    known = known.copy()
    for place, word in zip(odd.tolist(), words, strict=True):
        number = whole_number(word)
        if number is not None:
            numbers[place], known[place] = number, True
    return pa.array(numbers, mask=~known)


def _place_words(words: list[pa.Array], places: list[npt.NDArray[Any]], count: int) -> pa.Array:
    """`count` words: those of each array at its places, null at all others."""
    where = np.full(count, -1, dtype=np.int64)
    where[np.concatenate(places)] = np.arange(sum(map(len, words)))
    return pa.concat_arrays(words).take(pa.array(where, mask=where < 0))


def _cut_words(text: npt.NDArray[np.uint8], begins: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> pa.Array:
    begins, ends = np.ascontiguousarray(begins), np.ascontiguousarray(ends)
    offsets = np.zeros(begins.size + 1, np.int32)
    np.cumsum(ends - begins, out=offsets[1:])
    words = np.empty(int(offsets[-1]), np.uint8)
    copy_words(text, begins, ends, offsets, words)
    return pa.StringArray.from_buffers(begins.size, pa.py_buffer(offsets), pa.py_buffer(words))

"""Lines of an edge list as `edge_lines` reads them, without numba: loading that takes longer than a small file.

It is sure of fewer lines: signs, and quoted words, are left to be read one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

PLAIN, LOOP, ODD = 0, 1, 2
DIGITS = 18
"""As many as always fit into 64 bits."""

_TAB, _BLANK, _COMMA, _ZERO, _NINE, _LAST = 9, 32, 44, 48, 57, 126


def read_pairs(text: Bytes, offsets: Int32s, left: Int64s, right: Int64s, spans: Int32s, kinds: Bytes) -> None:
    """What the kernel of this name says of the lines, or ODD."""
    kinds[:] = ODD
    comma = text == _COMMA
    apart = (text == _BLANK) | (text == _TAB) | comma
    strange = (text > _LAST) | ((text < _BLANK) & (text != _TAB))
    word = ~apart
    before, after = np.concatenate([[False], word[:-1]]), np.concatenate([word[1:], [False]])
    inner = offsets[1:-1]
    before[inner[inner < text.size]] = False  # a line's last word ends with it
    after[inner[inner > 0] - 1] = False
    begins, ends = np.flatnonzero(word & ~before), np.flatnonzero(word & ~after) + 1
    first = np.searchsorted(begins, offsets)
    words = np.diff(first)
    commas, strangers = (_counted(what, offsets[:-1], offsets[1:]) for what in (comma, strange))
    lines = np.flatnonzero((strangers == 0) & ((words == 2) & (commas == 1) | (words >= 2) & (commas == 0)))
    one, other = first[lines], first[lines] + 1
    stands_between = _counted(comma, ends[one], begins[other]) == commas[lines]
    digits = (text >= _ZERO) & (text <= _NINE)
    numbers = [
        (ends[at] - begins[at] <= DIGITS) & (_counted(digits, begins[at], ends[at]) == ends[at] - begins[at])
        for at in (one, other)
    ]
    sure = stands_between & numbers[0] & numbers[1]
    lines, one, other = lines[sure], one[sure], other[sure]
    for side, at, column in ((left, one, 0), (right, other, 2)):
        side[lines] = _numbers(text, begins[at], ends[at])
        spans[lines, column], spans[lines, column + 1] = begins[at], ends[at]
    kinds[lines] = np.where(left[lines] == right[lines], LOOP, PLAIN)


def _counted(what: npt.NDArray[np.bool_], begins: npt.NDArray[np.integer], ends: npt.NDArray[np.integer]) -> Int64s:
    """How often it holds between each two places."""
    sums = np.zeros(what.size + 1, np.int64)
    np.cumsum(what, out=sums[1:])
    found: Int64s = sums[ends] - sums[begins]
    return found


def _numbers(text: Bytes, begins: Int64s, ends: Int64s) -> Int64s:
    found, lengths = np.zeros(begins.size, np.int64), ends - begins
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        found[there] = found[there] * 10 + (text[begins[there] + place] - np.int64(_ZERO))
    return found

"""Lines of an edge list, many at a time: two whole numbers apart by blanks or a comma, whatever follows.

Of nearly every line of a large file that is all there is to say. The others are told apart here and read one by one
elsewhere, by rules that these here must agree with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.edge_lines_small import DIGITS, LOOP, ODD, PLAIN

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_TAB, _BLANK, _PLUS, _COMMA, _MINUS, _ZERO, _NINE, _LAST = 9, 32, 43, 44, 45, 48, 57, 126
_READ_ONLY_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_READ_ONLY_OFFSETS = "Array(int32, 1, 'C', readonly=True)"


@compiled()
def skip_blanks(text: Bytes, place: int, end: int) -> int:
    while place < end and (text[place] == _BLANK or text[place] == _TAB):
        place += 1
    return place


@compiled()
def read_number(text: Bytes, place: int, end: int) -> tuple[np.int64, int]:
    """(the number that begins here, where it ends); it ends where it begins if there is none, or one too long."""
    start = place
    minus = place < end and text[place] == _MINUS
    if minus or (place < end and text[place] == _PLUS):
        place += 1
    first, number = place, np.int64(0)
    while place < end and _ZERO <= text[place] <= _NINE and place - first < DIGITS:
        number = number * 10 + np.int64(text[place] - _ZERO)
        place += 1
    if place == first or (place < end and _ZERO <= text[place] <= _NINE):
        return np.int64(0), start
    return (-number if minus else number), place


@compiled()
def is_tail(text: Bytes, place: int, end: int, commas: bool) -> bool:
    """Whether what follows the second number leaves it one: nothing, or more columns, of printable ASCII."""
    if place < end and not (text[place] == _BLANK or text[place] == _TAB or (commas and text[place] == _COMMA)):
        return False
    if commas:
        place = skip_blanks(text, place, end)
        if place < end and text[place] != _COMMA:
            return False
    while place < end:
        if text[place] > _LAST or (text[place] < _BLANK and text[place] != _TAB):
            return False
        if text[place] == _COMMA and not commas:
            return False
        place += 1
    return True


@compiled(f"void({_READ_ONLY_BYTES}, {_READ_ONLY_OFFSETS}, int64[::1], int64[::1], int32[:,::1], uint8[::1])")
def read_pairs(text: Bytes, offsets: Int32s, left: Int64s, right: Int64s, spans: Int32s, kinds: Bytes) -> None:
    """For line i, text[offsets[i]:offsets[i + 1]]: its two numbers, where each begins and ends, and its kind.

    PLAIN: two different numbers. LOOP: the same one twice. ODD: anything else; the rest is then without meaning.
    """
    for line in range(kinds.size):
        end = offsets[line + 1]
        kinds[line] = ODD
        begin = skip_blanks(text, offsets[line], end)
        number, stop = read_number(text, begin, end)
        if stop == begin:
            continue
        spans[line, 0], spans[line, 1], left[line] = begin, stop, number
        place = skip_blanks(text, stop, end)
        commas = place < end and text[place] == _COMMA
        if commas:
            place = skip_blanks(text, place + 1, end)
        elif place == stop:
            continue
        number, stop = read_number(text, place, end)
        if stop == place or not is_tail(text, stop, end, commas):
            continue
        spans[line, 2], spans[line, 3], right[line] = place, stop, number
        kinds[line] = LOOP if left[line] == number else PLAIN


@compiled(f"void({_READ_ONLY_BYTES}, int32[::1], int32[::1], int32[::1], uint8[::1])")
def copy_words(text: Bytes, begins: Int32s, ends: Int32s, offsets: Int32s, words: Bytes) -> None:
    """Words cut out of a text, one after the other; word i goes to words[offsets[i]:]."""
    for word in range(begins.size):
        to = offsets[word]
        for place in range(begins[word], ends[word]):
            words[to] = text[place]
            to += 1

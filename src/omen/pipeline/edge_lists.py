"""Lines of edge lists read by Spark's workers: a pair of labels from each, or why there is none.

Nearly every line of a large file begins with two numbers; a kernel reads these, a batch at a time. The others go to
`read_edge_line`, one by one; the kernel leaves to it whatever it is not sure of, so both agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from omen.kernels.edge_lines import LOOP, ODD, PLAIN, copy_words, read_pairs
from omen.pipeline.line_readers import LineReader
from omen.pipeline.lines import bare, is_comment
from omen.tables.raw import NOT_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOO_FEW_COLUMNS = "fewer than two columns"
WORDS_AFTER_PAIR = "more than two words, the rest not numbers"
SELF_LOOP = "self-loop"

Outcome = tuple[str | None, str | None, str | None]
"""left, right and, where these are None, the reason."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_HEADER_NAMES = """
    source target src dst from to head tail user users friend follower followee following followed
    node node1 node2 node_1 node_2 id id1 id2 id_1 id_2 user1 user2 user_a user_b user_id friend_id follower_id
    followee_id fromnodeid tonodeid from_node to_node from_node_id to_node_id source_id target_id subscriber publisher
"""
_HEADER_WORDS = frozenset(_HEADER_NAMES.split())


def find_header(lines: DataFrame) -> str | None:
    """The header of an edge list, None without one.

    A first line whose words name columns (no single letters: users may be called so), or are words where the next line
    has numbers. A line equal to it anywhere is no data either: files put together from several repeat theirs.
    """
    text = bare(F.col("text"))
    first = [row[0] for row in lines.filter(~is_comment(text)).select(text).limit(2).collect()]
    split = [[word.strip('" \t') for word in (row.split(",") if "," in row else row.split())][:2] for row in first]
    numbers = [len(words) == 2 and all(map(is_integer, words)) for words in split]
    if not split or len(split[0]) < 2 or any(is_integer(word) for word in split[0]):
        return None
    named = all(word.lower() in _HEADER_WORDS for word in split[0])
    return first[0] if named or numbers[-1] else None


@dataclass(frozen=True)
class EdgeReader(LineReader):
    """Lines of two labels; `header` is no data, wherever it stands."""

    header: str | None = None

    def read(self, lines: pa.Array) -> tuple[npt.NDArray[np.bool_], list[Any]]:
        left, right, spans, kinds, text = read_plain(lines)
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


def read_plain(lines: pa.Array) -> tuple[npt.NDArray[Any], ...]:
    """left, right, spans and kinds as the kernel `read_pairs` has them, and the text that the spans are cut from."""
    count = len(lines)
    _, ends, words = lines.buffers()
    offsets = np.frombuffer(ends, np.int32, count + 1, lines.offset * 4) if count else np.zeros(1, np.int32)
    text = np.frombuffer(words, np.uint8) if words is not None and words.size else np.empty(0, np.uint8)
    left, right = np.empty((2, count), np.int64)
    spans, kinds = np.empty((count, 4), np.int32), np.empty(count, np.uint8)
    read_pairs(text, offsets, left, right, spans, kinds)
    return left, right, spans, kinds, text


def read_edge_line(line: bytes, header: str | None = None) -> Outcome | None:
    """left, right and reason of a line of any shape; None where it is no data at all."""
    try:
        text = line.decode().strip(" \t\ufeff")
    except UnicodeDecodeError:
        return None, None, NOT_TEXT
    if not text or text[0] in "#%" or text == header:
        return None
    if "\0" in text:
        return None, None, NOT_TEXT
    by_comma = "," in text
    words = [word.strip('" \t') for word in text.split(",")] if by_comma else text.replace("\t", " ").split()
    left, right = [*words, "", ""][:2]
    if not left or not right:
        return None, None, TOO_FEW_COLUMNS
    numbers = is_integer(left) and is_integer(right)
    if not numbers and not by_comma and not all(map(is_number, words[2:])):
        return None, None, WORDS_AFTER_PAIR
    if left == right or (numbers and int(left) == int(right)):
        return None, None, SELF_LOOP
    return left, right, None


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_integer(word: str) -> bool:
    return _INTEGER.fullmatch(word) is not None


def _number(word: str | None) -> int | None:
    if word is None or not is_integer(word):
        return None
    number = int(word)
    return number if -(2**63) <= number < 2**63 else None


def _place_numbers(
    numbers: npt.NDArray[np.int64], known: npt.NDArray[np.bool_], words: list[str | None], odd: npt.NDArray[Any]
) -> pa.Array:
    """The numbers of the plain lines and of the odd ones, null where there is none."""
    known = known.copy()
    for place, word in zip(odd.tolist(), words, strict=True):
        number = _number(word)
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

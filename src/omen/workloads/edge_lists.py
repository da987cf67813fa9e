"""Lines of edge lists: a pair of labels from each, or why there is none. Loads nothing of Spark.

Nearly every line of a large file begins with two numbers; a kernel reads these, a batch at a time. The others go to
`read_edge_line`, one by one; the kernel leaves to it whatever it is not sure of, so both agree. Small files are read by
the kernel's twin, as loading the kernel takes longer than they do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.tables.raw import NOT_TEXT

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


def header_among(first: Sequence[str]) -> str | None:
    """The header of an edge list, by its first two lines that are no comments; None without one.

    A first line whose words name columns (no single letters: users may be called so), or are words where the next line
    has numbers. A line equal to it anywhere is no data either: files put together from several repeat theirs.
    """
    split = [[word.strip('" \t') for word in (row.split(",") if "," in row else row.split())][:2] for row in first]
    numbers = [len(words) == 2 and all(map(is_integer, words)) for words in split]
    if not split or len(split[0]) < 2 or any(is_integer(word) for word in split[0]):
        return None
    named = all(word.lower() in _HEADER_WORDS for word in split[0])
    return first[0] if named or numbers[-1] else None


def read_plain(
    text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], is_small: bool = False
) -> tuple[npt.NDArray[Any], ...]:
    """left, right, spans and kinds as the kernel `read_pairs` has them, of lines that stand one after the other."""
    count = offsets.size - 1
    left, right = np.empty((2, count), np.int64)
    spans, kinds = np.empty((count, 4), np.int32), np.empty(count, np.uint8)
    if is_small:
        from omen.kernels.edge_lines_small import read_pairs
    else:
        from omen.kernels.edge_lines import read_pairs
    text.flags.writeable = offsets.flags.writeable = False  # as the kernel takes them
    read_pairs(text, offsets, left, right, spans, kinds)
    return left, right, spans, kinds


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


def whole_number(word: str | None) -> int | None:
    if word is None or not is_integer(word):
        return None
    number = int(word)
    return number if -(2**63) <= number < 2**63 else None

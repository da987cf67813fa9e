"""The reader of small edge lists against the compiled one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omen.kernels import edge_lines, edge_lines_small
from omen.kernels.edge_lines_small import LOOP, ODD, PLAIN

SURE = [b"1 2", b" 7\t08 ", b"3,4", b"3 , 4", b"5 5", b"1 2 0.5 x", b"123456789012345678 1", b"9 10 11"]
UNSURE = [
    b"",
    b"#a b",
    b"1",
    b"1,,2",
    b",1 2",
    b"1 2,",
    b"1,2,3",
    b"1,2 3",
    b"-1 2",
    b"+1 2",
    b"a b",
    b"1 2 \xff",
    b"1 2\0",
]
PIECES = st.lists(st.sampled_from([b"1", b"20", b"x", b"-", b"+3", b" ", b"\t", b",", b"\0", b"\xe9", b"1" * 19]))
LINES = st.lists(st.one_of(PIECES.map(b"".join), st.sampled_from([*SURE, *UNSURE])), max_size=8)


def read(lines: list[bytes], module: object) -> list[tuple[int, ...]]:
    """Kind of each line, and where that is known its numbers and where they stand."""
    text = np.frombuffer(b"".join(lines), np.uint8)
    offsets = np.cumsum([0, *map(len, lines)]).astype(np.int32)
    left, right = np.zeros((2, len(lines)), np.int64)
    spans, kinds = np.zeros((len(lines), 4), np.int32), np.empty(len(lines), np.uint8)
    text.flags.writeable = offsets.flags.writeable = False
    module.read_pairs(text, offsets, left, right, spans, kinds)  # type: ignore[attr-defined]
    rows = zip(kinds.tolist(), left.tolist(), right.tolist(), spans.tolist(), strict=True)
    return [(kind,) if kind == ODD else (kind, a, b, *span) for kind, a, b, span in rows]


@given(LINES)
def test_what_the_small_reader_is_sure_of_is_what_the_kernel_says(lines: list[bytes]) -> None:
    small, compiled = read(lines, edge_lines_small), read(lines, edge_lines)
    assert [one for one, other in zip(small, compiled, strict=True) if one != (ODD,) and one != other] == []


def test_the_small_reader_is_sure_of_what_files_are_made_of() -> None:
    kinds = [found[0] for found in read([*SURE, *UNSURE], edge_lines_small)]
    assert kinds == [LOOP if line == b"5 5" else PLAIN for line in SURE] + [ODD] * len(UNSURE)

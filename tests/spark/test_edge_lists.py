"""What Spark's workers do, without Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.pipeline import merging
from omen.pipeline.edge_lists import EdgeReader
from omen.workloads.edge_lists import read_edge_line

words = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.integers(-20, 20).map(str),
    st.sampled_from(["+3", "03", "-0", "9" * 19, "9" * 20, "x", '"4"', "", "1.5", "#", "é"]),
)
marks = st.sampled_from([" ", "\t", ",", ", ", " ,", "  ", "\t ", ",,", "\0", "\ufeff"])
lines = st.one_of(
    st.tuples(marks, words, marks, words, marks, words).map("".join),
    st.tuples(words, marks, words).map("".join),
    st.text(alphabet="012 \t,+-#%a", max_size=8),
).map(str.encode)
any_lines = st.lists(st.one_of(lines, st.binary(max_size=6)), max_size=30)


def batch_of(some: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(some, pa.binary()), pa.array(range(len(some)))], ["line", "place"])


@given(any_lines, st.integers(0, 3))
def test_lines_read_together_are_those_read_one_by_one(some: list[bytes], skipped: int) -> None:
    one_by_one = {place: read_edge_line(line) for place, line in enumerate(some)}
    expected = {place: outcome for place, outcome in one_by_one.items() if outcome and place >= skipped}
    (found,) = EdgeReader(as_text=(True, True), keep=("place",))([batch_of(some).slice(skipped)])
    rows = {row["place"]: (row["left"], row["right"], row["reason"]) for row in found.to_pylist()}
    assert rows == expected

    (found,) = EdgeReader(keep=("place",))([batch_of(some).slice(skipped)])
    for row in found.to_pylist():
        left, right, reason = expected[row["place"]]
        assert row["reason"] == reason
        assert (row["left"], row["right"]) == (as_number(left), as_number(right))


def as_number(word: str | None) -> int | None:
    digits = (word or "").removeprefix("-").removeprefix("+")
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= 19):
        return None
    return int(word or "") if -(2**63) <= int(word or "") < 2**63 else None


numbers = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**62]))
rows = st.lists(st.tuples(numbers, numbers), max_size=200)


@pytest.mark.parametrize("either_way", [False, True])
@given(some=rows, other=rows)
def test_parcels_hold_every_pair_once(
    either_way: bool, some: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    schema = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("reason", pa.string())])
    batches = [
        pa.RecordBatch.from_pylist([{"left": a, "right": b, "reason": None} for a, b in part], schema)
        for part in (some, other)
    ]
    pack = merging._Packer(None, either_way, (False, False))
    parcels = [parcel for batch in batches for parcel in pack([batch])]
    shuffled = pa.Table.from_batches(parcels, merging._PARCELS_ARROW).sort_by("bucket")
    merged = list(merging._merge_parcels(shuffled.to_batches(max_chunksize=7)))
    table = pa.Table.from_batches(merged, merging._PARCELS_ARROW)
    only = table.filter(table.column("pairs").is_valid()).select(["pairs"])
    found: Counter[Any] = Counter(
        pair
        for batch in merging._unpack(only.to_batches())
        for pair in zip(batch.column("left").to_pylist(), batch.column("right").to_pylist(), strict=True)
    )
    expected = {(min(a, b), max(a, b)) if either_way else (a, b) for a, b in some + other}
    assert found == Counter(expected)
    assert sum(table.column("rows").to_pylist()) == len(some) + len(other)
    assert sum(table.column("kept").to_pylist()) == len(expected)

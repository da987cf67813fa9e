"""Equal pairs merged and counted, in one pass and one shuffle.

Pairs of numbers travel in parcels: the workers that read spread them over buckets by a hash and send each bucket's as
rows of bytes, the workers that merge do it bucket by bucket. Row by row, as Spark groups, the same takes several times
as long, nearly all pairs being different. A bucket has to fit into a worker: 1/512 of the pairs, 16 bytes each. Pairs
with text in them are grouped by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from omen.kernels.pair_buckets import merge_pairs, spread_pairs
from omen.pipeline.grouped import whole_groups
from omen.workloads.edge_files import NOT_A_WHOLE_NUMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterable[pa.RecordBatch]

BUCKETS = 512
PARCEL_ROWS = 1 << 18  # pairs collected before they are sent
UNPACKED_ROWS = 1 << 16
_PAIR_BYTES = 16

_CACHED_PAIRS = 512  # of a merged parcel: thousands of these make a batch
_COUNTS = "left bigint, right bigint, reason string, rows bigint, kept bigint"
_PARCELS = f"bucket int, pairs binary, {_COUNTS}"
_COUNTS_ARROW = [(name, pa.string() if name == "reason" else pa.int64()) for name in ("left", "right", "reason")]
_COUNTS_ARROW += [("rows", pa.int64()), ("kept", pa.int64())]
_PARCELS_ARROW = pa.schema([("bucket", pa.int32()), ("pairs", pa.binary()), *_COUNTS_ARROW])


def merge_numbers(
    rows: DataFrame,
    read: Callable[[Batches], Batches] | None = None,
    either_way: bool = False,
    demanded: tuple[bool, bool] = (False, False),
) -> DataFrame:
    """Parcels of pairs of numbers, each pair once; `kept` says how many, `rows` how many there were before.

    `rows` has left, right and reason, or is what `read` makes them of, inside the same worker. Bad rows come out as
    counts without a parcel, one a reason or several. So do those with a label that is no number: `left` or `right` is
    then null, else 0; where numbers are `demanded`, that is one more reason. `either_way`: the smaller goes first.
    """
    partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 8)
    parcels = rows.mapInArrow(_Packer(read, either_way, demanded), _PARCELS)
    return parcels.repartition(partitions, "bucket").sortWithinPartitions("bucket").mapInArrow(_merge_parcels, _PARCELS)


def merge_words(rows: DataFrame) -> DataFrame:
    """The same for labels of any kind, from left, right and reason; here a pair is a row."""
    return rows.groupBy("left", "right", "reason").agg(F.count("*").alias("rows")).withColumn("kept", F.lit(1))


def pairs_of(merged: DataFrame) -> DataFrame:
    """(left, right) of what has been merged, in either way."""
    if "pairs" not in merged.columns:
        return merged.filter(F.col("left").isNotNull()).select("left", "right")
    parcels = merged.filter(F.col("pairs").isNotNull()).select("pairs")
    return parcels.mapInArrow(_unpack, "left bigint, right bigint")


@dataclass(frozen=True)
class _Packer:
    """Parcels of pairs, and counts of what is none."""

    read: Callable[[Batches], Batches] | None
    either_way: bool
    demanded: tuple[bool, bool]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.read(batches) if self.read else batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= PARCEL_ROWS:
                yield from self._pack(pa.Table.from_batches(held))
                held, rows = [], 0
        if rows:
            yield from self._pack(pa.Table.from_batches(held))

    def _pack(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        known = [table.column(side).is_valid() for side in ("left", "right")]
        good = table.column("reason").is_null()
        whole = pc.and_(pc.and_(*known), good)
        if not pc.all(whole).as_py():
            yield self._count(table.append_column("has_left", known[0]).append_column("has_right", known[1]), whole)
            table = table.filter(whole)
        if table.num_rows:
            left, right = (_numbers(table.column(side)) for side in ("left", "right"))
            if self.either_way:
                left, right = np.minimum(left, right), np.maximum(left, right)
            yield _parcel(left, right)

    def _count(self, table: pa.Table, whole: pa.ChunkedArray) -> pa.RecordBatch:
        kinds = table.filter(pc.invert(whole)).group_by(["has_left", "has_right", "reason"])
        rows = []
        for row in kinds.aggregate([([], "count_all")]).to_pylist():
            reason, sides = row["reason"], (row["has_left"], row["has_right"])
            if reason is None and any(ask and not has for ask, has in zip(self.demanded, sides, strict=True)):
                reason = NOT_A_WHOLE_NUMBER
            left, right = (0 if has and reason is None else None for has in sides)
            rows.append({"left": left, "right": right, "reason": reason, "rows": row["count_all"]})
        return _counts(rows)


def _parcel(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """One row of bytes for each bucket that has pairs."""
    offsets, pairs = np.empty(BUCKETS + 1, np.int64), np.empty((left.size, 2), np.int64)
    spread_pairs(left, right, offsets, pairs)
    filled = np.flatnonzero(np.diff(offsets)).astype(np.int32)
    return _as_parcels(filled, pairs, np.append(offsets[filled], left.size))


def _as_parcels(buckets: npt.NDArray[np.int32], pairs: npt.NDArray[np.int64], cuts: npt.NDArray[np.int64]) -> Any:
    """`pairs` cut at these places."""
    ends = pa.py_buffer((cuts * _PAIR_BYTES).astype(np.int32))
    parcels = pa.BinaryArray.from_buffers(pa.binary(), buckets.size, [None, ends, pa.py_buffer(pairs)])
    zero, sizes = pa.array(np.zeros(buckets.size, np.int64)), pa.array(np.diff(cuts))
    columns = [pa.array(buckets), parcels, zero, zero, pa.nulls(buckets.size, pa.string()), sizes, sizes]
    return pa.RecordBatch.from_arrays(columns, schema=_PARCELS_ARROW)


def _merge_parcels(batches: Batches) -> Iterator[pa.RecordBatch]:
    for table in whole_groups(batches, "bucket", at_least=1):
        is_parcel = table.column("pairs").is_valid()
        counts = table.filter(pc.invert(is_parcel))
        if counts.num_rows:
            yield from counts.to_batches()
        parcels = table.filter(is_parcel)
        if parcels.num_rows:
            yield from _merge_buckets(parcels)


def _merge_buckets(parcels: pa.Table) -> Iterator[pa.RecordBatch]:
    buckets, (offsets, content) = parcels.column("bucket").to_numpy(), _bytes_of(parcels.column("pairs"))
    for first, last in pairwise(np.append(np.flatnonzero(np.diff(buckets, prepend=-1)), buckets.size).tolist()):
        pairs = _pairs_in(content, offsets[first], offsets[last]).copy()
        kept = merge_pairs(pairs, np.zeros(1 << max(1, (2 * len(pairs) - 1).bit_length()), np.int32))
        cuts = np.append(np.arange(0, kept, _CACHED_PAIRS), kept)
        merged = _as_parcels(np.full(cuts.size - 1, buckets[first], np.int32), pairs[:kept], cuts)
        yield merged
        if kept < len(pairs):
            yield _counts([{"left": 0, "right": 0, "reason": None, "rows": len(pairs) - kept}])


def _unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        offsets, content = _bytes_of(pa.chunked_array([batch.column("pairs")]))
        pairs = _pairs_in(content, offsets[0], offsets[-1])
        for first in range(0, len(pairs), UNPACKED_ROWS):
            columns = [pa.array(np.ascontiguousarray(pairs[first : first + UNPACKED_ROWS, side])) for side in (0, 1)]
            yield pa.RecordBatch.from_arrays(columns, names=["left", "right"])


def _counts(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Counts of rows that are in no parcel."""
    return pa.RecordBatch.from_pylist([{"bucket": 0, "kept": 0} | row for row in rows], _PARCELS_ARROW)


def _bytes_of(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.Buffer]:
    """Where each value begins and ends, and the bytes."""
    whole = column.combine_chunks()
    _, ends, content = whole.buffers()
    return np.frombuffer(ends, np.int32, len(whole) + 1, whole.offset * 4), content


def _pairs_in(content: pa.Buffer, start: int, end: int) -> npt.NDArray[np.int64]:
    return np.frombuffer(content, np.int64, (int(end) - int(start)) // 8, int(start)).reshape(-1, 2)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = column.to_numpy()
    return numbers

"""Rows numbered in an order, whatever the partitions they are in."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION_BITS = 33  # of monotonically_increasing_id: below them the place within a partition


def ranked(frame: DataFrame, *order: str) -> tuple[DataFrame, int]:
    """The rows with a column `rank`, from 0 in this order, and how many there are. No two rows may be equal in it.

    Partitions are ranges of the order, so a row's rank is its place in its partition and the sizes of those before:
    one number per partition comes to the driver.
    """
    rows = frame.repartitionByRange(*order).sortWithinPartitions(*order)
    numbered = rows.withColumn("_id", F.monotonically_increasing_id()).localCheckpoint()
    partition = F.shiftrightunsigned("_id", _PARTITION_BITS)
    sizes = sorted(tuple(row) for row in numbered.groupBy(partition.alias("p")).count().collect())
    ends = list(accumulate(size for _, size in sizes))
    if not sizes:
        return numbered.withColumnRenamed("_id", "rank"), 0
    starts = [F.lit(value) for (p, size), end in zip(sizes, ends, strict=True) for value in (p, end - size)]
    within = F.col("_id").bitwiseAND(F.lit((1 << _PARTITION_BITS) - 1))
    return numbered.withColumn("rank", F.create_map(*starts)[partition] + within).drop("_id"), ends[-1]

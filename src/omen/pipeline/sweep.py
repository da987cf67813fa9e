"""Sweeps on Spark: each bundle of cells is a job of one task. Works on Spark Connect too.

The table is on the driver's disk, which is where results are appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.pipeline.failures import first_line
from omen.pipeline.session import SparkOptions, is_connect, spark_session
from omen.sweep import runner
from omen.sweep.cells import Cell, CellResult
from omen.sweep.kinds import run_cell
from omen.sweep.runner import Swept, Tell, Workers
from omen.sweep.table import DDL, from_arrow, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sweep(
    cells: Iterable[Cell],
    folder: str | Path,
    engine: str = "spark",
    options: SparkOptions | None = None,
    tell: Tell | None = None,
) -> Swept:
    """A sweep by the engine of this name: spark; local, in this process; none, only what there is comes back."""
    if engine == "none":
        return runner.stored(cells, folder)
    if engine == "local":
        return runner.sweep(cells, folder, tell=tell)
    return runner.sweep(cells, folder, lambda: spark_workers(options or SparkOptions()), tell)


@contextmanager
def spark_workers(options: SparkOptions) -> Iterator[Workers]:
    """As many bundles at once as the cluster has slots."""
    with spark_session(replace(options, shows_stages=False)) as spark:
        yield Workers(lambda bundle: run_on_spark(spark, bundle), slots_of(spark))


def slots_of(spark: SparkSession) -> int:
    """How many tasks can run at once, as far as the driver can know."""
    if is_connect(spark):
        told = spark.conf.get("spark.default.parallelism", None) or spark.conf.get("spark.sql.shuffle.partitions")
        return max(1, min(int(told or 2), 64))
    return max(1, min(int(spark.sparkContext.defaultParallelism), 256))


def run_on_spark(spark: SparkSession, bundle: Sequence[Cell]) -> list[CellResult]:
    """One job of one task. Where the task dies (no memory, a killed worker), its cells are tried one by one."""
    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(_BundleRunner(tuple(cell.to_plain() for cell in bundle)), DDL)
        return from_arrow(rows.toArrow())
    except Exception as error:
        if len(bundle) == 1:
            return [CellResult(bundle[0], {}, {}, 0.0, f"the task died: {first_line(error)}")]
    return [result for cell in bundle for result in run_on_spark(spark, [cell])]


@dataclass(frozen=True)
class _BundleRunner:
    """What a worker does: the numbers that come in are only there to start it."""

    cells: tuple[dict[str, Any], ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                results = [run_cell(Cell.from_plain(plain)) for plain in self.cells]
                yield from to_arrow(results).to_batches()

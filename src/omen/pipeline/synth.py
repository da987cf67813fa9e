"""Synthetic workloads of any size: the generator of `omen.workloads`, called for blocks of nodes by Spark's workers.

Every draw is keyed by (seed, node), so rows do not depend on how nodes are spread over partitions, and are those the
single-machine form makes. Nothing is shuffled: blocks come out in node order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omen.pipeline.folders import write_workload_folder
from omen.pipeline.progress import announce_step
from omen.workloads.specs import Popularity, Sizes
from omen.workloads.synthetic import check_synthesis, generate_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_FROM_ROWS = 5_000_000
"""Expected subscriptions from which `workload synth` starts Spark; below, one machine is done before Spark is there."""

BLOCK_ROWS = 1 << 18  # expected rows of a block: the unit of work, and of what a worker holds
ROWS_SCHEMA = "node bigint not null, topic bigint not null"


@dataclass(frozen=True)
class Synthesis:
    """What `workload synth` was asked for."""

    nodes: int
    topics: int
    popularity: Popularity
    sizes: Sizes
    seed: int = 0

    @property
    def expected_rows(self) -> float:
        """How many subscriptions are to be expected."""
        return self.nodes * mean_size(self.sizes)

    @property
    def is_large(self) -> bool:
        """Whether Spark makes it faster than one machine does."""
        return self.expected_rows >= SPARK_FROM_ROWS

    def check(self) -> None:
        """Refuse what cannot be drawn."""
        check_synthesis(self.nodes, self.topics, self.sizes, self.seed)


def mean_size(sizes: Sizes) -> float:
    """Topics a node wants, on average."""
    chances = np.diff(sizes.cdf(), prepend=0.0)
    return float(sizes.smallest + (np.arange(chances.size) * chances).sum())


def synthesise_rows(
    spark: SparkSession, synthesis: Synthesis, partitions: int | None = None, block_rows: int = BLOCK_ROWS
) -> DataFrame:
    """(node, topic), sorted, from nodes 0..nodes-1."""
    check_synthesis(synthesis.nodes, synthesis.topics, synthesis.sizes, synthesis.seed)
    block_nodes = max(1, min(synthesis.nodes, int(block_rows / max(mean_size(synthesis.sizes), 1.0))))
    blocks = -(-synthesis.nodes // block_nodes)
    numbers = spark.range(0, blocks, 1, min(partitions or _default_partitions(spark), blocks))
    return numbers.mapInArrow(_BlockGenerator(synthesis, block_nodes), ROWS_SCHEMA)


def synthesise_nodes(spark: SparkSession, synthesis: Synthesis, partitions: int | None = None) -> DataFrame:
    """(node): all nodes, those of size 0 among them."""
    return spark.range(0, synthesis.nodes, 1, partitions or _default_partitions(spark)).withColumnRenamed("id", "node")


def synthesise_workload(spark: SparkSession, synthesis: Synthesis, out: str, info: dict[str, Any]) -> dict[str, int]:
    """Write the workload folder; returns its counts."""
    announce_step("drawing")
    rows, nodes = synthesise_rows(spark, synthesis), synthesise_nodes(spark, synthesis)
    return write_workload_folder(out, rows, nodes, info)


def _default_partitions(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 8)


@dataclass(frozen=True)
class _BlockGenerator:
    """Rows of the blocks whose numbers come in."""

    synthesis: Synthesis
    block_nodes: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        work = self.synthesis
        for batch in batches:
            for block in batch.column(0).to_pylist():
                first = block * self.block_nodes
                last = min(first + self.block_nodes, work.nodes)
                rows = generate_rows(first, last, work.topics, work.popularity, work.sizes, work.seed)
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in rows], ["node", "topic"])

"""RingPT, CyclePT and HararyPT for workloads that do not fit one machine: the same links as `omen.design` builds.

A topic's graph needs nothing but that topic's subscribers, so topics are built wherever they are; what is left to Spark
is to bring them together by topic, and to keep each link once. Each worker calls the algorithm itself on whole topics.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from omen.design import ALGORITHMS, resolve_options
from omen.interests import label_array
from omen.pipeline.engines import require_per_topic
from omen.pipeline.evaluate import Evaluation, evaluate_overlay
from omen.pipeline.folders import write_folder
from omen.pipeline.grouped import TopicChunk, whole_groups
from omen.pipeline.progress import announce_step
from omen.pipeline.reading import read_workload_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def design_per_topic(interests: DataFrame, algorithm: str, options: Mapping[str, Any] | None = None) -> DataFrame:
    """(u, v): the links, each once, u < v; in no order."""
    require_per_topic(algorithm)
    resolved = resolve_options(ALGORITHMS[algorithm], options or {})
    node_type = interests.schema["node"].dataType
    rows = interests.select("topic", F.col("node").alias("u"), F.lit(None).cast(node_type).alias("v"))
    by_topic = rows.repartition("topic").sortWithinPartitions("topic")
    schema = StructType([StructField("u", node_type), StructField("v", node_type)])
    return by_topic.mapInArrow(_Builder(algorithm, dict(resolved)), schema).dropDuplicates()


def design_workload(
    spark: SparkSession, workload: str, algorithm: str, options: Mapping[str, Any], out: str
) -> tuple[Evaluation, float]:
    """Build the overlay of a workload into the folder `out`, and judge it; also the seconds the building took."""
    tables = read_workload_tables(spark, workload)
    announce_step(f"designing with {algorithm}")
    links = design_per_topic(tables.interests, algorithm, options)
    started = time.perf_counter()
    write_folder(links, out, ("u", "v"))
    seconds = time.perf_counter() - started
    return evaluate_overlay(spark, workload, out), seconds


@dataclass(frozen=True)
class _Builder:
    algorithm: str
    options: dict[str, Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_groups(batches, "topic"):
            yield self.build(TopicChunk.from_table(table))

    def build(self, chunk: TopicChunk) -> pa.RecordBatch:
        """The links of these topics, each once. Draws are keyed by label, so vertices bear those of their nodes."""
        labels = label_array(chunk.labels.to_numpy(zero_copy_only=False))
        topics = label_array(chunk.topics.to_numpy(zero_copy_only=False))
        instance = replace(chunk.interests, nodes=labels[chunk.node_codes], topics=topics)
        overlay = ALGORITHMS[self.algorithm].build(instance, **self.options)
        stride = max(len(labels), 1)
        links = np.unique(chunk.node_codes[overlay.u] * stride + chunk.node_codes[overlay.v])
        u, v = np.divmod(links, stride)
        return pa.RecordBatch.from_arrays([chunk.labels.take(pa.array(u)), chunk.labels.take(pa.array(v))], ["u", "v"])

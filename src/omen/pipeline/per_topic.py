"""RingPT, CyclePT and HararyPT for workloads that do not fit one machine: the same links as `omen.design` builds.

A topic's graph needs nothing but that topic's subscribers, so topics are built wherever they are; what is left to Spark
is to bring them together by topic, and to keep each link once. Each worker calls the algorithm itself on whole topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from omen.design import ALGORITHMS, resolve_options
from omen.errors import InvalidInput
from omen.interests import label_array
from omen.pipeline.grouped import TopicChunk, whole_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_TOPIC = ("ring-pt", "cycle-pt", "harary-pt")


def design_per_topic(interests: DataFrame, algorithm: str, options: Mapping[str, Any] | None = None) -> DataFrame:
    """(u, v): the links, each once, u < v; in no order."""
    if algorithm not in PER_TOPIC:
        raise InvalidInput(f"{algorithm} is not built on Spark: {', '.join(PER_TOPIC)} are, the rest on one machine")
    resolved = resolve_options(ALGORITHMS[algorithm], options or {})
    node_type = interests.schema["node"].dataType
    rows = interests.select("topic", F.col("node").alias("u"), F.lit(None).cast(node_type).alias("v"))
    by_topic = rows.repartition("topic").sortWithinPartitions("topic")
    schema = StructType([StructField("u", node_type), StructField("v", node_type)])
    return by_topic.mapInArrow(_Builder(algorithm, dict(resolved)), schema).dropDuplicates()


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

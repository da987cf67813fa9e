"""The profile of a workload of any size, equal to that of `omen.workloads.profile`.

Only what the sample bounds comes to the driver: its nodes' topics go out with the code, and each worker compares them
with its own share of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from omen.interests import Labels, label_array
from omen.pipeline.grouped import group_codes, whole_groups
from omen.pipeline.progress import announce_step
from omen.workloads.profile import (
    CLOSEST,
    LARGEST,
    SAMPLE,
    Distribution,
    Profile,
    Sample,
    check_profile_options,
    lowest_keys,
    measure_likeness,
    measure_overlaps,
    random_keys,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OVERLAPS_SCHEMA = "place int not null, sharing bigint not null, best array<double> not null"


def profile_tables(
    interests: DataFrame,
    nodes: DataFrame,
    closest: int = CLOSEST,
    sample: int = SAMPLE,
    seed: int = 0,
    largest: int = LARGEST,
) -> Profile:
    """The profile of (node, topic), each pair once, over all `nodes`."""
    check_profile_options(closest, sample)
    announce_step("counting")
    sizes = count_by(nodes, interests, "node")
    popularity = interests.groupBy("topic").agg(F.count("*").alias("count"))
    size_distribution, popularity_distribution = _histogram(sizes), _histogram(popularity)
    most_wanted = popularity.orderBy(F.desc("count"), "topic").limit(largest).collect()
    taken = draw_sample(interests, nodes, sample, seed)
    announce_step("comparing interests")
    best, sharing = overlaps_of(interests, taken, closest)
    return Profile(
        size_distribution,
        popularity_distribution,
        tuple((row["topic"], row["count"]) for row in most_wanted),
        measure_likeness(size_distribution, popularity_distribution, best, sharing),
    )


def count_by(all_keys: DataFrame, rows: DataFrame, key: str) -> DataFrame:
    """(key, count): rows of each key, 0 for those that have none."""
    marked = all_keys.select(key, F.lit(0).alias("one")).unionByName(rows.select(key, F.lit(1).alias("one")))
    return marked.groupBy(key).agg(F.sum("one").alias("count"))


def draw_sample(interests: DataFrame, nodes: DataFrame, count: int, seed: int) -> Sample:
    """The nodes of the lowest keys, and their topics."""
    schema = f"key bigint not null, node {_type_name(nodes, 'node')}"
    candidates = nodes.select("node").mapInArrow(_LowestKeys(count, seed), schema)
    chosen = candidates.orderBy("key", "node").limit(count).select("node")
    labels = _column(chosen.toArrow(), "node")
    known = nodes.sparkSession.createDataFrame([(label,) for label in labels.tolist()], chosen.schema)
    table = interests.join(known, "node").select("node", "topic").toArrow()
    labels = np.sort(labels)
    topics, codes = np.unique(_column(table, "topic"), return_inverse=True)
    owners = np.searchsorted(labels, _column(table, "node"))
    order = np.lexsort((codes, owners))
    offsets = np.searchsorted(owners[order], np.arange(labels.size + 1)).astype(np.int64)
    return Sample(labels, topics, offsets, codes[order].astype(np.int32))


def overlaps_of(
    interests: DataFrame, sample: Sample, closest: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(highest overlaps, sharing) of each sampled node with all others."""
    by_node = interests.select("node", "topic").repartition("node").sortWithinPartitions("node")
    found = by_node.mapInArrow(_Overlaps(sample, closest), OVERLAPS_SCHEMA)
    merged: Column = F.slice(F.sort_array(F.flatten(F.collect_list("best")), asc=False), 1, closest)
    rows = found.groupBy("place").agg(merged.alias("best"), F.sum("sharing").alias("sharing")).collect()
    best, sharing = np.zeros((sample.nodes.size, closest)), np.zeros(sample.nodes.size, dtype=np.int64)
    for row in rows:
        best[row.place], sharing[row.place] = row.best, row.sharing
    return best, sharing


def _histogram(counted: DataFrame) -> Distribution:
    rows = counted.groupBy("count").agg(F.count("*").alias("times")).orderBy("count").collect()
    return Distribution(tuple((row["count"], row["times"]) for row in rows))


def _type_name(frame: DataFrame, column: str) -> str:
    return frame.schema[column].dataType.simpleString()


def _column(table: pa.Table, name: str) -> Labels:
    return label_array(table.column(name).to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class _LowestKeys:
    count: int
    seed: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            labels = label_array(batch.column(0).to_numpy(zero_copy_only=False))
            places = lowest_keys(labels, self.count, self.seed)
            keys = random_keys(labels[places], self.seed) ^ np.uint64(1 << 63)  # as signed numbers in the same order
            yield pa.RecordBatch.from_arrays(
                [pa.array(keys.view(np.int64)), batch.column(0).take(places)], ["key", "node"]
            )


@dataclass(frozen=True)
class _Overlaps:
    sample: Sample
    closest: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        topics = pa.array(self.sample.topics.tolist())
        best = np.zeros((self.sample.nodes.size, self.closest))
        sharing = np.zeros(self.sample.nodes.size, dtype=np.int64)
        for table in whole_groups(batches, "node"):
            nodes, rows = group_codes(table, "node")
            wanted = pc.index_in(table.column("topic"), topics).combine_chunks()
            held = wanted.is_valid().to_numpy(zero_copy_only=False)
            codes = wanted.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
            labels = label_array(nodes.to_numpy(zero_copy_only=False))
            sizes = np.bincount(rows, minlength=labels.size).astype(np.int64)
            found, shares = measure_overlaps(self.sample, labels, sizes, rows[held], codes, self.closest)
            best = -np.sort(-np.hstack([best, found]), axis=1)[:, : self.closest]
            sharing += shares
        columns: dict[str, Any] = {
            "place": pa.array(np.arange(sharing.size), pa.int32()),
            "sharing": sharing,
            "best": pa.array(best.tolist(), pa.list_(pa.float64())),
        }
        if sharing.size:
            yield pa.RecordBatch.from_pydict(columns)

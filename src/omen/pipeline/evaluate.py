"""An overlay measured on Spark, topic by topic and node by node; the judge itself is `omen.quality`.

For each link the topics its two ends share are the intersection of their topic lists; links and subscriptions then meet
by topic, and each worker puts whole topics, side by side, before the same judge a single machine asks. Nothing is
broadcast, and a topic alone has to fit into a worker. Costs two joins of the links with the topic lists and one sort of
subscriptions and shared links by topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from omen.errors import InvalidInput
from omen.pipeline.folders import write_folder
from omen.pipeline.grouped import TopicChunk, whole_groups
from omen.pipeline.progress import announce_step
from omen.pipeline.reading import read_links, read_workload_tables
from omen.quality import Check, FailingTopic, topic_components, topic_connectivity, topic_diameters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

EXACT_UP_TO = 10_000
"""Subscribers up to which a diameter is exact; above, it is bounded by three searches."""

MESH_DEGREE = 6
"""As `quality.per_topic_mesh_links` has it."""
LISTED_TOPICS = 10_000
"""Failing topics brought to the driver; all are counted, and all stand in the table of topics."""


@dataclass(frozen=True)
class Evaluation:
    """What an overlay is worth, over all topics and nodes.

    Diameters are over the connected topics, as (low, high) bounds, equal where every topic was measured exactly.
    """

    k: int
    holds: bool
    topic_connected: bool
    nodes: int
    topics: int
    subscriptions: int
    edges: int
    avg_degree: float
    max_degree: int
    degree_histogram: tuple[tuple[int, int], ...]
    failing_topics: int
    failing: tuple[FailingTopic, ...]  # the first of them in label order
    mean_diameter: tuple[float, float] | None = None
    max_diameter: tuple[int, int] | None = None
    bounded_topics: int = 0  # whose diameter was bounded, not measured
    mesh_links: int = 0  # that a mesh of MESH_DEGREE for each topic would have

    @property
    def verdict(self) -> Check:
        """As the judge of one machine gives it, with the first failing topics."""
        return Check(self.k, self.holds, self.topic_connected, self.topics, self.failing)

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON. The first failing topics are listed, all are counted."""
        result: dict[str, Any] = {
            "holds": self.holds,
            "k": self.k,
            "topic_connected": self.topic_connected,
            "nodes": self.nodes,
            "topics": self.topics,
            "edges": self.edges,
            "avg_degree": self.avg_degree,
            "max_degree": self.max_degree,
            "degree_histogram": self.degree_histogram,
            "per_topic_mesh_links": self.mesh_links,
            "broken_topics": self.failing_topics,
            "broken": [asdict(topic) for topic in self.failing],
        }
        if self.mean_diameter is not None and self.max_diameter is not None:
            result |= {"mean_diameter": self.mean_diameter[1], "max_diameter": self.max_diameter[1]}
            if self.bounded_topics:
                result |= {
                    "mean_diameter_low": self.mean_diameter[0],
                    "max_diameter_low": self.max_diameter[0],
                    "bounded_topics": self.bounded_topics,
                }
        return result


def distinct_links(overlay: DataFrame) -> DataFrame:
    """Each link once, u < v."""
    links = overlay.select(F.least("u", "v").alias("u"), F.greatest("u", "v").alias("v"))
    return links.repartition("u").dropDuplicates()  # partitioned as the join by u wants it: one shuffle serves both


def shared_links(interests: DataFrame, links: DataFrame) -> DataFrame:
    """(topic, u, v): each link once for each topic that both its ends want."""
    lists = interests.groupBy("node").agg(F.collect_set("topic").alias("topics"))
    of_u = lists.select(F.col("node").alias("u"), F.col("topics").alias("topics_of_u"))
    of_v = lists.select(F.col("node").alias("v"), F.col("topics").alias("topics_of_v"))
    joined = links.join(of_u, "u").join(of_v, "v")
    return joined.select(F.explode(F.array_intersect("topics_of_u", "topics_of_v")).alias("topic"), "u", "v")


def evaluate_topics(
    interests: DataFrame, links: DataFrame, k: int = 1, diameters: bool = False, exact_up_to: int = EXACT_UP_TO
) -> DataFrame:
    """A row per topic: topic, subscribers, links, components, connectivity (counted up to k), on request its diameter.

    The diameter lies in diameter_low..diameter_high, equal up to `exact_up_to` subscribers; both are -1 where the topic
    is split.
    """
    node_type = interests.schema["node"].dataType
    rows = interests.select("topic", F.col("node").alias("u"), F.lit(None).cast(node_type).alias("v"))
    rows = rows.unionByName(shared_links(interests, links)).repartition("topic").sortWithinPartitions("topic")
    judge = partial(_judge_batches, k=k, exact_up_to=exact_up_to if diameters else None)
    return rows.mapInArrow(judge, topics_schema(interests.schema["topic"].dataType, diameters))


def evaluate_degrees(nodes: DataFrame, links: DataFrame) -> DataFrame:
    """A row per node: node, degree, and known: whether it is among `nodes` at all."""
    zero, one, known = F.lit(0).alias("degree"), F.lit(1).alias("degree"), F.lit(True).alias("known")
    ends = links.select(F.explode(F.array("u", "v")).alias("node"), one, F.lit(False).alias("known"))
    rows = nodes.select("node", zero, known).unionByName(ends)
    return rows.groupBy("node").agg(F.sum("degree").alias("degree"), F.max("known").alias("known"))


def topics_schema(topic_type: DataType, diameters: bool) -> StructType:
    """Columns of the table of topics."""
    fields = [
        StructField("topic", topic_type),
        StructField("subscribers", LongType()),
        StructField("links", LongType()),
    ]
    fields += [StructField("components", IntegerType()), StructField("connectivity", IntegerType())]
    if diameters:
        fields += [StructField("diameter_low", IntegerType()), StructField("diameter_high", IntegerType())]
    return StructType(fields)


MESH_LINKS = f"least(bigint(subscribers) * (subscribers - 1) div 2, ({MESH_DEGREE} * bigint(subscribers) + 1) div 2)"


def summarise(topics: DataFrame, degrees: DataFrame, k: int = 1) -> Evaluation:
    """The totals. Tables that took long to make are best written or cached first: both are read twice."""
    required = F.least(F.lit(k), F.greatest(F.col("subscribers") - 1, F.lit(0)))
    failing = F.col("connectivity") < required
    wanted = [
        F.count("*").alias("topics"),
        F.coalesce(F.sum("subscribers"), F.lit(0)).alias("subscriptions"),
        F.count_if(failing).alias("failing_topics"),
        F.count_if(F.col("components") > 1).alias("split"),
        F.coalesce(F.sum(F.expr(MESH_LINKS)), F.lit(0)).alias("mesh_links"),
    ]
    if "diameter_low" in topics.columns:
        wanted += _diameter_totals()
    totals = topics.agg(*wanted).first()
    histogram = [tuple(row) for row in degrees.groupBy("degree").count().orderBy("degree").collect()]
    counts = np.array(histogram, dtype=np.int64).reshape(-1, 2)
    nodes, ends = int(counts[:, 1].sum()), int((counts[:, 0] * counts[:, 1]).sum())
    columns = ("topic", "subscribers", "components", "connectivity")
    listed = topics.filter(failing).select(*columns).orderBy("topic").limit(LISTED_TOPICS).collect()
    assert totals is not None
    return Evaluation(
        k=k,
        holds=totals.failing_topics == 0,
        topic_connected=totals.split == 0,
        nodes=nodes,
        topics=totals.topics,
        subscriptions=totals.subscriptions,
        edges=ends // 2,
        avg_degree=ends / nodes if nodes else 0.0,
        max_degree=int(counts[:, 0].max(initial=0)),
        degree_histogram=tuple((int(degree), int(count)) for degree, count in histogram),
        failing_topics=totals.failing_topics,
        mesh_links=int(totals.mesh_links),
        failing=tuple(FailingTopic(*row) for row in listed),
        **(_read_diameters(totals) if "low" in totals else {}),
    )


def evaluate_overlay(
    spark: SparkSession,
    workload: str,
    overlay: str,
    k: int = 1,
    diameters: bool = False,
    out: str | None = None,
    exact_up_to: int = EXACT_UP_TO,
) -> Evaluation:
    """Judge the overlay of one path by the workload of another; with `out` the tables topics and degrees go there."""
    announce_step("reading")
    tables = read_workload_tables(spark, workload)
    links = distinct_links(read_links(spark, overlay, tables.nodes.schema["node"].dataType))
    announce_step("measuring degrees")
    degrees = evaluate_degrees(tables.nodes, links).persist()
    require_known_nodes(degrees, overlay)
    announce_step("judging topics")
    topics = evaluate_topics(tables.interests, links, k, diameters, exact_up_to).persist()
    try:
        if out is not None:
            write_folder(topics, f"{out}/topics", ["topic"])
            write_folder(degrees.drop("known"), f"{out}/degrees", ["node"])
        return summarise(topics, degrees, k)
    finally:
        topics.unpersist()
        degrees.unpersist()


def require_known_nodes(degrees: DataFrame, where: str) -> None:
    """Refuse an overlay that names a node outside the workload."""
    unknown = degrees.filter("not known").select("node").orderBy("node").head(1)
    if unknown:
        raise InvalidInput(f"{where}: a link names node {unknown[0].node!r}, which is not among the workload's nodes")


def _diameter_totals() -> list[Any]:
    low, high = F.col("diameter_low"), F.col("diameter_high")
    connected = (low >= 0) & (F.col("subscribers") > 1)  # in a topic of one nothing is apart
    return [
        F.avg(F.when(connected, low)).alias("low"),
        F.avg(F.when(connected, high)).alias("high"),
        F.max(F.when(connected, low)).alias("largest_low"),
        F.max(F.when(connected, high)).alias("largest_high"),
        F.count_if(low < high).alias("bounded"),
    ]


def _read_diameters(totals: Any) -> dict[str, Any]:
    return {
        "mean_diameter": (totals.low or 0.0, totals.high or 0.0),
        "max_diameter": (totals.largest_low or 0, totals.largest_high or 0),
        "bounded_topics": totals.bounded,
    }


def _judge_batches(
    batches: Iterable[pa.RecordBatch], k: int, exact_up_to: int | None, at_least: int | None = None
) -> Iterator[pa.RecordBatch]:
    for table in whole_groups(batches, "topic", **({"at_least": at_least} if at_least else {})):
        yield judge_chunk(TopicChunk.from_table(table), k, exact_up_to)


def judge_chunk(chunk: TopicChunk, k: int = 1, exact_up_to: int | None = None) -> pa.RecordBatch:
    """The rows of `evaluate_topics` for these topics, with diameters where `exact_up_to` is given."""
    interests, overlay = chunk.interests, chunk.overlay
    subscribers = np.diff(interests.topic_offsets)
    components = topic_components(interests, overlay)
    if k == 1:
        connectivity = (np.minimum(1, subscribers - 1) * (components == 1)).astype(np.int32)
    else:
        connectivity = topic_connectivity(interests, overlay, k)
    columns = {
        "topic": chunk.topics,
        "subscribers": subscribers,
        "links": np.bincount(interests.node_topics[overlay.u], minlength=interests.topic_count).astype(np.int64),
        "components": components,
        "connectivity": connectivity,
    }
    if exact_up_to is not None:
        columns["diameter_low"], columns["diameter_high"] = _bound_diameters(chunk, components, exact_up_to)
    return pa.RecordBatch.from_pydict(columns)


def _bound_diameters(
    chunk: TopicChunk, components: npt.NDArray[np.int32], exact_up_to: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    from omen.kernels.sweeps import bound_diameters

    subscribers = np.diff(chunk.interests.topic_offsets)
    low = np.full(components.size, -1, dtype=np.int32)
    high = low.copy()
    exact = (components == 1) & (subscribers <= exact_up_to)
    if exact.any():
        low[exact] = high[exact] = topic_diameters(*chunk.only(exact))
    rest = (components == 1) & ~exact
    if rest.any():
        interests, overlay = chunk.only(rest)
        lowest, highest = np.empty((2, interests.topic_count), dtype=np.int32)
        bound_diameters(interests.topic_offsets, *overlay.adjacency, lowest, highest)
        low[rest], high[rest] = lowest, highest
    return low, high

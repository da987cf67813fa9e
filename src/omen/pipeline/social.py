"""Workloads from social graphs: who follows whom is who subscribes to whom.

OMen (Chen, Vitenberg, Jacobsen), 6.1: from a few random users the graph is walked breadth first until enough users are
reached; the sample holds all edges among them. Edges are walked in both directions. Where the walk runs dry another
user is drawn; where that one leads nowhere, two, then four, so that a graph in crumbs takes few rounds. Of the last
level, which would overshoot, users are taken in random order.

Everything random is an order by a hash of (seed, user), so a sample depends on neither partitions nor machine. A level
costs one pass over the edges, with the users reached so far broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from omen.errors import InvalidInput
from omen.pipeline.degrees import ccdf_of, sum_degrees
from omen.pipeline.folders import write_workload_folder
from omen.pipeline.ingest import Ingested, ingest_edges, require_few_rejects
from omen.pipeline.progress import announce_step
from omen.workloads.social import CUT, DRAW, SEEDS, Sampled, SocialRequest, describe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sample_social(spark: SparkSession, asked: SocialRequest, out: str) -> Sampled:
    """Write a workload sampled from an edge list."""
    asked.check()
    announce_step("reading edges")
    read = ingest_edges(spark, asked.edges, asked.labels, not asked.directed, asked.follower_second)
    try:
        require_few_rejects(read.counts, asked.max_rejected, asked.edges)
        return _sample(read, asked, out)
    finally:
        read.release()


def _sample(read: Ingested, asked: SocialRequest, out: str) -> Sampled:
    announce_step("counting degrees")
    graph = read.pairs.persist()  # walked level by level
    degrees = sum_degrees(graph, asked.directed).persist()
    user_count = degrees.count()
    read.release()
    announce_step("sampling")
    users = sample_users(graph, asked.nodes, asked.seed, asked.seeds, degrees, asked.subscribers_only, asked.edges)
    edges = edges_among(graph, users).persist()
    own = sum_degrees(edges, asked.directed, users)
    ccdfs = ccdf_of(degrees, "original", asked.directed) + ccdf_of(own, "sample", asked.directed)
    rows = (read.counts.rows, read.counts.duplicates, read.counts.kept)
    info = describe(asked, read.header, rows, read.counts.rejected, user_count, ccdfs)
    announce_step("writing")
    pairs = subscriptions(edges, asked.directed)
    counts = write_workload_folder(
        out,
        pairs.repartitionByRange("node", "topic").sortWithinPartitions("node", "topic"),
        users.select(F.col("user").alias("node")).repartitionByRange("node").sortWithinPartitions("node"),
        info,
        read.rejected.repartitionByRange("source_file", "row").sortWithinPartitions("source_file", "row")
        if read.counts.rejects
        else None,
    )
    for frame in (degrees, edges, graph):
        frame.unpersist()
    return Sampled(info, counts, ccdfs)


def sample_users(
    edges: DataFrame,
    wanted: int,
    seed: int,
    seeds: int = SEEDS,
    degrees: DataFrame | None = None,
    subscribers_only: bool = False,
    where: str = "the graph",
) -> DataFrame:
    """user: `wanted` of them, reached breadth first along (source, target) either way.

    With `subscribers_only` neither walks through nor draws users that follow no one. `degrees`, as `sum_degrees` gives
    them, saves a pass.
    """
    if degrees is None:
        degrees = sum_degrees(edges, directed=True)
    everyone = degrees.filter(F.col("followees") > 0) if subscribers_only else degrees
    everyone = everyone.select("user")
    available = everyone.count()
    if available < wanted:
        kind = "users that follow another" if subscribers_only else "users"
        raise InvalidInput(f"{where}: --nodes {wanted} is more than its {available} {kind}")
    if subscribers_only:
        edges = edges.join(everyone.withColumnRenamed("user", "target"), "target", "left_semi").persist()
    reached = _draw(everyone, min(seeds, wanted), seed)
    total, drawn = reached.count(), 1
    while total < wanted:
        found = _next_level(edges, reached).localCheckpoint()
        size = found.count()
        if size == 0:
            drawn = min(drawn, wanted - total)
            found = _draw(everyone.join(reached, "user", "left_anti"), drawn, seed)
            size, drawn = drawn, 2 * drawn
        elif total + size > wanted:
            found = _first(found, wanted - total, seed, CUT)
            size = wanted - total
        else:
            drawn = 1
        before, last = (
            reached.select("user", F.lit(False).alias("last")),
            found.select("user", F.lit(True).alias("last")),
        )
        reached = before.unionByName(last).coalesce(1).localCheckpoint()  # broadcast next: one part is enough
        total += size
    if subscribers_only:
        edges.unpersist()
    return reached.select("user")


def edges_among(edges: DataFrame, users: DataFrame) -> DataFrame:
    """All edges whose two ends are among `users`."""
    source, target = (users.select(F.col("user").alias(end)) for end in ("source", "target"))
    kept = edges.join(F.broadcast(source), "source", "left_semi").join(F.broadcast(target), "target", "left_semi")
    return kept.select("source", "target")


def subscriptions(edges: DataFrame, directed: bool) -> DataFrame:
    """node, topic: a follower subscribes to whom it follows; friends to each other."""
    pairs = edges.select(F.col("source").alias("node"), F.col("target").alias("topic"))
    if directed:
        return pairs
    return pairs.unionByName(edges.select(F.col("target").alias("node"), F.col("source").alias("topic")))


def keyed(seed: int, purpose: int, label: str) -> Column:
    """A random number for each label, the same wherever it is computed."""
    signed = (seed + 2**63) % 2**64 - 2**63
    return F.xxhash64(F.lit(purpose).cast("long"), F.lit(signed).cast("long"), F.col(label))


def _next_level(edges: DataFrame, reached: DataFrame) -> DataFrame:
    """The users beside those reached last that have not been reached."""
    one = F.broadcast(reached.select(F.col("user").alias("source"), F.col("last").alias("from_source")))
    other = F.broadcast(reached.select(F.col("user").alias("target"), F.col("last").alias("from_target")))
    both = edges.join(one, "source", "left").join(other, "target", "left")
    forward = F.when(F.col("from_source") & F.col("from_target").isNull(), F.col("target"))
    backward = F.when(F.col("from_target") & F.col("from_source").isNull(), F.col("source"))
    return both.select(F.coalesce(forward, backward).alias("user")).filter("user is not null").distinct()


def _draw(users: DataFrame, how_many: int, seed: int) -> DataFrame:
    return _first(users, how_many, seed, DRAW).withColumn("last", F.lit(True))


def _first(users: DataFrame, how_many: int, seed: int, purpose: int) -> DataFrame:
    order = users.select("user").orderBy(keyed(seed, purpose, "user"), "user")
    return order.limit(how_many).localCheckpoint()

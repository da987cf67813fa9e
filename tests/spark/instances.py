"""Small random instances, as nouns and as the tables Spark reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from omen.interests import Interests
from omen.overlay import Overlay

Tables = tuple[DataFrame, DataFrame, DataFrame]


def random_instance(seed: int, nodes: int = 60, topics: int = 12, links: int = 150, text: bool = False) -> Any:
    """(interests, overlay): topics of all sizes, some nodes without topics, links with and without shared topics."""
    rng = np.random.default_rng(seed)
    labels: list[Any] = [f"n{label}" for label in range(nodes)] if text else [label * 7 - 100 for label in range(nodes)]
    names: list[Any] = [f"t{label}é" for label in range(topics)] if text else list(range(topics))
    chance = rng.random(topics) ** 2
    pairs = [(node, name) for node in labels[3:] for name, p in zip(names, chance, strict=True) if rng.random() < p]
    interests = Interests.from_pairs(pairs, nodes=labels)
    ends = rng.integers(0, nodes, size=(links, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return interests, Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


def as_tables(spark: SparkSession, interests: Interests, overlay: Overlay) -> Tables:
    """(interests, nodes, overlay)"""
    kind = "string" if interests.nodes.dtype == object else "bigint"
    topic_kind = "string" if interests.topics.dtype == object else "bigint"
    return (
        spark.createDataFrame(list(interests.pairs()), f"node {kind}, topic {topic_kind}"),
        spark.createDataFrame([(label,) for label in interests.nodes.tolist()], f"node {kind}"),
        spark.createDataFrame(overlay.links(), f"u {kind}, v {kind}"),
    )

"""How many follow and are followed: degrees of a social graph of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from omen.workloads.degrees import Ccdf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sum_degrees(edges: DataFrame, directed: bool, users: DataFrame | None = None) -> DataFrame:
    """user, followees, followers; both are the number of friends where the graph is undirected.

    Users are those with an edge, or all of `users`.
    """
    zero, one = F.lit(0).cast("long"), F.lit(1).cast("long")
    forth = edges.select(F.col("source").alias("user"), one.alias("followees"), zero.alias("followers"))
    back = edges.select(F.col("target").alias("user"), zero.alias("followees"), one.alias("followers"))
    rows = forth.unionByName(back)
    if users is not None:
        rows = rows.unionByName(users.select("user", zero.alias("followees"), zero.alias("followers")))
    summed = rows.groupBy("user").agg(F.sum("followees").alias("followees"), F.sum("followers").alias("followers"))
    if directed:
        return summed
    friends = F.col("followees") + F.col("followers")
    return summed.select("user", friends.alias("followees"), friends.alias("followers"))


def ccdf_of(degrees: DataFrame, graph: str, directed: bool) -> list[Ccdf]:
    """The distributions of degrees, one a direction."""
    kinds = {"followees": "followees", "followers": "followers"} if directed else {"friends": "followees"}
    found = []
    for count_of, column in kinds.items():
        rows = degrees.groupBy(column).count().collect()  # as long as there are different degrees
        table = np.array(sorted((row[0], row[1]) for row in rows), dtype=np.int64).reshape(-1, 2)
        found.append(Ccdf(graph, count_of, table[:, 0], table[:, 1]))
    return found

"""How many follow and are followed: degrees of a social graph, and how alike two such graphs are (OMen, Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Ccdf:
    """The users of a graph by degree: `fraction` of them have `degree` or more."""

    graph: str  # original or sample
    count_of: str  # followees, followers, friends
    degree: npt.NDArray[np.int64]
    users: npt.NDArray[np.int64]

    @property
    def fraction(self) -> npt.NDArray[np.float64]:
        more = np.cumsum(self.users[::-1])[::-1]
        return more / more[0] if more.size else np.empty(0)

    @property
    def mean(self) -> float:
        return float((self.degree * self.users).sum() / self.users.sum())

    def at(self, degrees: npt.NDArray[np.float64], scale: float = 1.0) -> npt.NDArray[np.float64]:
        """The fraction of users whose degree, divided by `scale`, is at least each of `degrees`."""
        places = np.searchsorted(self.degree / scale, degrees, side="left")
        return np.append(self.fraction, 0.0)[places]


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


def distance(ccdfs: Sequence[Ccdf]) -> dict[str, dict[str, float]]:
    """How far sample and original are apart: the largest gap between their curves (Kolmogorov and Smirnov).

    `degree`: as they are; a sample has fewer users to follow, so its degrees are smaller. `shape`: each degree divided
    by the mean of its graph, which tells whether the form of the distribution was kept.
    """
    gaps: dict[str, dict[str, float]] = {}
    for count_of in dict.fromkeys(ccdf.count_of for ccdf in ccdfs):
        original, sample = (
            next(ccdf for ccdf in ccdfs if (ccdf.graph, ccdf.count_of) == (graph, count_of))
            for graph in ("original", "sample")
        )
        gaps[count_of] = {
            "degree": _largest_gap(original, sample, 1.0, 1.0),
            "shape": _largest_gap(original, sample, original.mean or 1.0, sample.mean or 1.0),
        }
    return gaps


def _largest_gap(one: Ccdf, other: Ccdf, scale: float, other_scale: float) -> float:
    where = np.union1d(one.degree / scale, other.degree / other_scale)
    return float(np.abs(one.at(where, scale) - other.at(where, other_scale)).max(initial=0.0))

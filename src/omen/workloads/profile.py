"""What a workload looks like: how much nodes want, how popular topics are, how alike the nodes' interests are.

The measures of likeness decide what sharing links between topics can save: the pairs of nodes that share a topic (what
Chen, Vitenberg and Jacobsen call correlation), and SpiderCast's top-d-intersection. Both are taken over a sample of the
nodes, drawn by key, so that a workload has the same profile wherever it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Interests, Label, Labels, Offsets, group, label_keys
from omen.kernels.closeness import highest_overlaps
from omen.kernels.counter_random import mix_array

CLOSEST = 20  # SpiderCast's tdi(20)
SAMPLE = 1000
LARGEST = 10

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """How often each value occurs, ascending; the summary is derived from it."""

    histogram: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Distribution:
        found, counts = np.unique(values, return_counts=True)
        return cls(tuple(zip(found.tolist(), counts.tolist(), strict=True)))

    @property
    def _columns(self) -> tuple[Integers, Integers]:
        table = np.array(self.histogram, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.histogram)

    @property
    def total(self) -> int:
        return sum(value * count for value, count in self.histogram)

    @property
    def squares(self) -> int:
        return sum(value * value * count for value, count in self.histogram)

    def ccdf(self) -> tuple[tuple[int, float], ...]:
        """(x, share of values that are x or more), for every x that occurs."""
        values, counts = self._columns
        tails = np.cumsum(counts[::-1])[::-1] / max(self.count, 1)
        return tuple(zip(values.tolist(), tails.tolist(), strict=True))

    def quantile(self, share: float) -> int:
        """The smallest value that at least this share of all values does not exceed; 0 where there are none."""
        values, counts = self._columns
        if not values.size:
            return 0
        return int(values[np.searchsorted(np.cumsum(counts), share * self.count)])

    def summary(self) -> dict[str, float]:
        """Minimum, quantiles, mean, maximum."""
        values, _ = self._columns
        return {
            "minimum": int(values.min(initial=0)) if not values.size else int(values[0]),
            "median": self.quantile(0.5),
            "mean": self.total / max(self.count, 1),
            "p99": self.quantile(0.99),
            "maximum": int(values[-1]) if values.size else 0,
        }


@dataclass(frozen=True)
class Likeness:
    """How alike the interests of nodes are.

    `mean_shared`: topics two different nodes have in common, on average over all pairs. `lift`: that number over what
    it would be had each node drawn as many topics uniformly: 1 where all are equally popular and drawn independently.
    The rest is over `sampled` nodes: `sharing_pairs`, the share of other nodes with which a node has a topic in common;
    `tdi`, the mean intersection with its d closest nodes in percent of the smaller list, and the standard error of that
    mean (0 where all nodes were sampled).
    """

    mean_shared: float
    lift: float
    sampled: int
    sharing_pairs: float
    closest: int
    tdi: float
    tdi_error: float


@dataclass(frozen=True)
class Profile:
    """What `workload profile` says. Popularity counts topics with subscribers; a node without topics has size 0."""

    sizes: Distribution
    popularity: Distribution
    largest_topics: tuple[tuple[Label, int], ...]
    likeness: Likeness

    @property
    def nodes(self) -> int:
        return self.sizes.count

    @property
    def topics(self) -> int:
        return self.popularity.count

    @property
    def subscriptions(self) -> int:
        return self.sizes.total

    @property
    def nodes_without_topics(self) -> int:
        return dict(self.sizes.histogram).get(0, 0)

    def distributions(self) -> dict[str, Sequence[Any]]:
        """Both distributions as columns of one table: what, value, how many, and the share of as many or more."""
        rows = [
            (what, value, count, share)
            for what, distribution in (("sizes", self.sizes), ("popularity", self.popularity))
            for (value, count), (_, share) in zip(distribution.histogram, distribution.ccdf(), strict=True)
        ]
        names = ("distribution", "value", "count", "share_at_least")
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return dict(zip(names, columns, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        return {
            "nodes": self.nodes,
            "topics": self.topics,
            "subscriptions": self.subscriptions,
            "nodes_without_topics": self.nodes_without_topics,
            "sizes": self.sizes.summary(),
            "popularity": self.popularity.summary(),
            "likeness": dict(vars(self.likeness)),
            "largest_topics": [{"topic": topic, "subscribers": count} for topic, count in self.largest_topics],
            "sizes_ccdf": self.sizes.ccdf(),
            "popularity_ccdf": self.popularity.ccdf(),
        }


@dataclass(frozen=True, eq=False)
class Sample:
    """The sampled nodes: labels ascending, and their topics as compressed rows of codes into `topics`."""

    nodes: Labels
    topics: Labels
    offsets: Offsets
    codes: Codes

    @property
    def sizes(self) -> Integers:
        return np.diff(self.offsets)


def profile_workload(
    interests: Interests, closest: int = CLOSEST, sample: int = SAMPLE, seed: int = 0, largest: int = LARGEST
) -> Profile:
    """The profile of a workload in memory. The sample costs the subscribers of its nodes' topics."""
    check_profile_options(closest, sample)
    sizes = Distribution.of(np.diff(interests.node_offsets))
    subscribers = np.diff(interests.topic_offsets)
    popularity = Distribution.of(subscribers)
    chosen = np.sort(lowest_keys(interests.nodes, sample, seed))
    rows = [interests.topics_of(int(node)) for node in chosen]
    offsets = np.zeros(chosen.size + 1, dtype=np.int64)
    np.cumsum([row.size for row in rows], out=offsets[1:])
    codes = np.concatenate([*rows, np.empty(0, np.int32)]).astype(np.int32)
    best = np.zeros((chosen.size, closest))
    sharing = highest_overlaps(
        offsets,
        codes,
        np.diff(offsets),
        chosen.astype(np.int64),
        np.require(interests.topic_offsets, np.int64, ("C", "W")),
        np.require(interests.topic_nodes, np.int32, ("C", "W")),
        np.diff(interests.node_offsets),
        best,
    )
    order = np.argsort(-subscribers, kind="stable")[:largest]
    most_wanted = tuple(zip(interests.topics[order].tolist(), subscribers[order].tolist(), strict=True))
    return Profile(sizes, popularity, most_wanted, measure_likeness(sizes, popularity, best, sharing))


def check_profile_options(closest: int, sample: int) -> None:
    for value, what in ((closest, "closest nodes"), (sample, "sampled nodes")):
        if value < 1:
            raise InvalidInput(f"the number of {what} must be 1 or more, not {value}")


def lowest_keys(nodes: Labels, count: int, seed: int) -> Integers:
    """The places of the `count` nodes whose random keys are lowest: the same nodes however they are split up."""
    keys = random_keys(nodes, seed)
    return np.argsort(keys, kind="stable")[:count]


def random_keys(nodes: Labels, seed: int) -> npt.NDArray[np.uint64]:
    """A random word for each node, by its label alone."""
    return mix_array(np.uint64(seed), label_keys(nodes), np.zeros(nodes.size, dtype=np.uint64))


def measure_overlaps(
    sample: Sample, nodes: Labels, sizes: Integers, node_places: Integers, topic_codes: Integers, closest: int
) -> tuple[npt.NDArray[np.float64], Integers]:
    """(highest overlaps, sharing) of each sampled node with some of the nodes, as `highest_overlaps` gives them.

    The subscriptions are (node_places into `nodes`, topic_codes into the sample's topics), other topics left out.
    """
    topic_offsets, topic_nodes = group(topic_codes, node_places, sample.topics.size)
    places = np.full(sample.nodes.size, -1, dtype=np.int64)
    _, mine, theirs = np.intersect1d(sample.nodes, nodes, assume_unique=True, return_indices=True)
    places[mine] = theirs
    best = np.zeros((sample.nodes.size, closest))
    sharing = highest_overlaps(
        sample.offsets, sample.codes, sample.sizes, places, topic_offsets, topic_nodes, sizes, best
    )
    return best, sharing


def measure_likeness(
    sizes: Distribution, popularity: Distribution, best: npt.NDArray[np.float64], sharing: Integers
) -> Likeness:
    """Puts together what the distributions and the sample say; rows of `best` and `sharing` in label order."""
    nodes, sampled, closest = sizes.count, *best.shape
    pairs = nodes * (nodes - 1)
    shared = popularity.squares - popularity.total
    by_chance = (sizes.total**2 - sizes.squares) / max(popularity.count, 1)
    others = min(closest, nodes - 1)
    means = best.sum(axis=1) / max(others, 1)
    error = means.std(ddof=1) / np.sqrt(sampled) if 1 < sampled < nodes else 0.0
    return Likeness(
        mean_shared=shared / pairs if pairs else 0.0,
        lift=shared / by_chance if by_chance else 0.0,
        sampled=sampled,
        sharing_pairs=float(sharing.sum()) / (sampled * (nodes - 1)) if sampled and nodes > 1 else 0.0,
        closest=closest,
        tdi=float(means.mean()) if sampled else 0.0,
        tdi_error=float(error),
    )

"""Workloads from social graphs on one machine: the same samples that `pipeline.social` draws on Spark.

OMen (Chen, Vitenberg, Jacobsen), 6.1; how a sample is drawn stands there. Here the edges are arrays, and a level of the
walk is one look at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.tables import write_workload
from omen.workloads.degrees import Ccdf, distance
from omen.workloads.edge_files import Edges, LabelKind, read_edges, require_few_bad
from omen.workloads.keyed_hash import keyed_hashes

SEEDS = 5
"""How many users a sample starts from."""
DRAW, CUT = 1, 2
"""What an order is for: drawing seeds, cutting the last level."""


@dataclass(frozen=True)
class SocialRequest:
    """What `workload social` was asked for."""

    edges: str
    directed: bool
    nodes: int
    seed: int = 0
    subscribers_only: bool = False
    follower_second: bool = False
    seeds: int = SEEDS
    labels: LabelKind = "auto"
    max_rejected: int | None = None

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.subscribers_only and not self.directed:
            raise InvalidInput(
                "--subscribers-only has no meaning with --undirected: every user with a friend subscribes"
            )


@dataclass(frozen=True)
class Sampled:
    """What came of it: how it was made, counts, and the distributions of degrees before and after."""

    info: dict[str, Any]
    counts: dict[str, int]
    ccdfs: list[Ccdf]


def sample_locally(asked: SocialRequest, out: str) -> Sampled:
    """Write a workload sampled from an edge list."""
    asked.check()
    graph = read_edges(asked.edges, asked.labels, not asked.directed, asked.follower_second)
    require_few_bad(graph, asked.max_rejected, asked.edges)
    chosen = choose_users(graph, asked)
    inside = chosen[graph.source] & chosen[graph.target]
    source, target = graph.source[inside], graph.target[inside]
    ccdfs = _ccdfs("original", _degrees(graph.source, graph.target, graph.users.size, asked.directed), asked.directed)
    own = _degrees(source, target, graph.users.size, asked.directed)
    ccdfs += _ccdfs("sample", tuple(counts[chosen] for counts in own), asked.directed)
    info = describe(
        asked, graph.header, (graph.rows, graph.duplicates, graph.source.size), graph.reasons, graph.users.size, ccdfs
    )
    if not asked.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    interests = _interests(graph, chosen, source, target)
    write_workload(out, interests, info, graph.rejected)
    return Sampled(info, interests.counts(), ccdfs)


def describe(
    asked: SocialRequest,
    header: str | None,
    rows: tuple[int, int, int],
    rejected: dict[str, int],
    users: int,
    ccdfs: list[Ccdf],
) -> dict[str, Any]:
    """What workload.json says of a sample. `rows`: how many there were, how many were double, how many edges stayed."""
    return {
        "made": "social",
        "edge_list": asked.edges,
        "directed": asked.directed,
        "follower": "second" if asked.follower_second else "first",
        "subscribers_only": asked.subscribers_only,
        "seeds": asked.seeds,
        "seed": asked.seed,
        "rows": rows[0],
        "header": header,
        "duplicates": rows[1],
        "rejected": rejected,
        "graph": {"users": users, "edges": rows[2]},
        "distance": distance(ccdfs),
    }


def choose_users(graph: Edges, asked: SocialRequest) -> npt.NDArray[np.bool_]:
    """Which users are in the sample: reached breadth first, along edges either way."""
    source, target, size = graph.source, graph.target, graph.users.size
    everyone = np.ones(size, dtype=bool)
    if asked.subscribers_only:
        everyone[:] = False
        everyone[source] = True
        walked = everyone[target]
        source, target = source[walked], target[walked]
    available = int(everyone.sum())
    if available < asked.nodes:
        kind = "users that follow another" if asked.subscribers_only else "users"
        raise InvalidInput(f"{asked.edges}: --nodes {asked.nodes} is more than its {available} {kind}")
    draw, cut = (_order(graph, asked.seed, purpose) for purpose in (DRAW, CUT))
    reached, last = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    last[_first(everyone, draw, min(asked.seeds, asked.nodes))] = True
    drawn = 1
    while True:
        reached |= last
        missing = asked.nodes - int(reached.sum())
        if not missing:
            return reached
        found = np.zeros(size, dtype=bool)
        found[target[last[source] & ~reached[target]]] = True
        found[source[last[target] & ~reached[source]]] = True
        if not found.any():
            drawn = min(drawn, missing)
            found[_first(everyone & ~reached, draw, drawn)] = True
            drawn *= 2
        elif int(found.sum()) > missing:
            kept = _first(found, cut, missing)
            found[:] = False
            found[kept] = True
        else:
            drawn = 1
        last = found


def _order(graph: Edges, seed: int, purpose: int) -> npt.NDArray[np.int64]:
    """The place of each user in a random order; users are sorted, so that equal numbers keep their order."""
    signed = (seed + 2**63) % 2**64 - 2**63
    order = np.argsort(keyed_hashes(signed, purpose, graph.users), kind="stable")
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.arange(order.size)
    return places


def _first(among: npt.NDArray[np.bool_], places: npt.NDArray[np.int64], how_many: int) -> npt.NDArray[np.int64]:
    users = np.flatnonzero(among)
    return users[np.argsort(places[users])[:how_many]]


def _degrees(
    source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], users: int, directed: bool
) -> tuple[npt.NDArray[np.int64], ...]:
    """Followees and followers of each user, or friends."""
    followees, followers = np.bincount(source, minlength=users), np.bincount(target, minlength=users)
    return (followees, followers) if directed else (followees + followers,)


def _ccdfs(graph: str, degrees: tuple[npt.NDArray[np.int64], ...], directed: bool) -> list[Ccdf]:
    found = []
    for count_of, counts in zip(("followees", "followers") if directed else ("friends",), degrees, strict=True):
        degree, users = np.unique(counts, return_counts=True)
        found.append(Ccdf(graph, count_of, degree.astype(np.int64), users.astype(np.int64)))
    return found


def _interests(
    graph: Edges, chosen: npt.NDArray[np.bool_], nodes: npt.NDArray[np.int64], topics: npt.NDArray[np.int64]
) -> Interests:
    """A user without topics stays a node; one that nobody follows is no topic."""
    wanted = np.zeros(chosen.size, dtype=bool)
    wanted[topics] = True
    node_code, topic_code = np.cumsum(chosen) - 1, np.cumsum(wanted) - 1
    return Interests.from_codes(graph.users[chosen], graph.users[wanted], node_code[nodes], topic_code[topics])

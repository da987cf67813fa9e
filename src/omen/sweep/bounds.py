"""Cells that ask how few links would do: the exact minimum of small instances, and a bound below that of any."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput, MissingDependency
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import topic_components
from omen.sweep.cells import Cell

MOST_NODES = 60
MOST_CUTS = 200


def measure_optimum(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The fewest links that connect every topic, by mixed-integer programming, next to what the algorithm needs.

    For each topic and each way its subscribers fall in parts, one link fewer than parts runs between them. Ways are
    added as the solution so far leaves topics split, until it leaves none; that solution is then the least.
    """
    from omen.systems import design_overlay

    if interests.node_count > MOST_NODES:
        raise InvalidInput(f"the exact minimum is computed for at most {MOST_NODES} nodes, not {interests.node_count}")
    ours = design_overlay(interests, cell.name, **dict(cell.options)).link_count
    links, rounds, proven = fewest_links(interests, float(cell.setting("limit_s", 60.0)))
    values = {
        "edges": float(ours),
        "proven": float(proven),
        "bound_edges": link_bound(interests),
        "rounds": float(rounds),
    }
    if proven:
        values |= {"least_edges": float(links), "to_least": ours / links if links else 1.0}
    return values, {}


def measure_bound(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """What the algorithm needs next to a bound that no overlay goes below."""
    from omen.systems import design_overlay

    ours = design_overlay(interests, cell.name, **dict(cell.options)).link_count
    bound = link_bound(interests)
    return {"edges": float(ours), "bound_edges": bound, "to_bound": ours / bound if bound else 1.0}, {}


def link_bound(interests: Interests) -> float:
    """No topic-connected overlay has fewer links than this.

    Let M(v) be the most topics that v shares with any other node. A link of u and v that serves w topics counts as
    1 >= (w / M(u) + w / M(v)) / 2, so the links number at least half the sum of d(v, t) / M(v), where d(v, t) counts
    the links of v that serve t. A topic of n subscribers has d(v, t) >= 1 at each of them and 2 (n - 1) in all, and
    what exceeds 1 weighs least at the subscriber with the highest M.
    """
    offsets, wanted = interests.topic_offsets, np.flatnonzero(np.diff(interests.topic_offsets) > 1)
    if not wanted.size:
        return 0.0
    shares = 1.0 / most_shared(interests)[interests.topic_nodes]
    sizes = np.diff(offsets)[wanted]
    sums = np.array([shares[offsets[topic] : offsets[topic + 1]].sum() for topic in wanted])
    least = np.array([shares[offsets[topic] : offsets[topic + 1]].min() for topic in wanted])
    return float((sums + (sizes - 2) * least).sum() / 2)


def most_shared(interests: Interests) -> npt.NDArray[np.float64]:
    """For each node, the most topics it shares with any other; 1 where it shares none."""
    most = np.ones(interests.node_count)
    for node in range(interests.node_count):
        wanted = [interests.subscribers_of(topic) for topic in interests.topics_of(node)]
        if wanted:
            shared = np.bincount(np.concatenate(wanted), minlength=node + 1)
            shared[node] = 0
            most[node] = max(1, int(shared.max()))
    return most


def fewest_links(interests: Interests, limit_s: float) -> tuple[int, int, bool]:
    """(links, rounds of cutting, whether it was found and is proven the least; the links are none where it was not)."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError:
        raise MissingDependency("the exact minimum needs scipy: pip install 'omen-overlay[optimum]'") from None
    u, v = np.triu_indices(interests.node_count, 1)
    useful = _shares_topic(interests)[u, v]
    u, v = u[useful], v[useful]
    cuts = _first_cuts(interests)
    deadline = time.monotonic() + limit_s
    for number in range(1, MOST_CUTS + 1):
        matrix = csr_array(np.array([_links_between(interests, cut, u, v) for cut in cuts], dtype=float))
        found = milp(
            np.ones(u.size),
            constraints=LinearConstraint(matrix, lb=[len(cut.parts) - 1 for cut in cuts]),
            integrality=np.ones(u.size),
            bounds=Bounds(0, 1),
            options={"time_limit": max(deadline - time.monotonic(), 0.01)},
        )
        if found.status != 0:
            return 0, number, False
        chosen = found.x > 0.5
        more = _violated(interests, Overlay.from_codes(interests.nodes, u[chosen], v[chosen]))
        if not more:
            return int(chosen.sum()), number, True
        cuts += more
    return 0, MOST_CUTS, False


def _shares_topic(interests: Interests) -> npt.NDArray[np.bool_]:
    wanted = np.zeros((interests.node_count, interests.topic_count), dtype=np.int32)
    wanted[interests.pair_codes] = 1
    shares: npt.NDArray[np.bool_] = wanted @ wanted.T > 0
    return shares


@dataclass(frozen=True)
class _Cut:
    """A topic's subscribers in parts: the links between parts number at least one fewer than the parts."""

    topic: int
    parts: tuple[frozenset[int], ...]


def _first_cuts(interests: Interests) -> list[_Cut]:
    """Of each topic each subscriber against all others, and all of them apart."""
    cuts = []
    for topic in range(interests.topic_count):
        members = frozenset(interests.subscribers_of(topic).tolist())
        if len(members) > 1:
            cuts += [_Cut(topic, (frozenset((one,)), members - {one})) for one in sorted(members)]
            cuts.append(_Cut(topic, tuple(frozenset((one,)) for one in sorted(members))))
    return cuts


def _links_between(
    interests: Interests, cut: _Cut, u: npt.NDArray[np.int64], v: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    part = np.full(interests.node_count, -1)
    for number, members in enumerate(cut.parts):
        part[list(members)] = number
    between: npt.NDArray[np.float64] = ((part[u] >= 0) & (part[v] >= 0) & (part[u] != part[v])).astype(float)
    return between


def _violated(interests: Interests, overlay: Overlay) -> list[_Cut]:
    """Of each topic that is split its pieces, all apart and each against the others."""
    cuts = []
    for topic in np.flatnonzero(topic_components(interests, overlay) > 1).tolist():
        members = set(interests.subscribers_of(topic).tolist())
        whole, pieces = frozenset(members), []
        while members:
            piece, edge = set(), [members.pop()]
            while edge:
                node = edge.pop()
                piece.add(node)
                near = set(overlay.neighbours_of(node).tolist()) & members
                members -= near
                edge += near
            pieces.append(frozenset(piece))
        cuts.append(_Cut(topic, tuple(pieces)))
        if len(pieces) > 2:
            cuts += [_Cut(topic, (piece, whole - piece)) for piece in pieces]
    return cuts

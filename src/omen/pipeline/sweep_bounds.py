"""Cells that ask how few links would do: the exact minimum of small instances, and a bound below that of any."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput, MissingDependency
from omen.interests import Interests
from omen.overlay import Overlay
from omen.pipeline.sweep_cells import Cell
from omen.quality import topic_components

MOST_NODES = 60
MOST_CUTS = 200


def measure_optimum(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The fewest links that connect every topic, by mixed-integer programming, next to what the algorithm needs.

    Cut formulation: for each topic and each way its subscribers fall in two, a link across. Ways are added as the
    solution so far leaves topics split, until it leaves none; that solution is then the least.
    """
    from omen.runs import design_overlay

    if interests.node_count > MOST_NODES:
        raise InvalidInput(f"the exact minimum is computed for at most {MOST_NODES} nodes, not {interests.node_count}")
    ours = design_overlay(interests, cell.name, **dict(cell.options)).link_count
    links, rounds, proven = fewest_links(interests, float(cell.setting("limit_s", 60.0)))
    values = {
        "edges": float(ours),
        "least_edges": float(links),
        "proven": float(proven),
        "to_least": ours / links if links else 1.0,
        "bound_edges": link_bound(interests),
        "rounds": float(rounds),
    }
    return values, {}


def measure_bound(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """What the algorithm needs next to a bound that no overlay goes below."""
    from omen.runs import design_overlay

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
    """(links, rounds of cutting, whether it is proven the least)."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError:
        raise MissingDependency("the exact minimum needs scipy: pip install 'omen-overlay[optimum]'") from None
    u, v = np.triu_indices(interests.node_count, 1)
    useful = _shares_topic(interests)[u, v]
    u, v = u[useful], v[useful]
    rows = [_across(interests, topic, {int(node)}, u, v) for topic, node in _singletons(interests)]
    for number in range(1, MOST_CUTS + 1):
        matrix = csr_array(np.array(rows, dtype=float))
        found = milp(
            np.ones(u.size),
            constraints=LinearConstraint(matrix, lb=1),
            integrality=np.ones(u.size),
            bounds=Bounds(0, 1),
            options={"time_limit": limit_s},
        )
        if found.x is None:
            raise InvalidInput(f"no solution within {limit_s:g} s")
        chosen = found.x > 0.5
        overlay = Overlay.from_codes(interests.nodes, u[chosen], v[chosen])
        cuts = _violated(interests, overlay, u, v)
        if not cuts:
            return int(chosen.sum()), number, bool(found.status == 0)
        rows += cuts
    raise InvalidInput(f"topics were still split after {MOST_CUTS} rounds of cutting")


def _shares_topic(interests: Interests) -> npt.NDArray[np.bool_]:
    wanted = np.zeros((interests.node_count, interests.topic_count), dtype=np.int32)
    wanted[interests.pair_codes] = 1
    shares: npt.NDArray[np.bool_] = wanted @ wanted.T > 0
    return shares


def _singletons(interests: Interests) -> list[tuple[int, int]]:
    """Each subscriber against all others of its topic: the cuts to start from."""
    nodes, topics = interests.pair_codes
    sizes = np.diff(interests.topic_offsets)
    return [(int(topic), int(node)) for node, topic in zip(nodes, topics, strict=True) if sizes[topic] > 1]


def _across(
    interests: Interests, topic: int, side: set[int], u: npt.NDArray[np.int64], v: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    members = np.zeros(interests.node_count, dtype=bool)
    members[interests.subscribers_of(topic)] = True
    within = np.zeros(interests.node_count, dtype=bool)
    within[list(side)] = True
    across: npt.NDArray[np.float64] = (members[u] & members[v] & (within[u] != within[v])).astype(float)
    return across


def _violated(
    interests: Interests, overlay: Overlay, u: npt.NDArray[np.int64], v: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.float64]]:
    cuts = []
    for topic in np.flatnonzero(topic_components(interests, overlay) > 1).tolist():
        members = set(interests.subscribers_of(topic).tolist())
        while members:
            piece, edge = set(), [members.pop()]
            while edge:
                node = edge.pop()
                piece.add(node)
                near = set(overlay.neighbours_of(node).tolist()) & members
                members -= near
                edge += near
            cuts.append(_across(interests, topic, piece, u, v))
    return cuts

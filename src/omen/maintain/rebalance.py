"""Bring degrees down again: drop links that do little and let few better ones do their work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from omen.kernels import redundancy
from omen.maintain.engine import DegreeRule, Scope, reconnect
from omen.maintain.state import Pairs, State

WEAK_LINKS = (1, 2, 3)  # links a node gives up at once: all are tried, what saves most for each link changed is taken
CHANGES_PER_LINK = 3  # links that may change for each one saved: two dropped for one made, or better
HEAVY_LINKS = 6  # links the node of highest degree gives up at once
RELIEF_TRIES = 4  # nodes of highest degree looked at with each repair
CHANGES_PER_DEGREE = 4  # links that may change for each one it has less
ENOUGH = 1.6  # times the average degree: a node of that many links is spared while another will do


@dataclass(frozen=True)
class Swap:
    """Links to make, and then links to drop. With both done every topic is connected, and with the first half too."""

    made: Pairs
    dropped: Pairs

    @property
    def changes(self) -> int:
        return int(self.made.shape[0] + self.dropped.shape[0])

    @property
    def saved(self) -> int:
        return int(self.dropped.shape[0] - self.made.shape[0])


def find_saving(state: State, node: int, rho: float) -> Swap | None:
    """A swap around one node that saves links, at most CHANGES_PER_LINK changed for each; None: no such.

    The node's links that the fewest topics need are given up, and the greedy engine connects what they held together,
    among their ends, the node's backups and all nodes two links away. Links chosen again stay as they are. Not from
    the papers: after 1000 rounds at 2000 x 200 a link is needed by two topics on average, where one good link can
    serve ten.
    """
    weakest, redundant = _weakest_links(state, node)
    best: Swap | None = None
    for count in WEAK_LINKS:
        weak = weakest[: max(count, redundant)]
        if weak.shape[0] < count:
            break
        state.unlink(weak)
        ends = np.append(weak[:, 1], np.int32(node))
        helpers = np.concatenate([state.neighbours.of(end) for end in ends.tolist()] + [state.backups.of(node)])
        scope = Scope(ends, state.topics_of.of(node), helpers)
        links, _ = reconnect(state, scope, DegreeRule(rho, enough=enough_links(state)))
        state.link(weak)
        swap = _net_swap(links, weak)
        if swap.saved > 0 and (best is None or swap.changes * best.saved < best.changes * swap.saved):
            best = swap
    return best if best is not None and best.changes <= CHANGES_PER_LINK * best.saved else None


def find_relief(state: State, node: int, rho: float) -> Swap | None:
    """A swap that takes links from a node of high degree and gives no other node as many as it had; None: no such.

    As `find_saving`, with every subscriber of a topic that splits, and with nodes of ENOUGH links spared.
    """
    weak = _weakest_links(state, node)[0][:HEAVY_LINKS]
    if weak.shape[0] == 0:
        return None
    before = state.neighbours.length(node)
    enough = enough_links(state)
    state.unlink(weak)
    ends = np.append(weak[:, 1], np.int32(node))
    links, _ = reconnect(state, Scope(ends, state.topics_of.of(node), None), DegreeRule(rho, enough=enough))
    state.link(weak)
    swap = _net_swap(links, weak)
    fewer = swap.dropped.shape[0] - int((swap.made == node).sum())
    highest = max((state.neighbours.length(end) + 1 for end in swap.made.ravel().tolist() if end != node), default=0)
    return swap if fewer > 0 and swap.changes <= CHANGES_PER_DEGREE * fewer and highest < before else None


def enough_links(state: State) -> int:
    """How many links are enough for a node, by the average degree."""
    return int(ENOUGH * state.average_degree) + 1


def overburdened(state: State) -> list[int]:
    """A few nodes that have much more than enough links, from the highest degree down, then by label."""
    slots = np.flatnonzero(state.neighbours.spans[:, 1] > enough_links(state) + 1)
    return by_degree(state, slots.tolist())[:RELIEF_TRIES]


def by_degree(state: State, slots: Iterable[int]) -> list[int]:
    """These nodes from the highest degree down, then by label."""
    codes = np.fromiter(slots, np.int32)
    degrees = state.neighbours.spans[codes, 1]
    ordered: list[int] = codes[np.lexsort((state.nodes.order[codes], -degrees))].tolist()
    return ordered


def _weakest_links(state: State, node: int) -> tuple[Pairs, int]:
    """The links of the node, those that the fewest topics need first, and how many are redundant.

    Of equals the one to the neighbour of highest degree comes first, then the one to the lowest label.
    """
    neighbours = state.neighbours.of(node)
    needs = redundancy.link_needs(state.graph, state.scratch, node, neighbours)
    degrees = state.neighbours.spans[neighbours, 1]
    order = np.lexsort((state.nodes.order[neighbours], -degrees, needs))
    weakest: Pairs = np.empty((order.size, 2), np.int32)
    weakest[:, 0] = node
    weakest[:, 1] = neighbours[order]
    return weakest, int((needs == 0).sum())


def _net_swap(links: Pairs, weak: Pairs) -> Swap:
    made = {(min(pair), max(pair)) for pair in links.tolist()}
    dropped = {(min(pair), max(pair)) for pair in weak.tolist()}
    return Swap(_pairs(made - dropped), _pairs(dropped - made))


def _pairs(pairs: set[tuple[int, int]]) -> Pairs:
    return np.array(sorted(pairs), np.int32).reshape(-1, 2)

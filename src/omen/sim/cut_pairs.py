"""Cut nodes: the pairs (node, topic) whose loss would split what is left of the topic, seen from outside all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omen.protocol.events import NodeId, Topic
from omen.sim.population import Population


def cut_pairs(population: Population) -> dict[Topic, list[NodeId]]:
    """For each topic that has one, its cut nodes: by the links that both ends agree on."""
    members = {node: set(population.cores[node].topics) for node in population.members()}
    links: dict[Topic, list[tuple[NodeId, NodeId]]] = {}
    for one, other in population.links():
        for topic in members[one] & members[other]:
            links.setdefault(topic, []).append((one, other))
    found = {topic: cut_nodes(pairs) for topic, pairs in sorted(links.items())}
    return {topic: nodes for topic, nodes in found.items() if nodes}


def cut_nodes(links: Iterable[tuple[NodeId, NodeId]]) -> list[NodeId]:
    """The cut nodes of a graph (Hopcroft and Tarjan 1973)."""
    near: dict[NodeId, list[NodeId]] = {}
    for one, other in links:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    order: dict[NodeId, int] = {}
    low: dict[NodeId, int] = {}
    found: set[NodeId] = set()
    for root in near:
        if root not in order and _walk(root, near, order, low, found) > 1:
            found.add(root)
    return sorted(found)


def _walk(
    root: NodeId,
    near: Mapping[NodeId, list[NodeId]],
    order: dict[NodeId, int],
    low: dict[NodeId, int],
    found: set[NodeId],
) -> int:
    """Walk one piece depth first; how many branches its root has."""
    branches = 0
    order[root] = low[root] = len(order)
    path = [(root, root, iter(near[root]))]
    while path:
        node, parent, rest = path[-1]
        for other in rest:
            if other not in order:
                order[other] = low[other] = len(order)
                path.append((other, node, iter(near[other])))
                break
            if other != parent:
                low[node] = min(low[node], order[other])
        else:
            path.pop()
            if node != root:
                low[parent] = min(low[parent], low[node])
                branches += parent == root
                if parent != root and low[node] >= order[parent]:
                    found.add(parent)
    return branches

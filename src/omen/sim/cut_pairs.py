"""Cut nodes: the pairs (node, topic) whose loss would split what is left of the topic, seen from outside all nodes."""

from __future__ import annotations

from omen.protocol.events import NodeId, Topic
from omen.quality.cut_nodes import cut_nodes
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

"""The nodes that play a part in a topic, at which a search aims its crashes."""

from __future__ import annotations

from omen.interests import label_array, label_keys
from omen.protocol.audit.leader_reports import rendezvous_place
from omen.protocol.events import NodeId, Topic
from omen.protocol.membership.ring import nearest_after
from omen.sim.population import Population


def find_role(population: Population, role: str, label: str) -> str | None:
    """The name of the node that plays this part in a topic now, if one does."""
    topic = int(label_keys(label_array([label], "topic"))[0])
    subscribers = [node for node in population.members() if topic in population.cores[node].topics]
    if not subscribers:
        return None
    if role == "rendezvous":
        node = nearest_after((rendezvous_place(topic) - 1) % (1 << 64), population.members(), 1)[0]
    elif role == "leader":
        leaders = [node for node in subscribers if topic in population.cores[node].status().led_topics]
        node = leaders[0] if leaders else subscribers[-1]
    else:
        node = _most_cutting(population, topic, subscribers)
    return str(population.labels[node])


def _most_cutting(population: Population, topic: Topic, subscribers: list[NodeId]) -> NodeId:
    """The subscriber whose loss leaves the topic in most pieces; of several the one with most links in it."""
    inside = set(subscribers)
    near = {node: sorted(inside.intersection(population.cores[node].status().neighbours())) for node in subscribers}
    return max(subscribers, key=lambda node: (_pieces_without(near, node), len(near[node]), node))


def _pieces_without(near: dict[NodeId, list[NodeId]], lost: NodeId) -> int:
    seen = {lost}
    pieces = 0
    for start in near:
        if start in seen:
            continue
        pieces += 1
        seen.add(start)
        queue = [start]
        while queue:
            for other in near[queue.pop()]:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
    return pieces

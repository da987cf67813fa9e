"""A node as its pages show it: its health and its surroundings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from omen.net.observe.health import health_of

if TYPE_CHECKING:
    from omen.net.broker import Broker


STALLED_SHOWN = 20


def topology_of(broker: Broker) -> dict[str, Any]:
    """The node's place on the ring, its links and its topics; nodes by name where it is known."""
    driver = broker.driver
    if driver is None or driver.core is None:
        return {"name": broker.name, "links": [], "topics": []}
    node, label_of = driver.status(), driver.peers.label_of
    neighbours = node.neighbours()
    subscribers = dict.fromkeys(node.topics, 0)
    for neighbour in neighbours:
        for topic in node.membership.topic_sets.get(neighbour, ()):
            if topic in subscribers:
                subscribers[topic] += 1
    return {
        "name": broker.name,
        "node": f"{broker.node:016x}",
        "incarnation": node.ref.incarnation,
        "address": broker.address,
        "http": broker.http_address,
        **{key: value for key, value in health_of(broker).items() if key != "name"},
        "predecessors": list(map(label_of, node.membership.predecessors)),
        "successors": list(map(label_of, node.membership.successors)),
        "links": list(map(label_of, neighbours)),
        "topics": [
            {
                "topic": broker.names.get(topic, f"{topic:016x}"),
                "subscribed": topic in broker.subscribed_keys,
                "neighbours": count,
            }
            for topic, count in subscribers.items()
        ],
        "waiting_streams": node.dissemination.waiting,
        "missing_publications": node.dissemination.lacking,
        "stream_wait_s": round(node.dissemination.waits / 1e6, 3),
        "stalled": [asdict(stream) for stream in broker.stalled[:STALLED_SHOWN]],
        "connections": len(driver.peers.connections()),
        "slow_consumers": driver.peers.queues.slow_consumers(),
        "delivered": broker.delivered,
        "gaps": broker.gaps,
        "published": broker.published,
        "repairs": driver.events.repairs.count,
        "refused": dict(broker.admission.refused),
        "denied": dict(broker.admission.access.denied),
        "offences": {label_of(peer): round(points, 2) for peer, points in node.offences.items()},
        "banned": {label_of(peer): round(left / 1e6, 1) for peer, left in node.bans.items()},
        "mqtt": asdict(broker.front_door()) if broker.front_door is not None else {},
        "signatures": dict(broker.admission.signatures.counts) if broker.admission.signatures is not None else {},
    }

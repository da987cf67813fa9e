"""A node as its metrics, its health and its surroundings show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omen.net.metrics import Page
from omen.protocol.status import DisseminationStatus

if TYPE_CHECKING:
    from omen.net.broker import Broker


def health_of(broker: Broker) -> dict[str, Any]:
    """Whether the node does its work: it is in the cluster and has links for its topics."""
    node = None if broker.core is None else broker.core.status()
    health = "ok" if broker.is_joined else "stopped" if node is None or node.stopped else "joining"
    losses = 0 if node is None else sum(event.kind == "leave" for event in node.repairs.open_events)
    return {"status": health, "name": broker.name, "busy": node is not None and node.busy, "losses": losses}


def topology_of(broker: Broker) -> dict[str, Any]:
    """Who is around the node, by name where it is known."""
    if broker.core is None:
        return {"name": broker.name, "links": [], "topics": []}
    node = broker.status()
    names = {peer.node: peer.name for peer in broker.driver.peers.table.values()} if broker.driver else {}

    def name_of(place: int) -> str:
        return names.get(place) or f"{place:016x}"

    subscribers = dict.fromkeys(node.topics, 0)
    for neighbour in node.neighbours():
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
        "predecessors": [name_of(place) for place in node.membership.predecessors],
        "successors": [name_of(place) for place in node.membership.successors],
        "links": [name_of(place) for place in node.neighbours()],
        "topics": [
            {
                "topic": broker.names.get(topic, f"{topic:016x}"),
                "subscribed": topic in broker.subscribed_keys,
                "neighbours": count,
            }
            for topic, count in subscribers.items()
        ],
        "connections": len(broker.driver.peers.connections()) if broker.driver else 0,
        "delivered": broker.delivered,
        "gaps": broker.gaps,
        "published": broker.published,
        "repairs": broker.driver.repairs.count if broker.driver else 0,
        "refused": dict(broker.guard.refused) if broker.guard else {},
        "denied": dict(broker.guard.access.denied) if broker.guard else {},
    }


def metrics_of(broker: Broker) -> str:
    """All that is counted, as Prometheus reads it."""
    page = Page()
    driver = broker.driver
    if driver is None or driver.core is None:
        page.gauge("omen_up", "1 while the node runs", 0)
        return page.text()
    node, peers = driver.status(), driver.peers
    connections = peers.connections()
    facts = {"name": broker.name, "cluster": broker.config.cluster, "incarnation": str(node.ref.incarnation)}
    page.info("omen_node", "who this is", facts)
    page.gauge("omen_up", "1 while the node is part of the cluster", broker.is_joined)
    page.gauge("omen_links", "links both ends agree on", len(node.neighbours()))
    page.gauge("omen_degree", "links counted, those under way included", len(node.links))
    page.gauge("omen_topics", "topics carried", len(node.topics))
    page.gauge("omen_subscriptions", "topics delivered to the application", len(broker.subscribed_keys))
    page.gauge("omen_connections", "open connections", len(connections))
    page.gauge("omen_ring_members", "nodes known around this one on the circle", len(node.membership.ring))
    page.gauge("omen_pieces_split", "topics reported to this node in several pieces now", node.split_topics)
    shadows = node.membership.predecessors
    ready = sum(place in node.backup_sets and node.backup_sets[place].ready for place in shadows)
    page.gauge("omen_views", "predecessors whose loss this node would mend or watch", len(shadows))
    page.gauge("omen_views_ready", "those whose backups are ready", ready)
    page.gauge("omen_busy", "1 while something is being mended, made or reported", node.busy)
    _write_queues(page, broker, node.dissemination)
    page.histogram("omen_repair_seconds", "from taking an event up to its being handled here", driver.repairs)
    page.histogram("omen_engine_seconds", "time in the greedy engine", driver.engine_times)
    page.counters("omen_messages_sent_total", "messages sent, by kind", "kind", driver.sent.items())
    page.counters("omen_messages_received_total", "messages received, by kind", "kind", driver.received.items())
    page.counters("omen_bytes_sent_total", "bytes sent, by kind", "kind", driver.bytes_sent.items())
    page.counters("omen_bytes_received_total", "bytes received, by kind", "kind", driver.bytes_received.items())
    guard = peers.guard
    dropped = {**node.refused, "sequence": node.dissemination.refused}
    page.counters("omen_refused_total", "connections refused, by reason", "reason", guard.refused.items())
    page.counters("omen_denied_total", "denied by access rules, by what", "what", guard.access.denied.items())
    page.gauge("omen_half_open", "connections that have not shown who they are", len(guard.census.half_open))
    page.gauge("omen_paused", "addresses and nodes not heard for breaking the protocol", guard.paused())
    page.counters("omen_dropped_total", "messages that made no sense, by reason", "reason", dropped.items())
    events = peers.counts + driver.counts + guard.counts
    page.counters("omen_events_total", "what happened to connections and frames", "event", events.items())
    return page.text()


def _write_queues(page: Page, broker: Broker, spread: DisseminationStatus) -> None:
    assert broker.driver is not None
    connections = broker.driver.peers.connections()
    queued = [connection.bulk_bytes + connection.urgent_bytes for connection in connections]
    page.gauge("omen_queue_bytes", "bytes waiting to be written, all peers together", sum(queued))
    page.gauge("omen_queue_bytes_most", "bytes waiting for the peer that reads slowest", max(queued, default=0))
    page.gauge("omen_links_behind", "peers that read too slowly now", sum(c.is_slow for c in connections))
    page.gauge("omen_inbox_messages", "messages the application has not taken yet", len(broker.inbox))
    page.counter("omen_published_total", "publications accepted from the application", broker.published)
    page.counter("omen_delivered_total", "publications delivered to the application", broker.delivered)
    page.counter("omen_gaps_total", "gaps delivered to the application", broker.gaps)
    page.counter("omen_inbox_overflow_total", "publications the application was too slow for", broker.inbox.overflowed)
    page.counter("omen_duplicates_total", "publications that had been received before, dropped", spread.duplicates)
    meaning = "how often a publisher made way for another, because a topic had too many"
    page.counter("omen_streams_parked_total", meaning, spread.parked)

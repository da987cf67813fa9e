"""What a front door for MQTT clients has and counts, as its node's pages show it. The door itself is an extra of the
package: here is only what it says of itself.
"""

from __future__ import annotations

import msgspec

from omen.net.observe.metrics import Page


class FrontDoorFacts(msgspec.Struct, frozen=True):
    """A front door just now, and what it has counted since it was opened."""

    clients: int = 0
    sessions: int = 0
    subscriptions: int = 0
    wildcard_topics: int = 0
    wildcard_topics_left_out: int = 0
    retained: int = 0
    retained_bytes: int = 0
    queued: int = 0
    queued_bytes: int = 0
    marks: int = 0
    busy_topics: int = 0
    waiting_wills: int = 0
    shares: int = 0
    share_members: int = 0
    received: int = 0
    sent: int = 0
    dropped: int = 0
    repeated: int = 0
    failed: int = 0
    unheld: int = 0
    unstored: int = 0
    held_back: int = 0
    shared: int = 0
    chosen_again: int = 0
    wills: int = 0
    adopted: int = 0
    recovered: int = 0


def write_front_door(page: Page, door: FrontDoorFacts) -> None:
    """Its metrics."""
    page.gauge("omen_mqtt_clients", "MQTT clients connected.", door.clients)
    page.gauge("omen_mqtt_sessions", "Sessions that this node has, of clients that are gone too.", door.sessions)
    page.gauge("omen_mqtt_subscriptions", "Subscriptions of all sessions here.", door.subscriptions)
    page.gauge("omen_mqtt_wildcard_topics", "Topics that wildcards here match.", door.wildcard_topics)
    page.counter(
        "omen_mqtt_wildcard_topics_left_out_total",
        "Topics not subscribed to since wildcards match too many.",
        door.wildcard_topics_left_out,
    )
    page.gauge("omen_mqtt_retained_messages", "Retained messages of the cluster, as known here.", door.retained)
    page.gauge("omen_mqtt_retained_bytes", "What they take.", door.retained_bytes)
    page.gauge("omen_mqtt_queued_messages", "Messages that wait for clients.", door.queued)
    page.gauge("omen_mqtt_queued_bytes", "What they take.", door.queued_bytes)
    page.gauge("omen_mqtt_marks", "Marks of messages with QoS 2 that sessions remember.", door.marks)
    page.gauge("omen_mqtt_busy_topics", "Topics whose publishers wait for clients here.", door.busy_topics)
    page.gauge("omen_mqtt_waiting_wills", "Wills whose delay is not over.", door.waiting_wills)
    page.gauge("omen_mqtt_shares", "Shared subscriptions of the cluster, as known here.", door.shares)
    page.gauge("omen_mqtt_share_members", "Members of all of them.", door.share_members)
    page.counter("omen_mqtt_messages_received_total", "Messages that clients published.", door.received)
    page.counter("omen_mqtt_messages_sent_total", "Messages sent to clients.", door.sent)
    page.counter("omen_mqtt_messages_dropped_total", "Messages not sent: too slow, too large.", door.dropped)
    page.counter("omen_mqtt_messages_repeated_total", "Messages passed over by their marks.", door.repeated)
    page.counter("omen_mqtt_publish_failures_total", "Messages that could not be published.", door.failed)
    page.counter("omen_mqtt_messages_unheld_total", "Messages that too few nodes would hold.", door.unheld)
    page.counter("omen_mqtt_sessions_unstored_total", "Writes of sessions that too few nodes took.", door.unstored)
    page.counter("omen_mqtt_publish_waits_total", "How often a client waited for those who read.", door.held_back)
    page.counter("omen_mqtt_messages_shared_total", "Members of shares chosen for messages.", door.shared)
    page.counter(
        "omen_mqtt_messages_chosen_again_total", "Messages given to another member of a share.", door.chosen_again
    )
    page.counter("omen_mqtt_wills_total", "Wills published.", door.wills)
    page.counter("omen_mqtt_sessions_adopted_total", "Sessions of crashed nodes gone on with here.", door.adopted)
    page.counter("omen_mqtt_messages_recovered_total", "Messages of gaps that other nodes held.", door.recovered)

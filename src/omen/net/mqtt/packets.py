"""What packets of clients mean: messages, wills, subscriptions."""

from __future__ import annotations

from mqtt5 import PublishPacket, TopicFilter, Will

from omen.net.mqtt.session import ApplicationMessage, Subscription


def message_of(topic: str, packet: PublishPacket | Will, client: str, now: float, mark: str = "") -> ApplicationMessage:
    """A message that a client publishes, or its will."""
    expiry = packet.message_expiry_interval
    return ApplicationMessage(
        topic,
        packet.payload or b"",
        int(packet.qos),
        packet.retain,
        None if expiry is None else now + expiry,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        bool(packet.payload_format_indicator),
        tuple(packet.user_properties),
        client,
        mark,
    )


def subscription_of(asked: TopicFilter, identifier: int | None) -> Subscription:
    return Subscription(asked.pattern, int(asked.max_qos), asked.no_local, asked.retain_as_published, identifier)


def breaks_rules(packet: PublishPacket) -> bool:
    """What no client may send (MQTT-3.3.1-2, MQTT-3.3.4-6)."""
    return bool((packet.duplicate and not int(packet.qos)) or packet.subscription_ids)

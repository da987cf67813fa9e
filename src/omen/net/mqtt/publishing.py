"""From clients to the overlay: PUBLISH in every quality of service, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from mqtt5 import (
    DisconnectReasonCode,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PubCompReasonCode,
    PublishPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
)

from omen.net.mqtt.keeping import Keeping
from omen.net.mqtt.outputs import Client, DoorLimits, Publish, Rights, Waiting
from omen.net.mqtt.session import AT_LEAST_ONCE, EXACTLY_ONCE, ApplicationMessage, Taken
from omen.net.mqtt.topics import is_valid_name
from omen.net.names import TOPIC_BYTES


class Publishing(Keeping):
    """The half of a door that faces the overlay. What a client waits for has a token until it comes back."""

    def __init__(self, limits: DoorLimits, rights: Rights) -> None:
        super().__init__(limits)
        self.rights = rights
        self._tokens = 0
        self._marks = 0
        self._open_tokens: dict[int, Waiting] = {}

    def _is_publishable(self, name: str) -> bool:
        return is_valid_name(name) and not name.startswith("$") and len(name.encode()) <= TOPIC_BYTES

    def _on_publish(self, client: Client, packet: PublishPacket, now: float) -> None:
        self.received += 1
        topic = self._resolve(client, packet, now)
        if topic is None:
            return
        session = client.session
        assert session is not None
        number, qos = packet.packet_id or 0, int(packet.qos)
        if (qos and not number) or _breaks_rules(packet):
            self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
            return
        if qos and client.unacknowledged >= self.limits.receive_max:
            self._disconnect(client, DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, now)
            return
        taken = session.received.get(number) if qos == EXACTLY_ONCE else None
        if taken is not None and (taken.is_published or taken.is_under_way):
            if taken.is_published:  # the acknowledgement was lost
                self._send(client, PubRecPacket(number))
            return
        if not self._is_publishable(topic):
            self._disconnect(client, DisconnectReasonCode.TOPIC_NAME_INVALID, now)
            return
        if not self.rights.may_publish(client.user, topic):
            self._refuse_publish(client, packet)
            return
        message = _message_of(topic, packet, client.id, now)
        token = self._expect_ack(client, packet) if qos else 0
        if qos == EXACTLY_ONCE:
            self._publish_marked(client, number, Publish(client.number, token, message))
        else:
            self._out.append(Publish(client.number, token, message))

    def _publish_marked(self, client: Client, number: int, output: Publish) -> None:
        """Publish a message with QoS 2 once it is stored which mark it has: should this node crash meanwhile, another
        publishes it again under the same mark, and nobody gets it twice.
        """
        session = client.session
        assert session is not None
        taken = session.received[number]
        if not taken.mark and self._is_stored(session):
            self._marks += 1
            taken.mark = f"{self.owner}/{self._marks}"
        message = msgspec.structs.replace(output.message, mark=taken.mark)
        marked = Publish(output.connection, output.token, message)
        self._persist(session, lambda: self._out.append(marked))

    def _resolve(self, client: Client, packet: PublishPacket, now: float) -> str | None:
        """The topic that is meant, by its name or its alias."""
        alias = packet.topic_alias
        if alias is None:
            return packet.topic
        if not 0 < alias <= self.limits.topic_aliases:
            self._disconnect(client, DisconnectReasonCode.TOPIC_ALIAS_INVALID, now)
            return None
        if packet.topic:
            client.aliases[alias] = packet.topic
            return packet.topic
        topic = client.aliases.get(alias)
        if topic is None:
            self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
        return topic

    def _refuse_publish(self, client: Client, packet: PublishPacket) -> None:
        number = packet.packet_id or 0
        if packet.qos == AT_LEAST_ONCE:
            self._send(client, PubAckPacket(number, reason_code=PubAckReasonCode.NOT_AUTHORIZED))
        elif packet.qos == EXACTLY_ONCE:
            self._send(client, PubRecPacket(number, reason_code=PubRecReasonCode.NOT_AUTHORIZED))

    def _expect_ack(self, client: Client, packet: PublishPacket) -> int:
        number, is_twice_checked, session = packet.packet_id or 0, packet.qos == EXACTLY_ONCE, client.session
        assert session is not None
        client.unacknowledged += 1
        if is_twice_checked:
            taken = session.received.setdefault(number, Taken(""))
            taken.is_under_way = True

        def finish(there: Client | None, is_held: bool, now: float) -> None:
            if there is not None:
                there.unacknowledged -= 1
            elif is_twice_checked:
                there = self._online.get(session.client_id)  # which sent it again: that was passed over
                there = there if there is not None and there.session is session else None
            if is_twice_checked:
                taken.is_published, taken.is_under_way = is_held, False
                if not is_held:
                    session.received.pop(number, None)
            if there is None or not is_held:
                return  # without an acknowledgement the client sends it again
            if is_twice_checked:
                self._send_saved(there, PubRecPacket(number))
            else:
                self._send(there, PubAckPacket(number))

        return self._wait(client, finish)

    def _wait(self, client: Client, finish: Callable[[Client | None, bool, float], None]) -> int:
        self._tokens += 1
        self._open_tokens[self._tokens] = Waiting(client.number, finish)
        return self._tokens

    def acknowledged(self, token: int, is_held: bool, now: float) -> None:
        """Other nodes hold a publication, or it could not be published."""
        waiting = self._open_tokens.pop(token, None)
        if waiting is not None:
            waiting.finish(self.clients.get(waiting.connection), is_held, now)

    def linked(self, token: int, now: float) -> None:
        """This node is linked in the topics of a subscription."""
        self.acknowledged(token, True, now)

    def _on_pubrel(self, client: Client, packet: PubRelPacket, now: float) -> None:
        assert client.session is not None
        known = client.session.received.pop(packet.packet_id, None) is not None
        code = PubCompReasonCode.SUCCESS if known else PubCompReasonCode.PACKET_ID_NOT_FOUND
        self._send_saved(client, PubCompPacket(packet.packet_id, reason_code=code))


def _breaks_rules(packet: PublishPacket) -> bool:
    """What no client may send (MQTT-3.3.1-2, MQTT-3.3.4-6)."""
    return bool((packet.duplicate and not int(packet.qos)) or packet.subscription_ids)


def _message_of(topic: str, packet: PublishPacket, client: str, now: float) -> ApplicationMessage:
    expiry = packet.message_expiry_interval
    return ApplicationMessage(
        topic,
        packet.payload,
        int(packet.qos),
        packet.retain,
        None if expiry is None else now + expiry,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        bool(packet.payload_format_indicator),
        tuple(packet.user_properties),
        client,
    )

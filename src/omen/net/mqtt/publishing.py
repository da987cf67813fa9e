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

from omen.net.mqtt.codec import V3
from omen.net.mqtt.keeping import Keeping
from omen.net.mqtt.outputs import Client, DoorLimits, Publish, Rights, Waiting
from omen.net.mqtt.packets import breaks_rules, message_of
from omen.net.mqtt.session import AT_LEAST_ONCE, EXACTLY_ONCE, Taken
from omen.net.mqtt.topics import is_valid_name
from omen.net.names import TOPIC_BYTES

STAMPED_AT_MOST = 10_000
"""Topics of which is known when the last retained message came."""


class Publishing(Keeping):
    """The half of a door that faces the overlay. What a client waits for has a token until it comes back."""

    def __init__(self, limits: DoorLimits, rights: Rights) -> None:
        super().__init__(limits)
        self.rights = rights
        self._tokens = 0
        self._marks = 0
        self._stamped: dict[str, int] = {}
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
        if (qos and not number) or breaks_rules(packet):
            self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
            return
        if qos and client.unacknowledged >= self.limits.receive_max:
            self._disconnect(client, DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, now)
            return
        taken = session.received.get(number) if qos == EXACTLY_ONCE else None
        if taken is not None and (taken.is_published or taken.is_under_way) and not taken.may_be_lost(now):
            if taken.is_published:  # the acknowledgement was lost
                self._send(client, PubRecPacket(number))
            return
        if not self._is_publishable(topic):
            self._disconnect(client, DisconnectReasonCode.TOPIC_NAME_INVALID, now)
            return
        if not self.rights.may_publish(client.user, topic):
            self._refuse(client, packet, PubAckReasonCode.NOT_AUTHORIZED, now)
            return
        message = message_of(topic, packet, client.id, now)
        token = self._expect_ack(client, packet) if qos else 0
        at = self._stamp(topic, now) if message.retain else now
        if qos == EXACTLY_ONCE:
            session.received[number].at = session.received[number].at or at
            self._publish_marked(client, number, Publish(client.number, token, message))
        else:
            self._out.append(Publish(client.number, token, message, at))

    def _publish_marked(self, client: Client, number: int, output: Publish) -> None:
        """Publish a message with QoS 2 once it is stored which mark it has: should this node crash meanwhile, another
        publishes it again under the same mark, and nobody gets it twice.
        """
        session = client.session
        assert session is not None
        taken = session.received[number]
        if not taken.mark and self._is_stored(session):
            taken.mark = self._new_mark()
            taken.shares = self.groups.choose_all(output.message.topic, taken.mark)
            self.shared += len(taken.shares)
        message = msgspec.structs.replace(output.message, mark=taken.mark, shares=taken.shares)
        marked = Publish(output.connection, output.token, message, taken.at)
        self._persist(session, lambda: self._out.append(marked))

    def _stamp(self, topic: str, now: float) -> float:
        """When a retained message came, in whole milliseconds: of those of one topic no two came at once, and which is
        the last does not depend on how long each waited to be published.
        """
        if len(self._stamped) >= STAMPED_AT_MOST:
            self._stamped.clear()
        self._stamped[topic] = max(int(now * 1000), self._stamped.get(topic, 0) + 1)
        return self._stamped[topic] / 1000

    def _new_mark(self) -> str:
        """A mark for a message; empty where nothing is stored."""
        self._marks += 1
        return f"{self.owner}/{self._marks}" if self.owner else ""

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

    def _refuse(self, client: Client, packet: PublishPacket, reason: PubAckReasonCode, now: float) -> None:
        """Say why a message is not taken. One of 3.1.1 cannot be told: what its client may not publish is acknowledged,
        and goes nowhere. Whose message may be taken another time is to send it again: its connection ends.
        """
        number = packet.packet_id or 0
        if not packet.qos:
            return
        if not _is_told(client, reason):
            self._disconnect(client, DisconnectReasonCode.UNSPECIFIED_ERROR, now)
        elif packet.qos == AT_LEAST_ONCE:
            self._send(client, PubAckPacket(number, reason_code=reason))
        else:
            self._send_saved(client, PubRecPacket(number, reason_code=PubRecReasonCode(int(reason))), now)

    def _expect_ack(self, client: Client, packet: PublishPacket) -> int:
        number, is_twice_checked, session = packet.packet_id or 0, packet.qos == EXACTLY_ONCE, client.session
        assert session is not None
        client.unacknowledged += 1
        if is_twice_checked:
            taken = session.received.setdefault(number, Taken(""))
            taken.is_under_way = True

        def finish(there: Client | None, reason: PubAckReasonCode, now: float) -> None:
            is_held = reason == PubAckReasonCode.SUCCESS
            if there is not None:
                there.unacknowledged -= 1
            elif is_twice_checked:
                there = self._online.get(session.client_id)  # which sent it again: that was passed over
                there = there if there is not None and there.session is session else None
            if is_twice_checked:
                taken.is_published, taken.is_under_way = is_held, False
                if not is_held and there is not None and _is_told(there, reason):
                    session.received.pop(number, None)  # else it is sent again, and keeps its mark
            if there is None:
                return  # without an acknowledgement the client sends it again
            if not is_held:
                self._refuse(there, packet, reason, now)
            elif is_twice_checked:
                self._send_saved(there, PubRecPacket(number), now)
            else:
                self._send(there, PubAckPacket(number))

        return self._wait(client, finish)

    def _wait(self, client: Client, finish: Callable[[Client | None, PubAckReasonCode, float], None]) -> int:
        self._tokens += 1
        self._open_tokens[self._tokens] = Waiting(client.number, finish)
        return self._tokens

    def acknowledged(self, token: int, now: float) -> None:
        """Other nodes hold a publication."""
        self._finish(token, PubAckReasonCode.SUCCESS, now)

    def refused(self, token: int, reason: PubAckReasonCode, now: float) -> None:
        """A publication could not be published, or is not held by enough nodes."""
        self._finish(token, reason, now)

    def _finish(self, token: int, reason: PubAckReasonCode, now: float) -> None:
        waiting = self._open_tokens.pop(token, None)
        if waiting is not None:
            waiting.finish(self.clients.get(waiting.connection), reason, now)

    def linked(self, token: int, now: float) -> None:
        """This node is linked in the topics of a subscription."""
        self._finish(token, PubAckReasonCode.SUCCESS, now)

    def _on_pubrel(self, client: Client, packet: PubRelPacket, now: float) -> None:
        assert client.session is not None
        known = client.session.received.pop(packet.packet_id, None) is not None
        code = PubCompReasonCode.SUCCESS if known else PubCompReasonCode.PACKET_ID_NOT_FOUND
        self._send_saved(client, PubCompPacket(packet.packet_id, reason_code=code), now)


def _is_told(client: Client, reason: PubAckReasonCode) -> bool:
    """Whether a client hears why its message is not taken, and is done with it."""
    if client.version == V3:
        return reason == PubAckReasonCode.NOT_AUTHORIZED
    return reason != PubAckReasonCode.UNSPECIFIED_ERROR

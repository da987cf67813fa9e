"""The MQTT server of one node as a state machine: packets, deliveries and times go in, bytes and wishes come out.

One `Door` serves all clients of its node. It has no socket and no clock; what it wants from the world it returns as
outputs, and hears of their end by a token: a publication is acknowledged to its client when `acknowledged` says that
other nodes hold it, a subscription when `linked` says that the node is linked in its topics.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PingReqPacket,
    PingRespPacket,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    PubRelReasonCode,
    RetainHandling,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
)

from omen.net.mqtt.codec import V3, Malformed
from omen.net.mqtt.keeping import STORED_AGAIN_S
from omen.net.mqtt.outputs import REFUSED, Claim, Client, Close, DoorLimits, Rights
from omen.net.mqtt.packets import message_of, subscription_of
from omen.net.mqtt.publishing import Publishing
from omen.net.mqtt.session import Session
from omen.net.mqtt.stored import Change as StoredChange
from omen.net.mqtt.stored import StoredSession
from omen.net.mqtt.topics import OWN, SHARE, filter_of, has_wildcard, is_shared, is_valid_filter, is_valid_share
from omen.net.mqtt.wishes import Change
from omen.net.names import TOPIC_BYTES

PURGE_S = 60.0
"""Retained messages that are over are looked for so often."""
LATE = 1.5
"""A client that was silent for so many of its keep-alive intervals is gone (MQTT-3.1.2-22)."""


class Door(Publishing):
    """All clients of a node. Each input is a method; what follows from it is in `take`."""

    def __init__(self, limits: DoorLimits, rights: Rights) -> None:
        super().__init__(limits, rights)
        self._purges_at = 0.0
        self._handlers: dict[type, Callable[[Client, Any, float], None]] = {
            PublishPacket: self._on_publish,
            PubAckPacket: self._on_puback,
            PubRecPacket: self._on_pubrec,
            PubRelPacket: self._on_pubrel,
            PubCompPacket: self._on_pubcomp,
            SubscribePacket: self._on_subscribe,
            UnsubscribePacket: self._on_unsubscribe,
            PingReqPacket: self._on_ping,
            DisconnectPacket: self._on_disconnect,
        }

    # Connections

    def open(self, number: int, now: float, certified: str = "") -> None:
        """A connection is there; `certified`: the name in its certificate, which was verified."""
        self.clients[number] = Client(number, now, certified=certified)

    def receive(self, number: int, packet: Any, version: int, now: float) -> None:
        """A packet came. What comes while a session is being fetched waits for it."""
        client = self.clients.get(number)
        if client is None:
            return
        client.heard_at, client.version = now, version
        if isinstance(packet, ConnectPacket):
            if client.connect is not None:
                self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
            else:
                client.connect = packet
                self._on_connect(client, packet, now)
            return
        if not client.is_accepted and client.connect is not None:
            client.waiting.append(packet)
            return
        handle = self._handlers.get(type(packet))
        if client.session is None or handle is None:
            self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
            return
        handle(client, packet, now)

    def refuse(self, number: int, error: Malformed, version: int, now: float) -> None:
        """What came cannot be read."""
        client = self.clients.get(number)
        if client is None:
            return
        client.version = version or V3
        if client.session is None:
            code = ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION if not version else ConnAckReasonCode.MALFORMED_PACKET
            self._send(client, ConnAckPacket(reason_code=code))
            self._drop(client, now, with_will=False)
        else:
            self._disconnect(client, error.reason, now)

    def lost(self, number: int, now: float) -> None:
        """The connection is gone, without a word of goodbye."""
        client = self.clients.get(number)
        if client is not None:
            self._drop(client, now)

    def _disconnect(self, client: Client, reason: DisconnectReasonCode, now: float, with_will: bool = True) -> None:
        if client.is_accepted:
            self._send(client, DisconnectPacket(reason_code=reason))
        self._drop(client, now, with_will)

    def _drop(self, client: Client, now: float, with_will: bool = True) -> None:
        """The connection ends: its will is published, its session goes on until it expires."""
        del self.clients[client.number]
        self._out.append(Close(client.number))
        session = client.session
        if session is None or self._online.get(client.id) is not client:
            return
        del self._online[client.id]
        self._tell_groups_of(session)
        if client.will is not None and with_will:
            delay = min(client.will_delay, session.expiry)
            if delay:
                self._wills[client.id] = (now + delay, client.will)
            else:
                self._publish_will(client.will)
        if session.expiry:
            session.ends_at = self._end_of(session, now)
            self._persist(session)
        else:
            self._end_session(session)

    def tick(self, now: float) -> None:
        """Once per second or so: clients that fell silent, sessions that have expired, wills that are due."""
        for client in list(self.clients.values()):
            if client.connect is None and now - client.heard_at > self.limits.connect_timeout_s:
                self._drop(client, now)
            elif client.keep_alive and not client.is_held and now - client.heard_at > LATE * client.keep_alive:
                self._disconnect(client, DisconnectReasonCode.KEEP_ALIVE_TIMEOUT, now)
            elif client.retained:
                client.given = 0
                self._go_on(client, now)
        for client_id, (due, will) in list(self._wills.items()):
            if now >= due:
                del self._wills[client_id]
                self._publish_will(will)
                if client_id in self.sessions:
                    self._note(self.sessions[client_id])
        for session in list(self.sessions.values()):
            if session.ends_at is not None and session.ends_at <= now:
                self._end_session(session)
            elif session.saved_at and now - session.saved_at > STORED_AGAIN_S:
                self._note(session)

        if now >= self._purges_at:
            self._purges_at = now + PURGE_S
            self.purge_retained(now)

    def shut(self, now: float) -> None:
        """This node leaves: clients are told, and connect elsewhere."""
        for client in list(self.clients.values()):
            self._disconnect(client, DisconnectReasonCode.SERVER_SHUTTING_DOWN, now)

    # CONNECT

    def _on_connect(self, client: Client, packet: ConnectPacket, now: float) -> None:
        client.keep_alive = packet.keep_alive
        client.receive_max = packet.receive_max
        client.packet_bytes = packet.max_packet_size
        code = self._check_connect(client, packet)
        if code != ConnAckReasonCode.SUCCESS:
            self._send(client, ConnAckPacket(reason_code=code))
            self._drop(client, now, with_will=False)
            return
        client.id = packet.client_id or f"omen-{os.urandom(8).hex()}"
        client.user = client.certified or packet.username or client.id
        is_held = client.id in self.sessions
        wants_session = not packet.clean_start and bool(packet.client_id) and not is_held
        if packet.client_id:
            token = self._wait(client, self._on_claimed) if wants_session else 0
            self._out.append(Claim(token, client.id, wants_session, packet.clean_start))
        if not wants_session:
            self._accept(client, None, now)

    def _check_connect(self, client: Client, packet: ConnectPacket) -> ConnAckReasonCode:
        if not packet.client_id and client.version == V3 and not packet.clean_start:
            return ConnAckReasonCode.CLIENT_ID_NOT_VALID  # MQTT-3.1.3-8
        if packet.authentication_method is not None:
            return ConnAckReasonCode.BAD_AUTHENTICATION_METHOD
        if "\0" in packet.client_id:
            return ConnAckReasonCode.CLIENT_ID_NOT_VALID
        will = packet.will
        if will is not None and (not self._is_publishable(will.topic)):
            return ConnAckReasonCode.TOPIC_NAME_INVALID
        if len(self.clients) > self.limits.connections:
            return ConnAckReasonCode.SERVER_BUSY
        if len(self.sessions) >= self.limits.sessions and packet.client_id not in self.sessions:
            return ConnAckReasonCode.QUOTA_EXCEEDED
        code = ConnAckReasonCode.SUCCESS
        if not client.certified:
            code = self.rights.authenticate(packet.client_id, packet.username, packet.password)
        if code == ConnAckReasonCode.SUCCESS and will is not None:
            user = client.certified or packet.username or packet.client_id
            if not self.rights.may_publish(user, will.topic):
                return ConnAckReasonCode.NOT_AUTHORIZED
        return code

    def _on_claimed(self, client: Client | None, _: PubAckReasonCode, now: float) -> None:
        if client is not None:
            self._accept(client, None, now)

    def claimed(self, token: int, handed: StoredSession | None, now: float) -> None:
        """What other nodes had of a client that came here."""
        waiting = self._open_tokens.pop(token, None)
        client = None if waiting is None else self.clients.get(waiting.connection)
        if client is not None and client.session is None:
            self._accept(client, handed, now)

    def _accept(self, client: Client, handed: StoredSession | None, now: float) -> None:
        """Take the session up or begin one; end the connection that had it (MQTT-3.1.4-3)."""
        packet = client.connect
        assert packet is not None
        self._replace(client.id, packet.clean_start, now)
        session = self.sessions.get(client.id)
        if session is not None and packet.clean_start:
            self._end_session(session)
            session = None
        if session is None and handed is not None and not packet.clean_start:
            session = self._take_over(handed, now)
            self.publish_will_of(handed.head, now)
        is_present = session is not None
        if session is None:
            session = self.sessions[client.id] = Session(client.id, 0, self.limits.session)
            session.next_number = int(now * 1e6)
            session.begun = now
        session.expiry, session.ends_at = packet.session_expiry_interval, None
        client.session = session
        if packet.will is not None:
            client.will = message_of(packet.will.topic, packet.will, client.id, now, self._new_mark())
            client.will_delay = packet.will.will_delay_interval
        self._online[client.id] = client
        self._tell_groups_of(session)
        hello = self._connack(client, packet, is_present)
        if client.will is not None:
            self._persist(session, lambda: self._welcome(client, session, hello, now))
        else:
            self._persist(session)
            self._welcome(client, session, hello, now)

    def _replace(self, client_id: str, is_clean: bool, now: float) -> None:
        """End the connection that a client had. Its will is published, unless it has a delay and the session goes on:
        then the new connection takes it back (MQTT-3.1.3-9).
        """
        former, session = self._online.pop(client_id, None), self.sessions.get(client_id)
        if former is not None:
            self._disconnect(former, DisconnectReasonCode.SESSION_TAKEN_OVER, now, with_will=False)
            if former.will is not None and session is not None:
                self._wills[client_id] = (now + min(former.will_delay, session.expiry), former.will)
        due, will = self._wills.pop(client_id, (0.0, None))
        if will is not None and (is_clean or due <= now):
            self._publish_will(will)

    def _welcome(self, client: Client, session: Session, hello: ConnAckPacket, now: float) -> None:
        """Say CONNACK, once what it promises is stored: a will. Then comes what the session owes."""
        if self.clients.get(client.number) is not client:
            return
        client.is_accepted = True
        self._send(client, hello)
        session.resume()
        self._flush(client, now)
        waiting, client.waiting = client.waiting, []
        for later in waiting:
            self.receive(client.number, later, client.version, now)

    def _connack(self, client: Client, packet: ConnectPacket, is_present: bool) -> ConnAckPacket:
        longest = self.limits.session_expiry_s
        return ConnAckPacket(
            session_present=is_present,
            assigned_client_id=None if packet.client_id else client.id,
            session_expiry_interval=longest if packet.session_expiry_interval > longest else None,
            receive_max=self.limits.receive_max,
            topic_alias_max=self.limits.topic_aliases,
            max_packet_size=self.limits.packet_bytes,
        )

    # Sessions

    def release(self, client_id: str, now: float, is_clean: bool = False) -> list[StoredChange] | None:
        """The client is at another node now: it ends here. What is to be stored, so that its session goes on there;
        `is_clean`: it does not go on.
        """
        self._replace(client_id, is_clean, now)
        session = self.sessions.get(client_id)
        if session is None:
            return None
        changes = self._changes(session, now, is_released=True)
        self._end_session(session, is_moved=True)
        return changes

    def release_all(self, now: float) -> list[tuple[str, list[StoredChange]]]:
        """This node leaves: its sessions are free for others."""
        stored = [session for session in self.sessions.values() if self._is_stored(session)]
        return [(session.client_id, self._changes(session, now, is_released=True)) for session in stored]

    # PUBLISH to clients

    def _on_puback(self, client: Client, packet: PubAckPacket, now: float) -> None:
        assert client.session is not None
        client.pace.note(now)
        client.session.on_puback(packet.packet_id)
        self._note(client.session)
        self._go_on(client, now)

    def _on_pubrec(self, client: Client, packet: PubRecPacket, now: float) -> None:
        assert client.session is not None
        client.pace.note(now)
        is_refused = int(packet.reason_code) >= REFUSED
        known = client.session.on_pubrec(packet.packet_id, is_refused)
        if not is_refused:
            code = PubRelReasonCode.SUCCESS if known else PubRelReasonCode.PACKET_ID_NOT_FOUND
            self._send_saved(client, PubRelPacket(packet.packet_id, reason_code=code), now)
        self._go_on(client, now)

    def _on_pubcomp(self, client: Client, packet: PubCompPacket, now: float) -> None:
        assert client.session is not None
        client.session.on_pubcomp(packet.packet_id)
        self._note(client.session)
        self._go_on(client, now)

    # SUBSCRIBE and UNSUBSCRIBE

    def _on_subscribe(self, client: Client, packet: SubscribePacket, now: float) -> None:
        session = client.session
        assert session is not None
        if any(asked.no_local and asked.pattern.startswith(SHARE) for asked in packet.topic_filters):
            self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)  # MQTT-3.8.3-4
            return
        codes: list[SubAckReasonCode] = []
        change, retained = Change(), []
        for asked in packet.topic_filters:
            code = self._check_filter(client, asked.pattern)
            codes.append(SubAckReasonCode(int(asked.max_qos)) if code is None else code)
            if code is not None:
                continue
            is_new = asked.pattern not in session.subscriptions
            is_group = is_shared(asked.pattern)
            subscription = subscription_of(asked, packet.subscription_id)
            found = self._subscribe(session, subscription)
            change = Change(begin=change.begin + found.begin)
            if not is_group and (
                asked.retain_handling == RetainHandling.SEND_ALWAYS
                or (is_new and asked.retain_handling == RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)
            ):
                retained.append(subscription)

        def finish(there: Client | None, _: PubAckReasonCode, now: float) -> None:
            if there is not None and there.session is session:
                self._persist(session, lambda: answer(there, now))

        def answer(there: Client, now: float) -> None:
            if self.clients.get(there.number) is not there:
                return
            self._send(there, SubAckPacket(packet.packet_id, codes))
            for subscription in retained:
                self._send_retained(there, subscription, now)

        is_wild = any(has_wildcard(filter_of(asked.pattern)) for asked in packet.topic_filters)
        if change.begin or is_wild:
            self._act_on(change, self._wait(client, finish))
        else:
            finish(client, PubAckReasonCode.SUCCESS, now)

    def _check_filter(self, client: Client, pattern: str) -> SubAckReasonCode | None:
        assert client.session is not None
        if pattern.startswith(SHARE):
            if not is_valid_share(pattern) or len(pattern.encode()) > TOPIC_BYTES:
                return SubAckReasonCode.TOPIC_FILTER_INVALID
            pattern_itself, pattern = pattern, filter_of(pattern)
        else:
            pattern_itself = pattern
        if not is_valid_filter(pattern) or pattern.startswith(OWN) or len(pattern.encode()) > TOPIC_BYTES:
            return SubAckReasonCode.TOPIC_FILTER_INVALID
        if not self.rights.may_subscribe(client.user, pattern):
            return SubAckReasonCode.NOT_AUTHORIZED
        count = len(client.session.subscriptions)
        is_full = count >= self.limits.subscriptions or self.subscriptions >= self.limits.all_subscriptions
        if is_full and pattern_itself not in client.session.subscriptions:
            return SubAckReasonCode.QUOTA_EXCEEDED
        return None

    def _on_unsubscribe(self, client: Client, packet: UnsubscribePacket, now: float) -> None:
        assert client.session is not None
        codes = [
            UnsubAckReasonCode.SUCCESS
            if self._unsubscribe(client.session, pattern)
            else UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED
            for pattern in packet.patterns
        ]
        self._send_saved(client, UnsubAckPacket(packet.packet_id, codes), now)

    # PINGREQ and DISCONNECT

    def _on_ping(self, client: Client, packet: PingReqPacket, now: float) -> None:
        self._send(client, PingRespPacket())

    def _on_disconnect(self, client: Client, packet: DisconnectPacket, now: float) -> None:
        assert client.session is not None
        expiry = packet.session_expiry_interval
        if expiry is not None:
            if expiry and not client.session.expiry:  # MQTT-3.14.2-2
                self._disconnect(client, DisconnectReasonCode.PROTOCOL_ERROR, now)
                return
            client.session.expiry = expiry
        is_normal = packet.reason_code == DisconnectReasonCode.NORMAL_DISCONNECTION  # MQTT-3.1.2-8, MQTT-3.14.4-3
        self._drop(client, now, with_will=not is_normal)

"""From the overlay to clients: who has subscribed to what, what is retained, what is owed to whom."""

from __future__ import annotations

from typing import Any

import msgspec
from mqtt5 import DisconnectReasonCode, PublishPacket

from omen.net.groups import Member
from omen.net.mqtt.codec import encode
from omen.net.mqtt.outputs import Carry, Client, DoorLimits, GiveUp, HoldBack, Output, Retained, TellGroup, Write
from omen.net.mqtt.session import EXACTLY_ONCE, ApplicationMessage, Owed, Session, Stream, Subscription
from omen.net.mqtt.shares import Shares
from omen.net.mqtt.topics import SHARE, FilterTree, filter_of, has_wildcard, is_shared, matches
from omen.net.mqtt.wishes import Change, Wishes

FULL, EMPTIER = 0.5, 0.25
"""Who publishes for a client waits where its queue is so full, until it is so empty."""
RETAINED_AT_ONCE = 1 << 20
"""Bytes of retained messages with QoS 0 that a client gets at once."""
REMOVED_S = 24 * 3600.0
"""It is remembered for so long that a retained message was removed."""
STREAMS_AT_MOST = 50_000
"""Streams of which is known how far this door is."""


class Deliveries:
    """The half of a door that faces its clients. `_disconnect` is for the other half to say.

    `repeated`: messages passed over by their marks; `shared`: members chosen for messages, `chosen_again`: for those
    whose first member had gone; `wills`: those published.
    """

    def __init__(self, limits: DoorLimits) -> None:
        self.limits = limits
        self.clients: dict[int, Client] = {}
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Retained] = {}
        self.wishes = Wishes(limits.wildcard_matches)
        self.received = self.sent = self.dropped = self.subscriptions = 0
        self.repeated = self.shared = self.chosen_again = self.wills = 0
        self.retained_bytes = 0
        self._online: dict[str, Client] = {}
        self._tree: FilterTree[tuple[str, str], Subscription] = FilterTree()
        self._out: list[Output] = []
        self._replays: dict[str, float] = {}
        self.owner = ""
        self.groups = Shares()
        self._shares: dict[str, set[str]] = {}
        self._no_local: dict[str, set[str]] = {}
        self._choices = 0
        self._reached: dict[Stream, int] = {}
        self._held_back: dict[str, set[str]] = {}

    def take(self) -> list[Output]:
        """What is to be done, in this order."""
        out, self._out = self._out, []
        return out

    def _send(self, client: Client, packet: Any) -> bool:
        """False: it is too large for its client, which is done with it."""
        data = encode(packet, client.version)
        if not data:
            return True
        if client.packet_bytes is not None and len(data) > client.packet_bytes:
            self.dropped += 1  # MQTT-3.1.2-25: as if it had been sent
            if isinstance(packet, PublishPacket) and packet.packet_id is not None and client.session is not None:
                client.session.on_puback(packet.packet_id)
                client.session.on_pubrec(packet.packet_id, is_refused=True)
            return False
        self._out.append(Write(client.number, data))
        return True

    def _subscribe(self, session: Session, subscription: Subscription) -> Change:
        pattern = subscription.pattern
        is_new = pattern not in session.subscriptions
        session.subscriptions[pattern] = subscription
        name = filter_of(pattern)
        self.subscriptions += is_new
        self._tree.add(name, (session.client_id, pattern), subscription)
        self._note_no_local(session.client_id, pattern, subscription.no_local)
        if is_shared(pattern):
            self._shares.setdefault(pattern, set()).add(session.client_id)
            self._tell_group(pattern)
        return self.wishes.add(name) if is_new and not name.startswith("$") else Change()

    def _unsubscribe(self, session: Session, pattern: str) -> bool:
        if session.subscriptions.pop(pattern, None) is None:
            return False
        self.subscriptions -= 1
        name = filter_of(pattern)
        self._tree.remove(name, (session.client_id, pattern))
        self._note_no_local(session.client_id, pattern, False)
        if is_shared(pattern):
            members = self._shares[pattern]
            members.discard(session.client_id)
            if not members:
                del self._shares[pattern]
            self._tell_group(pattern)
        if not name.startswith("$"):
            self._act_on(self.wishes.remove(name))
        return True

    def _note_no_local(self, client_id: str, pattern: str, no_local: bool) -> None:
        if no_local:
            self._no_local.setdefault(client_id, set()).add(pattern)
        elif client_id in self._no_local:
            self._no_local[client_id].discard(pattern)
            if not self._no_local[client_id]:
                del self._no_local[client_id]

    def is_not_for_its_client(self, message: ApplicationMessage) -> bool:
        """Whether the client of a message wants nothing of its own on this topic: it may be at another node when the
        message comes there (MQTT-3.8.3-3).
        """
        return any(matches(pattern, message.topic) for pattern in self._no_local.get(message.client, ()))

    def _tell_group(self, pattern: str) -> None:
        """Which members of a shared subscription are here, and which of them are connected."""
        sessions = [self.sessions[name] for name in sorted(self._shares.get(pattern, ())) if name in self.sessions]
        members = tuple(Member(one.client_id, one.client_id in self._online, one.expiry > 0) for one in sessions)
        self.groups.tell(self.owner, pattern, members)
        self._out.append(TellGroup(pattern, members))

    def _tell_groups_of(self, session: Session) -> None:
        for pattern in session.subscriptions:
            if is_shared(pattern):
                self._tell_group(pattern)

    def _act_on(self, change: Change, token: int = 0) -> bool:
        """Ask for the topics of a change; whether the token is under way with it."""
        if change.end:
            self._out.append(GiveUp(change.end))
        if change.fresh:
            self._out.append(Carry(0, change.fresh, replay=True))
        if change.begin or token:
            self._out.append(Carry(token, change.begin))
        return bool(change.begin)

    def learn_topics(self, names: list[str], fresh: bool, now: float = 0.0) -> None:
        """Topics that clients of other nodes publish on. A session that has come from another node may have missed
        something on them.
        """
        names = [name for name in names if not name.startswith("$")]
        late = [] if fresh else self._missed(names, now)
        self._act_on(self.wishes.learn(late, fresh=True))
        self._act_on(self.wishes.learn(names, fresh))

    def _missed(self, names: list[str], now: float) -> list[str]:
        """The topics that wildcards of sessions match which have come from other nodes lately. Others that subscribe
        get nothing of what was published before.
        """
        self._replays = {client_id: until for client_id, until in self._replays.items() if now < until}
        moved = [self.sessions[client_id] for client_id in self._replays if client_id in self.sessions]
        wild = {filter_of(pattern) for session in moved for pattern in session.subscriptions if has_wildcard(pattern)}
        return [name for name in names if any(matches(pattern, name) for pattern in wild)]

    def deliver(self, message: ApplicationMessage, now: float, stream: Stream | None = None, sequence: int = 0) -> None:
        """A message came over the overlay: to every client with a matching subscription, once (MQTT-3.3.4-2)."""
        if stream is not None:
            self._reach(stream, sequence)
        if message.expires_at is not None and message.expires_at <= now:
            return
        plain: dict[int, bytes] = {}
        for client_id, subscriptions in self._chosen(message, stream, sequence):
            session = self.sessions[client_id]
            if stream is not None and (session.positions or session.ahead) and session.has(stream, sequence):
                continue  # from a window, for a session that came from another node
            owed = owed_by(message, subscriptions)
            client = self._online.get(client_id)
            if owed.qos:
                self._deliver_to(session, owed, now, stream, sequence)
            elif client is not None:
                self._give(client, owed, plain, now)

    def _deliver_to(self, session: Session, owed: Owed, now: float, stream: Stream | None, sequence: int) -> None:
        if not session.sees(owed.message.mark, now):
            self.repeated += 1
            return
        if stream is not None and session.expiry:
            session.note(stream, sequence, now)
        self._owe(session, self._online.get(session.client_id), owed, now)

    def _reach(self, stream: Stream, sequence: int) -> None:
        """Note how far the door is in a stream: what a client without a lasting session can have had."""
        if len(self._reached) >= STREAMS_AT_MOST:
            self._reached.clear()
        self._reached[stream] = max(sequence, self._reached.get(stream, 0))

    def lacking(self, stream: Stream, first: int, last: int) -> dict[str, int]:
        """Sessions that lack something of a gap in a stream, and from where on."""
        reached = self._reached.get(stream, 0)
        lacking: dict[str, int] = {}
        for (client_id, pattern), _ in self._tree.match(stream[0]):
            session = self.sessions[client_id]
            position = session.positions.get(stream, (0, 0.0))[0] if session.expiry else reached
            if pattern.startswith(SHARE) and not session.catching_up_until:
                position = max(position, reached)  # of what came before, other members may have had it
            if position < last:
                lacking[client_id] = min(max(first, position + 1), lacking.get(client_id, last))
        self._reach(stream, last)
        return lacking

    def deliver_late(
        self, message: ApplicationMessage, stream: Stream, sequence: int, lacking: dict[str, int], now: float
    ) -> None:
        """A message of a gap was found: for the sessions that lacked it when the gap was told."""
        if message.expires_at is not None and message.expires_at <= now:
            return
        for client_id, subscriptions in self._chosen(message, stream, sequence):
            session, owed = self.sessions[client_id], owed_by(message, subscriptions)
            if sequence < lacking.get(client_id, sequence + 1) or (stream, sequence) in session.ahead:
                continue
            if owed.qos:
                self._deliver_to(session, owed, now, stream, sequence)

    def _chosen(
        self, message: ApplicationMessage, stream: Stream | None, sequence: int
    ) -> list[tuple[str, list[Subscription]]]:
        """The clients here that a message is for, each with the subscriptions by which it is."""
        best: dict[str, list[Subscription]] = {}
        shared: dict[str, dict[str, Subscription]] = {}
        for (client_id, pattern), subscription in self._tree.match(message.topic):
            if pattern.startswith(SHARE):
                shared.setdefault(pattern, {})[client_id] = subscription
            elif not (subscription.no_local and message.client == client_id):
                best.setdefault(client_id, []).append(subscription)
        chosen = list(best.items())
        for pattern, members in shared.items():
            member = self._choose(pattern, message, stream, sequence)
            if member in members:
                chosen.append((member, [members[member]]))
        return chosen

    def _choose(self, pattern: str, message: ApplicationMessage, stream: Stream | None, sequence: int) -> str:
        """The client that a message of a shared subscription goes to: as was said where it was published, else as
        every node would choose.
        """
        for group, member in message.shares:
            if group == pattern:
                return member
        self._choices += 1
        place = message.mark or (f"{stream}|{sequence}" if stream is not None else str(self._choices))
        return self.groups.choose(pattern, f"{pattern}|{place}") or ""

    def address(self, message: ApplicationMessage) -> ApplicationMessage:
        """A message that is to be published, with the members of shared subscriptions that it goes to."""
        if message.shares or not len(self.groups):
            return message
        self._choices += 1
        chosen = self.groups.choose_all(message.topic, message.mark or f"{self.owner}|{self._choices}")
        self.shared += len(chosen)
        return msgspec.structs.replace(message, shares=chosen) if chosen else message

    def _give(self, client: Client, owed: Owed, plain: dict[int, bytes], now: float) -> None:
        """A message with QoS 0: the same bytes for all clients of a version. One that does not read misses it."""
        if client.is_slow or not client.is_accepted:
            self.dropped += 1
            return
        self.sent += 1
        if owed.identifiers or owed.retain or client.packet_bytes is not None:
            self._send(client, owed.packet(now))
            return
        data = plain.get(client.version)
        if data is None:
            data = plain[client.version] = encode(owed.packet(now), client.version)
        self._out.append(Write(client.number, data))

    def _owe(self, session: Session, client: Client | None, owed: Owed, now: float) -> None:
        if client is not None and not session.in_flight and not session.queued:
            client.pace.begin(now)
        if not session.put(owed):
            self.dropped += 1
            if client is not None:
                self._disconnect(client, DisconnectReasonCode.QUOTA_EXCEEDED, now)
            return
        self._note(session)
        if client is not None:
            self._flush(client, now)
            if _is_behind(client, FULL, now):
                self._hold_back(owed.message.topic, session.client_id)

    def _hold_back(self, topic: str, client_id: str) -> None:
        if topic not in self._held_back:
            self._held_back[topic] = set()
            self._out.append(HoldBack(topic))
        self._held_back[topic].add(client_id)

    def is_busy(self, topic: str, now: float) -> bool:
        """Whether who publishes on a topic is to wait: a client here has much of it to read, and reads."""
        behind = self._held_back.get(topic)
        if behind is None:
            return False
        for client_id in list(behind):
            client = self._online.get(client_id)
            if client is None or not _is_behind(client, EMPTIER, now):
                behind.discard(client_id)
        if not behind:
            del self._held_back[topic]
        return bool(behind)

    def busy_topics(self, now: float) -> list[str]:
        return [topic for topic in list(self._held_back) if self.is_busy(topic, now)]

    def _flush(self, client: Client, now: float) -> None:
        if client.session is None or client.is_slow or not client.is_accepted:
            return
        for packet in client.session.take(client.receive_max, now):
            self.sent += isinstance(packet, PublishPacket)
            if isinstance(packet, PublishPacket) and int(packet.qos) == EXACTLY_ONCE:
                self._send_saved(client, packet, now)
            else:
                self._send(client, packet)

    def is_waiting(self, number: int) -> bool:
        """Whether packets of a client wait until it is accepted."""
        client = self.clients.get(number)
        return client is not None and bool(client.waiting)

    def pause(self, number: int, is_slow: bool, now: float) -> None:
        """The client does not read what it is sent, or reads again."""
        client = self.clients.get(number)
        if client is not None:
            client.is_slow = is_slow
            if not is_slow:
                client.given = 0
                self._go_on(client, now)

    def hold(self, number: int, is_held: bool, now: float) -> None:
        """The client is not read from, since what it published waits: it cannot be heard. Or it is again."""
        client = self.clients.get(number)
        if client is not None:
            client.is_held, client.heard_at = is_held, now

    def _go_on(self, client: Client, now: float) -> None:
        """The client takes more than it did."""
        self._flush(client, now)
        if client.retained and self.clients.get(client.number) is client:
            self._send_more_retained(client, now)

    def retain(self, kept: Retained) -> bool:
        """A node says that this is the retained message of a topic; whether it is the latest."""
        topic = kept.message.topic
        former = self.retained.get(topic)
        if former is not None and former.version >= kept.version:
            return False
        size = self.retained_bytes + kept.message.size - (former.message.size if former is not None else 0)
        if size > self.limits.retained_bytes and (kept.message.payload or former is None):
            self.dropped += bool(kept.message.payload)
            return False
        self.retained_bytes = size
        self.retained[topic] = kept
        return True

    def purge_retained(self, now: float) -> None:
        """Let go of retained messages that have expired, and of removals that every node has heard of by now."""
        for name, kept in list(self.retained.items()):
            is_removed = not kept.message.payload and kept.version[0] < (now - REMOVED_S) * 1000
            if is_removed or (kept.message.expires_at is not None and kept.message.expires_at <= now):
                self.retained_bytes -= self.retained.pop(name).message.size

    def _send_retained(self, client: Client, subscription: Subscription, now: float) -> None:
        client.retained[subscription.pattern] = ""
        self._send_more_retained(client, now)

    def _send_more_retained(self, client: Client, now: float) -> None:
        """Send a client the retained messages that its new subscriptions match, as fast as it takes them: they may be
        many more than its queue has room for.
        """
        session = client.session
        assert session is not None
        for pattern, after in list(client.retained.items()):
            subscription = session.subscriptions.get(pattern)
            for name in self._retained_after(pattern, after) if subscription is not None else ():
                if client.is_slow or client.given >= RETAINED_AT_ONCE or session.fill > FULL:
                    return
                assert subscription is not None
                client.retained[pattern] = name
                self._send_one_retained(client, session, subscription, self.retained[name].message, now)
            del client.retained[pattern]

    def _retained_after(self, pattern: str, after: str) -> list[str]:
        if has_wildcard(pattern):
            return sorted(name for name in self.retained if name > after and matches(pattern, name))
        return [pattern] if pattern in self.retained and pattern > after else []

    def _send_one_retained(
        self, client: Client, session: Session, subscription: Subscription, message: ApplicationMessage, now: float
    ) -> None:
        if not message.payload or (message.expires_at is not None and message.expires_at <= now):
            return
        identifiers = () if subscription.identifier is None else (subscription.identifier,)
        owed = Owed(message, min(message.qos, subscription.qos), True, identifiers)
        if owed.qos:
            self._owe(session, client, owed, now)
        else:
            client.given += message.size
            self._give(client, owed, {}, now)

    def _note(self, session: Session) -> None:
        raise NotImplementedError

    def _send_saved(self, client: Client, packet: Any, now: float) -> None:
        raise NotImplementedError

    def _disconnect(self, client: Client, reason: DisconnectReasonCode, now: float, with_will: bool = True) -> None:
        raise NotImplementedError


def owed_by(message: ApplicationMessage, subscriptions: list[Subscription]) -> Owed:
    """What a message is to a client with these subscriptions."""
    qos = min(message.qos, max(one.qos for one in subscriptions))
    retain = message.retain and any(one.retain_as_published for one in subscriptions)
    identifiers = tuple(one.identifier for one in subscriptions if one.identifier is not None)
    return Owed(message, qos, retain, identifiers)


def _is_behind(client: Client, fill: float, now: float) -> bool:
    """Whether the queue of a client is fuller than this, and the client reads it."""
    session = client.session
    return session is not None and session.fill > fill and client.pace.keeps_up(session.queued, now)

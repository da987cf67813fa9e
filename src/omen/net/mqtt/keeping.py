"""Sessions that outlive their node: what of them is to be stored when, and how they go on at another node.

A session with an expiry, or whose client has a will, is stored. What an acknowledgement promises is stored before it
goes out (SUBACK, UNSUBACK, PUBREC, PUBREL, PUBCOMP); messages on their way to a client, and what it has acknowledged,
soon after. So a node that takes a session over has all of it but the last moments, and makes up for those from the
windows of the overlay: the session says how far it was in each stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from omen.net.groups import Member
from omen.net.mqtt.codec import LONGEST_EXPIRY
from omen.net.mqtt.deliveries import Deliveries, owed_by
from omen.net.mqtt.outputs import Carry, Client, DoorLimits, Forget, Publish, Save
from omen.net.mqtt.session import AT_LEAST_ONCE, ApplicationMessage, Session, Stream, Subscription, Taken
from omen.net.mqtt.stored import (
    Change,
    SessionHead,
    StoredSession,
    complete_until,
    is_plain_mark,
    pack_marks,
    segment_key,
    unpack_marks,
    write_head,
    write_segments,
)
from omen.net.mqtt.topics import filter_of, has_wildcard, is_shared, matches

KEPT_LONGER_S = 8 * 24 * 3600.0
"""Records are kept for so much longer than their session; sessions are stored again within a day."""
STORED_AGAIN_S = 24 * 3600.0
REMOVAL_S = 24 * 3600.0
"""A removed session is remembered for so long, in case a node comes with an old record."""
CATCH_UP_S = 15.0
"""For so long after a session has come from a crashed node, what comes from windows is looked through for it."""
CHOSEN_BEFORE_S = 1.0
"""What came so long before a node was heard of last may not have got through to its clients."""
RECENT_S, RECENT_BYTES = 25.0, 16 << 20
"""Messages that came last are kept for sessions that come from another node: as long as windows are."""


class Recent(msgspec.Struct, frozen=True):
    """A message that came lately, and where in its stream. `published_at`: 0 where it is not known."""

    at: float
    message: ApplicationMessage
    stream: Stream
    sequence: int
    published_at: float = 0.0


class Keeping(Deliveries):
    """`owner`: the name of this door among all; empty: nothing is stored."""

    def __init__(self, limits: DoorLimits) -> None:
        super().__init__(limits)
        self._wills: dict[str, tuple[float, ApplicationMessage]] = {}
        self._dirty: set[str] = set()
        self._waiters: dict[str, list[Callable[[], None]]] = {}
        self._saving: dict[str, list[Callable[[], None]]] = {}
        self._asked: set[str] = set()
        self._recent: deque[Recent] = deque()
        self._recent_bytes = 0

    # Storing

    def _is_stored(self, session: Session) -> bool:
        client = self._online.get(session.client_id)
        return bool(self.owner) and (session.expiry > 0 or (client is not None and client.will is not None))

    def stores(self, client_id: str) -> bool:
        """Whether the session of a client is stored by this door."""
        session = self.sessions.get(client_id)
        return session is not None and self._is_stored(session)

    def _note(self, session: Session) -> None:
        """Something has changed that is stored soon."""
        if self.owner:
            self._dirty.add(session.client_id)

    def _persist(self, session: Session, then: Callable[[], None] | None = None) -> None:
        """Store a session now; `then`: what is promised by it."""
        if not self._is_stored(session):
            if then is not None:
                then()
            return
        self._dirty.add(session.client_id)
        if then is not None:
            self._waiters.setdefault(session.client_id, []).append(then)
        self._ask_to_save(session.client_id)

    def _ask_to_save(self, client_id: str) -> None:
        if client_id not in self._saving and client_id not in self._asked:
            self._asked.add(client_id)
            self._out.append(Save(client_id))

    def save_soon(self) -> None:
        """Several times per second: what has changed is stored."""
        for client_id in list(self._dirty):
            session = self.sessions.get(client_id)
            if session is None or not self._is_stored(session):
                self._dirty.discard(client_id)
            else:
                self._ask_to_save(client_id)

    def begin_save(self, client_id: str, now: float) -> list[Change] | None:
        """What is to be stored of a session; None: nothing any more."""
        self._asked.discard(client_id)
        session, waiters = self.sessions.get(client_id), self._waiters.pop(client_id, [])
        if session is None or client_id not in self._dirty:
            for then in waiters:
                then()
            return None
        self._dirty.discard(client_id)
        self._saving[client_id] = waiters
        return self._changes(session, now)

    def saved(self, client_id: str) -> None:
        """It is stored: what was promised by it goes out."""
        for then in self._saving.pop(client_id, []):
            then()

    def _changes(self, session: Session, now: float, is_released: bool = False) -> list[Change]:
        client = None if is_released else self._online.get(session.client_id)
        will_at, will = self._wills.get(session.client_id, (0.0, None))
        life = min(session.expiry, self.limits.session_expiry_s) + KEPT_LONGER_S
        session.saved_at = now
        owed = session.owed()
        first = owed[0][0] if owed else session.next_number
        last = max((numbers[-1] for numbers in session.written.values()), default=-1)
        changes = []
        for numbers, change in write_segments(session.client_id, [one for one in owed if one[0] > last], life):
            session.written[numbers[0]] = numbers
            changes.append(change)
        for begin, numbers in list(session.written.items()):
            if numbers[-1] < first:
                del session.written[begin]
                changes.append(Change(segment_key(session.client_id, begin), b"", REMOVAL_S))
        open_numbers = {number for number, _ in owed}
        written = (number for numbers in session.written.values() for number in numbers)
        seen = session.seen(now)
        head = SessionHead(
            session.client_id,
            "" if is_released else self.owner,
            client is not None,
            session.expiry,
            session.ends_at,
            tuple(session.subscriptions.values()),
            tuple(number for number, taken in session.received.items() if taken.is_published),
            session.inflight_numbers(),
            first,
            tuple(number for number in written if number >= first and number not in open_numbers),
            session.told_positions(now),
            client.will if client is not None else will,
            client.will_delay if client is not None else 0,
            tuple((number, taken.mark) for number, taken in session.received.items() if not taken.is_published),
            tuple(mark for mark in seen if not is_plain_mark(mark)),
            now,
            session.runs_ahead(),
            tuple((number, taken.shares) for number, taken in session.received.items() if taken.shares),
            tuple((number, one.mark, one.at) for number, one in session.received.items()),
            pack_marks(mark for mark in seen if is_plain_mark(mark)),
            0.0 if client is not None else will_at,
            session.begun,
        )
        return [write_head(head, life), *changes]

    def _forget(self, session: Session) -> None:
        """A session has ended for good."""
        if self.owner and session.saved_at:
            self._out.append(Forget(session.client_id, tuple(session.written)))
        self._dirty.discard(session.client_id)

    def _send_saved(self, client: Client, packet: Any, now: float) -> None:
        """Send a packet once the session is stored as it is now."""
        session, number = client.session, client.number
        assert session is not None

        def send() -> None:
            there = self.clients.get(number)
            if there is not None and there.session is session and not self._send(there, packet):
                self._flush(there, now)  # nothing will come back for it

        self._persist(session, send)

    # Taking sessions over

    def remember(
        self, message: ApplicationMessage, stream: Stream, sequence: int, now: float, published_at: float = 0.0
    ) -> None:
        """Keep a message for sessions that come from another node in the next seconds."""
        if not self.owner or not message.qos:
            return
        recent = self._recent
        recent.append(Recent(now, message, stream, sequence, published_at))
        self._recent_bytes += message.size
        while recent and (recent[0].at < now - RECENT_S or self._recent_bytes > RECENT_BYTES):
            self._recent_bytes -= recent.popleft().message.size

    def _take_over(self, stored: StoredSession, now: float) -> Session:
        """Go on with a session of another node, and with what it missed since."""
        head = stored.head
        session = self.sessions[head.client_id] = Session(head.client_id, head.expiry, self.limits.session)
        last = max((number for number, _ in stored.messages), default=0)
        session.next_number = max(last + 1, head.first, int(now * 1e6))
        session.begun = head.begun
        session.received = _restore_taken(head)
        for mark in (*head.seen, *unpack_marks(head.marks)):
            session.sees(mark, now)
        session.restore(stored.messages, head.inflight)
        session.written = {begin: list(numbers) for begin, numbers in stored.segments}
        session.positions = {stream: (sequence, now) for stream, sequence in head.positions}
        session.restore_ahead(head.ahead)
        session.saved_at = now
        begin: tuple[str, ...] = ()
        for subscription in head.subscriptions:
            begin += self._subscribe(session, subscription).begin
        self._replays[head.client_id] = now + RECENT_S
        if begin or any(has_wildcard(one.pattern) for one in head.subscriptions):
            self._out.append(Carry(0, begin, replay=True))
        session.catching_up_until = now + CATCH_UP_S
        session.complete_until = complete_until(head)
        self.catch_up(session.client_id, self._recent, now)
        return session

    def catch_up(self, client_id: str, messages: Iterable[Recent], now: float) -> None:
        """Queue what came before a session that another node had came here, and that it has not had."""
        session = self.sessions.get(client_id)
        if session is None or now >= session.catching_up_until:
            return
        subscriptions = list(session.subscriptions.values())
        for recent in sorted(messages, key=lambda one: (one.at, one.sequence)):
            self._catch_up(session, subscriptions, recent, now)
        self._note(session)
        client = self._online.get(client_id)
        if client is not None:
            self._flush(client, now)

    def _catch_up(self, session: Session, subscriptions: list[Subscription], recent: Recent, now: float) -> None:
        message = recent.message
        mine = [one for one in subscriptions if self._is_for(session, one, recent)]
        if 0 < recent.published_at < session.complete_until:
            return
        if not mine or session.has(recent.stream, recent.sequence):
            return
        owed = owed_by(message, mine)
        if not owed.qos or not session.sees(message.mark, now):
            return
        session.note(recent.stream, recent.sequence, now)
        session.put(owed)

    def _is_for(self, session: Session, subscription: Subscription, recent: Recent) -> bool:
        pattern = subscription.pattern
        if not matches(filter_of(pattern), recent.message.topic):
            return False
        if subscription.no_local and recent.message.client == session.client_id:
            return False
        if not is_shared(pattern):
            return True
        return self._choose(pattern, recent.message, recent.stream, recent.sequence) == session.client_id

    def choose_again(self, gone: Mapping[str, tuple[Member, ...]], since: float, now: float) -> None:
        """Members of shared subscriptions have gone with their node, and their sessions with them: what it may not have
        given them goes to another member (5.0, section 4.8.2). Not with QoS 2, which none may get twice (MQTT-4.8.2-4).
        """
        names = {group: {one.name for one in members} for group, members in gone.items()}
        for recent in list(self._recent):
            message = recent.message
            if recent.at < since - CHOSEN_BEFORE_S or message.qos != AT_LEAST_ONCE:
                continue
            for group, member in message.shares:
                if member in names.get(group, ()):
                    self._give_again(group, recent, now)

    def _give_again(self, group: str, recent: Recent, now: float) -> None:
        chosen = self.groups.choose(group, f"{group}|{recent.stream}|{recent.sequence}")
        session = None if chosen is None else self.sessions.get(chosen)
        if session is None or group not in session.subscriptions:
            return
        self.chosen_again += 1
        owed = owed_by(recent.message, [session.subscriptions[group]])
        client = self._online.get(session.client_id)
        if owed.qos:
            self._owe(session, client, owed, now)
        elif client is not None:
            self._give(client, owed, {}, now)

    def adopt(self, stored: StoredSession, now: float) -> None:
        """The node of a session has crashed, and its client is nowhere: queue here what comes for it."""
        head = stored.head
        if head.client_id in self.sessions:
            return
        session = self._take_over(stored, now)
        if head.is_online and head.will is not None:
            delay = min(head.will_delay, head.expiry)
            if delay:
                self._wills[head.client_id] = (now + delay, head.will)
            else:
                self._publish_will(head.will)
        elif head.will_at and head.will is not None:
            self._wills[head.client_id] = (head.will_at, head.will)
        if not head.expiry:
            self._end_session(session)
            return
        session.ends_at = head.ends_at if head.ends_at is not None else self._end_of(session, now)
        self._persist(session)

    def _end_of(self, session: Session, now: float) -> float | None:
        """When a session ends whose client has just gone."""
        longest = self.limits.session_expiry_s
        is_endless = session.expiry == LONGEST_EXPIRY and longest == LONGEST_EXPIRY
        return None if is_endless else now + min(session.expiry, longest)

    def disown(self, client_id: str, begun: float) -> None:
        """Another node has the session now: what is here of it, and not connected, goes. Where it is another session,
        which has `begun` later, this one has ended, and its will is not taken back.
        """
        session = self.sessions.get(client_id)
        if session is not None and client_id not in self._online:
            _, will = self._wills.get(client_id, (0.0, None))
            if will is not None and begun > session.begun > 0:
                self._publish_will(will)
            self._end_session(session, is_moved=True)

    def store_again(self, client_id: str) -> None:
        """Another node may have stored the session of a client that is here: what is here counts."""
        session = self.sessions.get(client_id)
        if session is not None:
            self._persist(session)

    def has_will(self, client_id: str) -> bool:
        """Whether a client is connected here that has a will."""
        client = self._online.get(client_id)
        return client is not None and client.will is not None

    @property
    def waiting_wills(self) -> int:
        """How many wills wait for the end of their delay."""
        return len(self._wills)

    def publish_will_of(self, head: SessionHead, now: float = 0.0) -> None:
        """The node of a session has crashed, and its client goes on with it: its will is published unless its delay has
        not ended.
        """
        is_due = not head.will_delay if head.is_online else 0 < head.will_at <= now
        if head.will is not None and is_due:
            self._publish_will(head.will)

    def _publish_will(self, will: ApplicationMessage) -> None:
        self.wills += 1
        self._out.append(Publish(0, 0, will))

    def _end_session(self, session: Session, is_moved: bool = False) -> None:
        self.sessions.pop(session.client_id, None)
        for pattern in list(session.subscriptions):
            self._unsubscribe(session, pattern)
        will = self._wills.pop(session.client_id, None)
        if will is not None and not is_moved:
            self._publish_will(will[1])
        if is_moved:
            self._dirty.discard(session.client_id)
        else:
            self._forget(session)


def _restore_taken(head: SessionHead) -> dict[int, Taken]:
    """The messages with QoS 2 that a client has not released, as another node had them."""
    shares = dict(head.pending_shares)
    published = {number: (mark, at) for number, mark, at in head.published}
    taken = {number: Taken("", shares.get(number, ()), is_published=True) for number in head.received}
    for number, one in taken.items():
        one.mark, one.at = published.get(number, ("", 0.0))
        one.is_restored = True
    pending = {number: Taken(mark, shares.get(number, ())) for number, mark in head.pending}
    for number, one in pending.items():
        one.at = published.get(number, ("", 0.0))[1]
    return taken | pending

"""What a server owes one client, and what it has taken from it: an MQTT session (5.0, section 4.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
from mqtt5 import PublishPacket, PubRelPacket, QoS

HIGHEST_ID = 65_535
Stream = tuple[str, int, int]
"""Topic, publisher and incarnation: what one node publishes on one topic."""
REMEMBERED_S = 45.0
"""How far a stream was is told so long after its last message: windows keep none for longer."""
AT_LEAST_ONCE, EXACTLY_ONCE = 1, 2
SEEN_S, SEEN_AT_MOST = 60.0, 8192
"""A client sends a message again as soon as it has found another node: marks are remembered so long, and so many, which
is about a megabyte.
"""
AGAIN_S = 45.0
"""What another node published so long ago is published again under its mark, for those who have not had it."""
RUNS_AT_MOST, RUN_AT_MOST = 256, 100_000
"""Of messages that came while a session caught up, in what is stored of it; and messages in one run."""
OVERHEAD = 100
"""What a queued message costs beside its payload and topic, in bytes."""


class ApplicationMessage(msgspec.Struct, frozen=True):
    """A message as its publisher meant it. `expires_at`: in seconds since 1970; `client`: who published it.

    `mark`: the same for a message with QoS 2 that two nodes published, since its client could not know of the first.
    `shares`: which client gets it of each shared subscription.
    """

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    expires_at: float | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    is_text: bool = False
    user_properties: tuple[tuple[str, str], ...] = ()
    client: str = ""
    mark: str = ""
    shares: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return len(self.payload) + len(self.topic) + OVERHEAD


class Subscription(msgspec.Struct, frozen=True):
    """How a client wants what matches one of its filters."""

    pattern: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int | None = None


class Owed(msgspec.Struct, frozen=True):
    """One message on its way to one client."""

    message: ApplicationMessage
    qos: int
    retain: bool = False
    identifiers: tuple[int, ...] = ()

    def packet(self, now: float, packet_id: int | None = None, duplicate: bool = False) -> PublishPacket:
        message = self.message
        left = None if message.expires_at is None else max(1, round(message.expires_at - now))
        return PublishPacket(
            message.topic,
            message.payload,
            qos=QoS(self.qos),
            retain=self.retain,
            packet_id=packet_id,
            duplicate=duplicate,
            payload_format_indicator=int(message.is_text),
            message_expiry_interval=left,
            content_type=message.content_type,
            response_topic=message.response_topic,
            correlation_data=message.correlation_data,
            subscription_ids=list(self.identifiers),
            user_properties=list(message.user_properties),
        )

    def is_expired(self, now: float) -> bool:
        return self.message.expires_at is not None and self.message.expires_at <= now


class Taken(msgspec.Struct):
    """A message with QoS 2 that a client sent and has not released. `is_under_way`: this node is publishing it; `at`:
    when it was published first; `is_restored`: by another node, or before this one was started again.
    """

    mark: str
    shares: tuple[tuple[str, str], ...] = ()
    is_published: bool = False
    is_under_way: bool = False
    at: float = 0.0
    is_restored: bool = False

    def may_be_lost(self, now: float) -> bool:
        """Whether it is published once more, under its mark, when its client sends it again: nodes that held it may
        have crashed since, all of them where the whole cluster has. Who has had it still knows the mark.
        """
        return self.is_restored and bool(self.mark) and not self.is_under_way and now - self.at < AGAIN_S


class SessionLimits(msgspec.Struct, frozen=True):
    """What a server keeps for one client."""

    queue_messages: int = 10_000
    queue_bytes: int = 8 << 20
    inflight: int = 100


class Session:
    """Subscriptions, and messages with QoS 1 and 2 that are not acknowledged yet, in their order.

    `received`: identifiers of QoS 2 messages taken and not released. `dropped`: messages the queue had no room for.
    `ahead`: what came while the session catches up, beyond its position in a stream.
    """

    def __init__(self, client_id: str, expiry: int, limits: SessionLimits) -> None:
        self.client_id = client_id
        self.expiry = expiry
        self.begun = 0.0
        self.ends_at: float | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.received: dict[int, Taken] = {}
        self.dropped = 0
        self._limits = limits
        self._queue: deque[tuple[int, Owed]] = deque()
        self._bytes = 0
        self._inflight: dict[int, tuple[int, Owed | None]] = {}  # None: received by the client, to be released
        self._again: deque[int] = deque()  # in flight before this connection, and not sent on it yet
        self._next_id = 0
        self.next_number = 1
        self.positions: dict[Stream, tuple[int, float]] = {}
        self.written: dict[int, list[int]] = {}  # the numbers in each segment that is stored
        self.saved_at = 0.0
        self.catching_up_until = self.complete_until = 0.0
        self.ahead: set[tuple[Stream, int]] = set()
        self._seen: dict[str, float] = {}

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def marks(self) -> int:
        """How many marks are remembered."""
        return len(self._seen)

    @property
    def queued_bytes(self) -> int:
        return self._bytes

    @property
    def fill(self) -> float:
        """How full the queue is, 1 at most."""
        return max(len(self._queue) / self._limits.queue_messages, self._bytes / self._limits.queue_bytes)

    @property
    def in_flight(self) -> int:
        return len(self._inflight)

    def put(self, owed: Owed) -> bool:
        """Queue a message with QoS 1 or 2; whether there was room for it."""
        size = owed.message.size
        if len(self._queue) >= self._limits.queue_messages or self._bytes + size > self._limits.queue_bytes:
            self.dropped += 1
            return False
        self._queue.append((self.next_number, owed))
        self.next_number += 1
        self._bytes += size
        return True

    def take(self, receive_max: int, now: float) -> Iterator[PublishPacket | PubRelPacket]:
        """What may be sent now: as much as the client can have in flight, what was sent before first."""
        most = min(receive_max, self._limits.inflight)
        while self._again and len(self._inflight) - len(self._again) < most:
            packet_id = self._again.popleft()
            if packet_id in self._inflight:
                owed = self._inflight[packet_id][1]
                yield PubRelPacket(packet_id) if owed is None else owed.packet(now, packet_id, duplicate=True)
        while self._queue and len(self._inflight) < most:
            number, owed = self._queue.popleft()
            self._bytes -= owed.message.size
            if owed.is_expired(now):
                continue
            packet_id = self._free_id()
            self._inflight[packet_id] = (number, owed)
            yield owed.packet(now, packet_id)

    def _free_id(self) -> int:
        while True:
            self._next_id = self._next_id % HIGHEST_ID + 1
            if self._next_id not in self._inflight:
                return self._next_id

    def resume(self) -> None:
        """On a new connection all that was in flight is sent again, in its order (MQTT-4.4.0-1)."""
        self._again = deque(self._inflight)

    def on_puback(self, packet_id: int) -> bool:
        """A message with QoS 1 is done. False: there is none of that number."""
        _, owed = self._inflight.get(packet_id, (0, None))
        if owed is None or owed.qos != AT_LEAST_ONCE:
            return False
        del self._inflight[packet_id]
        return True

    def on_pubrec(self, packet_id: int, is_refused: bool) -> bool:
        """A message with QoS 2 was received, or refused: it is not sent again. False: there is none of that number."""
        if packet_id not in self._inflight:
            return False
        _, owed = self._inflight[packet_id]
        if owed is not None and owed.qos != EXACTLY_ONCE:
            return False
        if is_refused:
            del self._inflight[packet_id]
        else:
            self._inflight[packet_id] = (0, None)
        return True

    def on_pubcomp(self, packet_id: int) -> bool:
        """A message with QoS 2 is done. False: there is none of that number that was received."""
        if packet_id not in self._inflight or self._inflight[packet_id][1] is not None:
            return False
        del self._inflight[packet_id]
        return True

    def owed(self) -> list[tuple[int, Owed]]:
        """The messages that are not done, with their numbers."""
        inflight = [(number, owed) for number, owed in self._inflight.values() if owed is not None]
        return sorted([*inflight, *self._queue], key=lambda item: item[0])

    def inflight_numbers(self) -> tuple[tuple[int, int], ...]:
        """Packet identifiers, and the number of the message that each stands for; 0: to be released."""
        return tuple((packet_id, number) for packet_id, (number, _) in self._inflight.items())

    def restore(self, messages: Iterable[tuple[int, Owed]], inflight: Iterable[tuple[int, int]]) -> None:
        """Go on where another node was: the same packet identifiers stand for the same messages."""
        left = dict(messages)
        for packet_id, number in inflight:
            if number == 0:
                self._inflight[packet_id] = (0, None)
            elif number in left:
                self._inflight[packet_id] = (number, left.pop(number))
            self._next_id = packet_id
        self._queue.extend(sorted(left.items(), key=lambda item: item[0]))
        self._bytes += sum(owed.message.size for _, owed in self._queue)

    def has(self, stream: Stream, sequence: int) -> bool:
        """Whether a message was here before, as before the session moved."""
        return self.positions.get(stream, (0, 0.0))[0] >= sequence or (stream, sequence) in self.ahead

    def note(self, stream: Stream, sequence: int, now: float) -> None:
        """A message of a stream is here. While the session catches up, earlier ones may follow."""
        position = self.positions.get(stream, (0, 0.0))[0]
        if now < self.catching_up_until and (not position or sequence != position + 1):
            self.ahead.add((stream, sequence))
            return
        if self.ahead and now >= self.catching_up_until:
            self._pass_ahead(now)
            position = self.positions.get(stream, (0, 0.0))[0]
        self.positions[stream] = (max(sequence, position), now)

    def _pass_ahead(self, now: float) -> None:
        """What came while the session caught up: nothing in front of it will follow."""
        for stream, sequence in self.ahead:
            self.positions[stream] = (max(sequence, self.positions.get(stream, (0, 0.0))[0]), now)
        self.ahead.clear()

    def runs_ahead(self) -> tuple[tuple[Stream, int, int], ...]:
        """What came while the session catches up, first and last of each run: should it move once more before the end
        of that, nothing of it comes again.
        """
        runs: list[tuple[Stream, int, int]] = []
        for stream, sequence in sorted(self.ahead):
            if runs and runs[-1][0] == stream and runs[-1][2] == sequence - 1:
                runs[-1] = (stream, runs[-1][1], sequence)
            else:
                runs.append((stream, sequence, sequence))
        return tuple(runs[-RUNS_AT_MOST:])

    def sees(self, mark: str, now: float) -> bool:
        """Whether a message with this mark is the first; it is remembered."""
        if not mark:
            return True
        if mark in self._seen:
            return False
        self._seen[mark] = now
        for oldest in list(islice(self._seen, 2)):  # two for each that comes: as many as came in that time are left
            if len(self._seen) > SEEN_AT_MOST or self._seen[oldest] < now - SEEN_S:
                del self._seen[oldest]
        return True

    def restore_ahead(self, runs: Iterable[tuple[Stream, int, int]]) -> None:
        """What the session had beyond its positions when it was stored."""
        for stream, first, last in runs:
            self.ahead.update((stream, sequence) for sequence in range(first, last + 1)[:RUN_AT_MOST])

    def told_positions(self, now: float) -> tuple[tuple[Stream, int], ...]:
        """How far the session is in each stream of which something came lately."""
        if self.ahead and now >= self.catching_up_until:
            self._pass_ahead(now)
        self.positions = {stream: at for stream, at in self.positions.items() if now - at[1] < REMEMBERED_S}
        return tuple((stream, sequence) for stream, (sequence, _) in self.positions.items())

    def seen(self, now: float) -> tuple[str, ...]:
        """The marks that may still come again."""
        self._seen = {mark: at for mark, at in self._seen.items() if now - at < SEEN_S}
        return tuple(self._seen)

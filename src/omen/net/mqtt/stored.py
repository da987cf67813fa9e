"""What of a session is stored, so that it outlives its node: a head, and the messages it owes in segments.

All records of a session are in one place, that of its client id. A head is written again whenever something changes; a
segment is written once, and removed when all its messages are done. Messages have numbers that never come again, so a
segment that was left behind means nothing to a later session of the same client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise

import msgspec

from omen.net.mqtt.session import ApplicationMessage, Owed, Stream, Subscription
from omen.net.security.hello import UNREADABLE
from omen.protocol.messages.records import Record

HEAD, SEGMENT, RETAINED, PUBLISHED = b"s/", b"q/", b"r/", b"p/"
SEGMENT_BYTES = 256 << 10


class SessionHead(msgspec.Struct, frozen=True):
    """A session but for its messages. `owner`: the front door that has it, empty where none has.

    `inflight`: packet identifiers and numbers of messages, 0 where only the release is awaited. Messages below `first`
    are done, and those in `done`. `positions`: up to which sequence of a stream the session has everything. `pending`:
    messages with QoS 2 that its node took, and may have published, by their marks; `pending_shares`: to whom of shared
    subscriptions; `published`: the marks of all these, and when; `seen` and `marks`: marks that came lately;
    `saved_at`: when this was written, in seconds since 1970; `ahead`: runs of messages beyond its positions. `will_at`:
    when the will of a client that is gone is published, 0 where it is not; `begun`: when the session began.
    """

    client_id: str
    owner: str
    is_online: bool
    expiry: int
    ends_at: float | None
    subscriptions: tuple[Subscription, ...] = ()
    received: tuple[int, ...] = ()
    inflight: tuple[tuple[int, int], ...] = ()
    first: int = 0
    done: tuple[int, ...] = ()
    positions: tuple[tuple[Stream, int], ...] = ()
    will: ApplicationMessage | None = None
    will_delay: int = 0
    pending: tuple[tuple[int, str], ...] = ()
    seen: tuple[str, ...] = ()
    saved_at: float = 0.0
    ahead: tuple[tuple[Stream, int, int], ...] = ()
    pending_shares: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    published: tuple[tuple[int, str, float], ...] = ()
    marks: tuple[tuple[str, tuple[int, ...]], ...] = ()
    will_at: float = 0.0
    begun: float = 0.0


class StoredSession(msgspec.Struct, frozen=True):
    """A session as it was read: its head, the messages it owes in their order, and the numbers in each segment."""

    head: SessionHead
    messages: tuple[tuple[int, Owed], ...]
    segments: tuple[tuple[int, tuple[int, ...]], ...] = ()


class Published(msgspec.Struct, frozen=True):
    """A message that was acknowledged to its publisher, for sessions whose nodes crash before they have stored it."""

    message: ApplicationMessage
    stream: Stream
    sequence: int
    at: float = 0.0


class Change(msgspec.Struct, frozen=True):
    """A record to be written for a session. An empty value removes it."""

    key: bytes
    value: bytes
    life_s: float


_heads: msgspec.msgpack.Decoder[SessionHead] = msgspec.msgpack.Decoder(SessionHead)
_segments: msgspec.msgpack.Decoder[list[tuple[int, Owed]]] = msgspec.msgpack.Decoder(list[tuple[int, Owed]])


_published: msgspec.msgpack.Decoder[Published] = msgspec.msgpack.Decoder(Published)


ON_ITS_WAY_S = 10.0
"""How long a message may take from its publisher to a session, and how far apart clocks may be."""


def complete_until(head: SessionHead) -> float:
    """What was published before this time has been in a session as it was stored, and may be done.

    Messages are held for longer than they should be where nodes come and go, for each that takes them over counts their
    time anew; without this, sessions would get them once more.
    """
    return max(0.0, head.saved_at - ON_ITS_WAY_S)


def pack_marks(marks: Iterable[str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Marks in few bytes: of each door its numbers, each as what it is more than the one before."""
    by_door: dict[str, list[int]] = {}
    for mark in marks:
        door, _, number = mark.rpartition("/")
        by_door.setdefault(door, []).append(int(number))
    return tuple((door, tuple(_steps(sorted(numbers)))) for door, numbers in by_door.items())


def _steps(numbers: list[int]) -> Iterator[int]:
    return (number - before for before, number in pairwise([0, *numbers]))


def unpack_marks(packed: Iterable[tuple[str, tuple[int, ...]]]) -> Iterator[str]:
    for door, steps in packed:
        yield from (f"{door}/{number}" for number in accumulate(steps))


def is_plain_mark(mark: str) -> bool:
    """Whether it is one that a front door makes: its own name and a number."""
    number = mark.rpartition("/")[2]
    return number.isascii() and number.isdigit() and str(int(number)) == number


def place_of_topic(topic: str) -> str:
    return f"mqtt topic {topic}"


def published_key(published: Published) -> bytes:
    _, publisher, incarnation = published.stream
    return PUBLISHED + b"%020d/%010d/%020d" % (publisher, incarnation, published.sequence)


def read_published(topic: str, records: Iterable[Record]) -> list[Published]:
    """The messages of a topic in the records of its place, each stream in its order."""
    found = []
    for record in sorted(records, key=lambda record: record.key):
        if record.key.startswith(PUBLISHED) and record.value:
            try:
                found.append(_published.decode(record.value))
            except UNREADABLE:
                continue
    return [one for one in found if one.message.topic == topic]


def place_of_client(client_id: str) -> str:
    return f"mqtt session {client_id}"


def place_of_retained(topic: str) -> str:
    return f"mqtt retained {topic}"


def head_key(client_id: str) -> bytes:
    return HEAD + client_id.encode()


def segment_key(client_id: str, first: int) -> bytes:
    return SEGMENT + client_id.encode() + b"/%020d" % first


def read_head(record: Record) -> SessionHead | None:
    """The head in a record; None: it was removed, or cannot be read."""
    if not record.value or not record.key.startswith(HEAD):
        return None
    try:
        return _heads.decode(record.value)
    except UNREADABLE:
        return None


def read_session(client_id: str, records: Iterable[Record]) -> StoredSession | None:
    """The session in the records of its place; None: there is none."""
    by_key = {record.key: record for record in records}
    record = by_key.get(head_key(client_id))
    head = None if record is None else read_head(record)
    if head is None:
        return None
    prefix, done = segment_key(client_id, 0)[:-20], set(head.done)
    messages: dict[int, Owed] = {}
    segments = []
    for key in sorted(by_key):
        if key.startswith(prefix):
            try:
                segment = _segments.decode(by_key[key].value)
            except UNREADABLE:
                continue
            segments.append((int(key[-20:]), tuple(number for number, _ in segment)))
            messages.update({number: owed for number, owed in segment if number >= head.first and number not in done})
    return StoredSession(head, tuple(sorted(messages.items(), key=lambda item: item[0])), tuple(segments))


def without_will(stored: StoredSession) -> StoredSession:
    """A session whose will is another's to publish."""
    return msgspec.structs.replace(stored, head=msgspec.structs.replace(stored.head, will=None))


def write_head(head: SessionHead, life_s: float) -> Change:
    return Change(head_key(head.client_id), msgspec.msgpack.encode(head), life_s)


def write_segments(
    client_id: str, messages: Iterable[tuple[int, Owed]], life_s: float
) -> Iterator[tuple[list[int], Change]]:
    """Messages in segments of a bounded size, each with the numbers in it."""
    part: list[tuple[int, Owed]] = []
    size = 0
    for number, owed in messages:
        if part and size + owed.message.size > SEGMENT_BYTES:
            yield _segment(client_id, part, life_s)
            part, size = [], 0
        part.append((number, owed))
        size += owed.message.size
    if part:
        yield _segment(client_id, part, life_s)


def _segment(client_id: str, part: list[tuple[int, Owed]], life_s: float) -> tuple[list[int], Change]:
    numbers = [number for number, _ in part]
    return numbers, Change(segment_key(client_id, numbers[0]), msgspec.msgpack.encode(part), life_s)

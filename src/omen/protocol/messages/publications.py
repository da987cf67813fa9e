"""What nodes say to each other about publications: the publications themselves, and what each of two neighbours has.

A stream is what one incarnation of a publisher publishes on one topic, numbered one after the other. A run is a part
of it without a silence after which neighbours compare it no more: what comes before the first of a run is kept by
nobody, and was heard of by all who were there.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any

import msgspec

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.base import Incarnation, Place
from omen.protocol.messages.overlay import Message

PLAIN, OPENING, FIELDS = 1, 2, 4
"""The first byte of a publication: the first of a run, or any other; with `FIELDS` added, a block of fields follows."""
KINDS = frozenset({PLAIN, OPENING, PLAIN | FIELDS, OPENING | FIELDS})

_HEADER = struct.Struct(">B20sQ")
_KEY = struct.Struct(">QQI")
_BLOCK = struct.Struct(">H")
HEADER_BYTES = _HEADER.size
unpack_header = _HEADER.unpack_from
"""Kind, key and sequence, from a frame that has so many bytes."""
HIGHEST_SEQUENCE = 1 << 62
"""Far from where the next one would no longer fit into the wire form: what nobody can say, nobody may claim."""

Sequence = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_SEQUENCE)]
Known = Annotated[int, msgspec.Meta(ge=-1, le=HIGHEST_SEQUENCE)]

HOLES_AT_MOST = 16
"""Told in one mark; of a stream with more, only what is in front of the rest is told."""
Ranges = Annotated[tuple[tuple[Sequence, Sequence], ...], msgspec.Meta(max_length=4 * HOLES_AT_MOST)]

StreamKey = bytes
"""Topic, publisher and incarnation as they stand in the frame: one look-up finds the stream."""


def stream_key(topic: Topic, publisher: NodeId, incarnation: int) -> StreamKey:
    return _KEY.pack(topic, publisher, incarnation)


def read_key(key: StreamKey) -> tuple[Topic, NodeId, int]:
    """Topic, publisher, incarnation."""
    return _KEY.unpack(key)


class Publication(Message, frozen=True, gc=False):
    """One publication. `frame` is what came over the wire and goes out again as it is."""

    key: StreamKey
    sequence: int
    frame: bytes

    @property
    def topic(self) -> Topic:
        return read_key(self.key)[0]

    @property
    def publisher(self) -> NodeId:
        return read_key(self.key)[1]

    @property
    def incarnation(self) -> int:
        return read_key(self.key)[2]

    @property
    def payload(self) -> bytes:
        if self.frame[0] < FIELDS:
            return self.frame[HEADER_BYTES:]
        return self.frame[_block_end(self.frame) :]

    @property
    def fields(self) -> bytes:
        """The block of fields as it came; empty: there is none."""
        if self.frame[0] < FIELDS:
            return b""
        return self.frame[HEADER_BYTES + _BLOCK.size : _block_end(self.frame)]

    @property
    def is_opening(self) -> bool:
        """Whether nobody keeps anything of the stream that came before this one."""
        return self.frame[0] & OPENING != 0


def _block_end(frame: bytes) -> int:
    length: int = _BLOCK.unpack_from(frame, HEADER_BYTES)[0]
    return HEADER_BYTES + _BLOCK.size + length


def make_publication(key: StreamKey, sequence: int, payload: bytes, opening: bool, fields: bytes = b"") -> Publication:
    kind = OPENING if opening else PLAIN
    if fields:
        header = _HEADER.pack(kind | FIELDS, key, sequence)
        return Publication(key, sequence, b"".join((header, _BLOCK.pack(len(fields)), fields, payload)))
    return Publication(key, sequence, _HEADER.pack(kind, key, sequence) + payload)


def parse_publication(frame: bytes) -> Publication:
    """The publication in a frame whose first byte says it is one; struct.error where header or fields are cut off."""
    kind, key, sequence = unpack_header(frame)
    if kind >= FIELDS and _block_end(frame) > len(frame):
        raise struct.error("a publication is cut off in its fields")
    return Publication(key, sequence, frame)


def without_fields(frame: bytes) -> bytes:
    """The frame for a node of version 0.1, which does not know fields: header and payload."""
    if frame[0] < FIELDS:
        return frame
    return b"".join((bytes((frame[0] - FIELDS,)), frame[1:HEADER_BYTES], frame[_block_end(frame) :]))


FIELDS_BYTES_AT_MOST = (1 << 16) - 1
HEADERS, TIMESTAMP, EXPIRY, REPLY_TO, CONTENT_TYPE, SIGNATURE, CERTIFICATE = range(1, 8)
"""The numbers of the fields. A number that is not known is passed on and not looked at."""


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """What may go with a payload. `timestamp`, `expiry`: milliseconds since 1970, by the publisher's clock.

    `signature`: the publisher's, over all else. `certificate`: what it can be verified with, now and then.
    """

    headers: dict[str, str] = {}
    timestamp: int | None = None
    expiry: int | None = None
    reply_to: str | None = None
    content_type: str | None = None
    signature: bytes | None = None
    certificate: bytes | None = None


_NAMES = {
    HEADERS: "headers",
    TIMESTAMP: "timestamp",
    EXPIRY: "expiry",
    REPLY_TO: "reply_to",
    CONTENT_TYPE: "content_type",
    SIGNATURE: "signature",
    CERTIFICATE: "certificate",
}
RawFields = dict[int, msgspec.Raw]
_block_decoder: msgspec.msgpack.Decoder[RawFields] = msgspec.msgpack.Decoder(RawFields)
NO_FIELDS = Fields()


def write_fields(fields: Fields) -> bytes:
    """The block of fields: a msgpack map by number. Empty where no field is given."""
    values = {number: getattr(fields, name) for number, name in _NAMES.items()}
    given = {number: value for number, value in values.items() if value is not None and value != {}}
    return msgspec.msgpack.encode(given) if given else b""


def split_fields(block: bytes) -> RawFields:
    """The fields in a block by number, each as it stands there, also those not known; MsgspecError: there are none."""
    try:
        return _block_decoder.decode(block) if block else {}
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from None


def read_fields(block: bytes) -> Fields:
    """The fields in a block; MsgspecError where there are none."""
    if not block:
        return NO_FIELDS
    raw = split_fields(block)
    try:
        known = {_NAMES[number]: msgspec.msgpack.decode(value) for number, value in raw.items() if number in _NAMES}
        return msgspec.convert(known, Fields)
    except (UnicodeDecodeError, RecursionError) as error:  # text that is none, or nested too deep
        raise msgspec.DecodeError(str(error)) from None


class StreamMark(msgspec.Struct, frozen=True, array_like=True):
    """What a node has of one stream: `first` to `last` without a hole, and everything before it is settled.

    `opened`: where the present run began. `yours`: how far the addressee is, as the sender knows (-1: does not know).
    `idle`: milliseconds since the newest publication came.

    Added later, skipped by nodes of version 0.1: `top`, the highest sequence known of; `holes`, what up to there is
    awaited, everything else behind `last` is kept too; `awaits`, from where on what is older than `first` is awaited
    (0: it is not); `since`, milliseconds since the run began. -1: the sender does not say. `by_age`, at first:
    from which sequence on all came within the last 1, 2, 4, 8 and 16 s (0: none did), as far back as the sender knows.
    `passed`: the highest sequence that the sender may never have had: told as a gap, or before its time.
    """

    publisher: Place
    incarnation: Incarnation
    opened: Sequence
    first: Sequence
    last: Sequence
    yours: Known
    idle: Sequence
    top: Known = -1
    holes: Ranges = ()
    awaits: Sequence = 0
    since: Known = -1
    by_age: Annotated[tuple[Sequence, ...], msgspec.Meta(max_length=8)] = ()
    passed: Known = -1


class Announce(Message, frozen=True, array_like=True, tag=1):
    """How far the sender is, for each topic in the streams named. `compare`: these are all, and say the same.

    Added later: `answers`, the number of the request that this ends (0: none); `room`, how many bytes can still be
    taken, by topic.
    """

    topics: tuple[tuple[Place, tuple[StreamMark, ...]], ...]
    compare: bool = False
    answers: Place = 0
    room: tuple[tuple[Place, Sequence], ...] = ()


class RetransmissionRequest(Message, frozen=True, array_like=True, tag=2):
    """Send these (topic, publisher, incarnation, first, last; last 0: up to the newest). `graft`: and what follows.

    `number`: repeated in the answer.
    """

    wants: tuple[tuple[Place, Place, Incarnation, Sequence, Sequence], ...]
    graft: bool = False
    number: Place = 0


class Prune(Message, frozen=True, array_like=True, tag=3):
    """Publications on this topic reach the sender by another way: announce them only."""

    topic: Place


class Graft(Message, frozen=True, array_like=True, tag=4):
    """Send publications on this topic at once again."""

    topic: Place


Control = Announce | RetransmissionRequest | Prune | Graft

_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Control)


def decode_control(data: bytes | memoryview) -> Message:
    """The message in these bytes; raises msgspec.MsgspecError where there is none."""
    message: Message = _decoder.decode(data)
    return message

"""What nodes say to each other about publications: the publications themselves, and what each of two neighbours has.

A stream is what one incarnation of a publisher publishes on one topic, numbered one after the other. A run is a part
of it without a silence as long as windows last: what comes before the first of a run is kept by nobody any more.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any

import msgspec

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.base import Incarnation, Place
from omen.protocol.messages.overlay import Message

PLAIN, OPENING = 1, 2
"""The first byte of a publication: the first of a run, or any other."""

_HEADER = struct.Struct(">B20sQ")
_KEY = struct.Struct(">QQI")
HEADER_BYTES = _HEADER.size
HIGHEST_SEQUENCE = 1 << 62
"""Far from where the next one would no longer fit into the wire form: what nobody can say, nobody may claim."""

Sequence = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_SEQUENCE)]
Known = Annotated[int, msgspec.Meta(ge=-1, le=HIGHEST_SEQUENCE)]

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
        return self.frame[HEADER_BYTES:]

    @property
    def is_opening(self) -> bool:
        """Whether nobody keeps anything of the stream that came before this one."""
        return self.frame[0] == OPENING


def make_publication(key: StreamKey, sequence: int, payload: bytes, opening: bool) -> Publication:
    header = _HEADER.pack(OPENING if opening else PLAIN, key, sequence)
    return Publication(key, sequence, header + payload)


def parse_publication(frame: bytes) -> Publication:
    """The publication in a frame whose first byte says it is one; struct.error where the header is cut off."""
    _, key, sequence = _HEADER.unpack_from(frame)
    return Publication(key, sequence, frame)


class StreamMark(msgspec.Struct, frozen=True, array_like=True):
    """What a node has of one stream: `first` to `last` without a hole, and everything before it is settled.

    `opened`: where the present run began. `yours`: how far the addressee is, as the sender knows (-1: does not know).
    `idle`: milliseconds since the newest publication came.
    """

    publisher: Place
    incarnation: Incarnation
    opened: Sequence
    first: Sequence
    last: Sequence
    yours: Known
    idle: Sequence


class Announce(Message, frozen=True, array_like=True, tag=1):
    """How far the sender is, for each topic in the streams named. `compare`: these are all, and say the same."""

    topics: tuple[tuple[Place, tuple[StreamMark, ...]], ...]
    compare: bool = False


class RetransmissionRequest(Message, frozen=True, array_like=True, tag=2):
    """Send these (topic, publisher, incarnation, first, last; last 0: up to the newest). `graft`: and what follows."""

    wants: tuple[tuple[Place, Place, Incarnation, Sequence, Sequence], ...]
    graft: bool = False


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

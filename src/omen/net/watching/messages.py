"""What nodes say to each other for the live page. A frame begins with its kind, as all do; msgpack follows.

What a node says of itself is passed on as it came: who passes it on need not know each field of it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from omen.protocol.messages.base import Address, Hops, Incarnation, Number, Place, Text

KIND = 8  # the first byte of these frames; those below are the protocol's (messages/wire.py)
LACKING_AT_MOST, TOPICS_AT_MOST = 64, 4
SHOWN_AT_MOST = 1_000  # links and topics in what one node says of itself
ENTRY_BYTES, FRAME_BYTES = 64 << 10, 128 << 10
EVENTS_AT_MOST = 64

Few = Annotated[tuple[Place, ...], msgspec.Meta(max_length=LACKING_AT_MOST)]
Many = Annotated[tuple[Place, ...], msgspec.Meta(max_length=SHOWN_AT_MOST)]
Figure = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class Stall(msgspec.Struct, frozen=True, array_like=True):
    """A stream that waits for a hole."""

    topic: Place
    publisher: Text
    missing: Number
    seconds: Figure


class Event(msgspec.Struct, frozen=True, array_like=True):
    """What happened at a node. `time_ms`: by its clock, since 1970. `peer`: to which node, 0: to itself."""

    number: Number
    time_ms: Number
    what: Text
    peer: Place = 0
    incarnation: Incarnation = 0
    detail: Text = ""


class NodeDigest(msgspec.Struct, frozen=True):
    """What a node says of itself, or what of it has changed: then the rest is not set.

    `topics`: those it subscribes to; `carried`: those it only carries. `names`: of its topics, where no access rules
    keep them from anybody. `tree`: to which peers it handed publications on, for topics that were asked about. `out`,
    `into`: publications per second accepted here and delivered here. `p50`, `p99`: latency in seconds, by the buckets
    of its histogram. `repairing`: what it coordinates the repair of.
    """

    name: Text | UnsetType = UNSET
    state: Text | UnsetType = UNSET
    role: Text | UnsetType = UNSET
    http: Address | UnsetType = UNSET
    warnings: tuple[Text, ...] | UnsetType = UNSET
    links: Many | UnsetType = UNSET
    topics: Many | UnsetType = UNSET
    carried: Many | UnsetType = UNSET
    names: dict[Place, Text] | UnsetType = UNSET
    suspected: Many | UnsetType = UNSET
    slow: tuple[Text, ...] | UnsetType = UNSET
    stalled: tuple[Stall, ...] | UnsetType = UNSET
    tree: dict[Place, Many] | UnsetType = UNSET
    repairing: tuple[Text, Place] | UnsetType | None = UNSET
    out: Figure | UnsetType = UNSET
    into: Figure | UnsetType = UNSET
    p50: Figure | UnsetType | None = UNSET
    p99: Figure | UnsetType | None = UNSET
    gaps: Number | UnsetType = UNSET
    window: tuple[Number, Number, Number] | UnsetType = UNSET
    queue: Number | UnsetType = UNSET


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What a node says of itself to one viewer. `number`: counted from 1; the first says everything."""

    node: Place
    incarnation: Incarnation
    number: Number
    changed: NodeDigest
    events: Annotated[tuple[Event, ...], msgspec.Meta(max_length=EVENTS_AT_MOST)] = ()


class Watch(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A node wants to hear of all others. `round`: higher each time. `lacking`: nodes that are to say everything again.

    `topics`: those whose trees are to be told. `hops`: how far it has come.
    """

    viewer: Place
    round: Number
    hops: Hops = 0
    lacking: Few = ()
    topics: Annotated[tuple[Place, ...], msgspec.Meta(max_length=TOPICS_AT_MOST)] = ()


class Told(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Entries on their way to a viewer."""

    viewer: Place
    entries: tuple[msgspec.Raw, ...]


_encoder = msgspec.msgpack.Encoder()
_frames: msgspec.msgpack.Decoder[Watch | Told] = msgspec.msgpack.Decoder(Watch | Told)
_entries = msgspec.msgpack.Decoder(Entry)


def encode(frame: Watch | Told) -> bytes:
    return bytes((KIND,)) + _encoder.encode(frame)


def decode(body: bytes) -> Watch | Told:
    """Raises msgspec.MsgspecError where these bytes are no such frame."""
    return _frames.decode(body[1:])


def write_entry(entry: Entry) -> msgspec.Raw | None:
    """An entry as it is passed on; None: it is too large."""
    data = _encoder.encode(entry)
    return msgspec.Raw(data) if len(data) <= ENTRY_BYTES else None


def read_entry(raw: msgspec.Raw) -> Entry | None:
    """The entry in these bytes. None: there is none. Who passed it on is not blamed: it does not look inside."""
    try:
        return _entries.decode(raw) if len(bytes(raw)) <= ENTRY_BYTES else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def difference(before: NodeDigest | None, now: NodeDigest) -> NodeDigest:
    """What of a digest has changed; all of it where there was none before."""
    if before is None:
        return now
    changed = {
        name: value
        for name in NodeDigest.__struct_fields__
        if (value := getattr(now, name)) is not UNSET and value != getattr(before, name)
    }
    return NodeDigest(**changed)

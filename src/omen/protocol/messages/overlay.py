"""Everything nodes say to each other, and its wire form: msgpack, fields as a list, a small number for the kind."""

from __future__ import annotations

from typing import Any

import msgspec

from omen.protocol.messages.base import Descriptor, Digest, EventId, Incarnation, Message, Number, Place, Ref
from omen.protocol.messages.upkeep import (
    FailureNotice,
    Heartbeat,
    IndirectPing,
    LabelBuckets,
    LabelDigest,
    LabelUpdate,
    PieceQuery,
    PieceReply,
    PieceReport,
    PieceReportAck,
    Ping,
    Pong,
    Refutation,
)

__all__ = [
    "Descriptor",
    "Digest",
    "EventId",
    "FailureNotice",
    "Heartbeat",
    "IndirectPing",
    "LabelBuckets",
    "LabelDigest",
    "LabelUpdate",
    "Message",
    "PieceQuery",
    "PieceReply",
    "PieceReport",
    "PieceReportAck",
    "Ping",
    "Pong",
    "Ref",
    "Refutation",
]


class Shuffle(Message, frozen=True, array_like=True, tag=1):
    entries: tuple[tuple[Ref, Number], ...]


class ShuffleReply(Message, frozen=True, array_like=True, tag=2):
    entries: tuple[tuple[Ref, Number], ...]


class DigestOffer(Message, frozen=True, array_like=True, tag=3):
    """T-Man's buffer as digests (Alg. 3 line 3); `want` asks for the descriptors behind digests seen before."""

    digests: tuple[Digest, ...]
    want: tuple[Place, ...]
    reply: bool


class Descriptors(Message, frozen=True, array_like=True, tag=4):
    descriptors: tuple[Descriptor, ...]


class DescriptorRequest(Message, frozen=True, array_like=True, tag=5):
    asker: Ref
    ids: tuple[Place, ...]


class Locate(Message, frozen=True, array_like=True, tag=6):
    """Who follows this place on the circle?"""

    asker: Ref
    nonce: Number
    target: Place


class Located(Message, frozen=True, array_like=True, tag=7):
    nonce: Number
    target: Place
    nodes: tuple[Ref, ...]


class Status(Message, frozen=True, array_like=True, tag=8):
    """A node tells its successors and neighbours who its neighbours and successors are now; topics only by version."""

    digest: Digest
    neighbours: tuple[Ref, ...]
    successors: tuple[Ref, ...]


class LinkOpen(Message, frozen=True, array_like=True, tag=10):
    descriptor: Descriptor
    successors: tuple[Ref, ...]


class LinkOk(Message, frozen=True, array_like=True, tag=11):
    descriptor: Descriptor
    successors: tuple[Ref, ...]


class LinkSeen(Message, frozen=True, array_like=True, tag=12):
    pass


class LinkClose(Message, frozen=True, array_like=True, tag=13):
    incarnation: Incarnation


class LossReport(Message, frozen=True, array_like=True, tag=20):
    """A former neighbour of a lost node names itself to the coordinator."""

    event: EventId
    reporter: Ref
    topics: tuple[Place, ...]


class LossReportAck(Message, frozen=True, array_like=True, tag=21):
    event: EventId


class ShadowQuery(Message, frozen=True, array_like=True, tag=22):
    """The coordinator asks a member of the shadow set what it and its neighbours have of these topics.

    `lost` are gone; `fading` still are there, but about to leave or to give these topics up.
    """

    asker: Ref
    event: EventId
    attempt: Number
    topics: tuple[Place, ...]
    lost: tuple[Ref, ...]
    fading: tuple[Place, ...]


class ShadowReply(Message, frozen=True, array_like=True, tag=23):
    """`mine`: bits over the asked topics; `links`: each neighbour with its bits; `former`: was linked to a loss.

    `unsettled`: those of `mine` in which this node waits to be linked itself. `leaving`: do not count on it.
    `spare`: the neighbours this node might do without, as far as it can tell alone.
    """

    event: EventId
    attempt: Number
    me: Ref
    topics_version: Number
    mine: bytes
    unsettled: bytes
    degree: Number
    links: tuple[tuple[Place, bytes], ...]
    former: bool
    leaving: bool
    spare: tuple[Place, ...] = ()


class LinkedLossQuery(Message, frozen=True, array_like=True, tag=24):
    """One coordinator asks another for the former neighbours of a loss that was linked to its own."""

    asker: Ref
    event: EventId
    lost: EventId
    neighbours: tuple[Ref, ...]
    topics: tuple[Place, ...]


class LinkedLossReply(Message, frozen=True, array_like=True, tag=25):
    """The answer: bring these in, or (`lead` false) wait, for the other event comes first."""

    event: EventId
    lost: EventId
    known: bool
    lead: bool
    neighbours: tuple[Ref, ...]
    topics: tuple[Place, ...]


class LinkProposal(Message, frozen=True, array_like=True, tag=26):
    asker: Ref
    event: EventId
    attempt: Number
    other: Ref


class LinkConfirmed(Message, frozen=True, array_like=True, tag=27):
    """A proposed link is up; `topics_version` shows whether the answer it was planned on still holds."""

    event: EventId
    attempt: Number
    other: Place
    topics_version: Number


class Handled(Message, frozen=True, array_like=True, tag=28):
    """`mended`: the former neighbours that were heard, for those who would take over if another one turned up."""

    event: EventId
    repaired: tuple[Ref, ...] = ()


class RepairRequest(Message, frozen=True, array_like=True, tag=30):
    """A newcomer, or a node with new topics, asks its successor to link it."""

    event: EventId
    descriptor: Descriptor
    added: tuple[Place, ...]
    dropped: tuple[Place, ...]


class RingWalk(Message, frozen=True, array_like=True, tag=31):
    """Walks the circle in steps of L for subscribers nobody nearer knows; each node met speaks for L predecessors."""

    event: EventId
    origin: Ref
    topics: tuple[Place, ...]
    found: tuple[Descriptor, ...]
    skip: tuple[Place, ...]


class RingWalkReply(Message, frozen=True, array_like=True, tag=32):
    event: EventId
    descriptors: tuple[Descriptor, ...]


class Leaving(Message, frozen=True, array_like=True, tag=33):
    """`handled`: the gap has been mended already."""

    ref: Ref
    handled: bool


class RelayedQuery(Message, frozen=True, array_like=True, tag=50):
    """Pass this question on to these neighbours: they stand further off than the asker knows its way."""

    ask: ShadowQuery
    to: tuple[Place, ...]


class PruneHint(Message, frozen=True, array_like=True, tag=51):
    """The coordinator of a finished repair asks one end of a link whether the link can go."""

    asker: Ref
    attempt: Number
    other: Place


class PathProbe(Message, frozen=True, array_like=True, tag=52):
    """Looks for a way from `origin` to `target` in each of these topics that does not use the link between them."""

    origin: Place
    target: Place
    nonce: Number
    hops: Number
    topics: tuple[Place, ...]


class PathReply(Message, frozen=True, array_like=True, tag=53):
    """Goes back the way a probe came: whoever passes it on keeps the links of that way for a while."""

    origin: Place
    target: Place
    nonce: Number
    topics: tuple[Place, ...]


class PruneRequest(Message, frozen=True, array_like=True, tag=54):
    """A way round is found and kept: do you agree to take our link down? Versions: mine and yours, as I know them."""

    nonce: Number
    asker: Ref
    attempt: Number
    mine: Number
    yours: Number


class PruneReply(Message, frozen=True, array_like=True, tag=55):
    """The answer. A node that agreed counts on the link no more, and repeats this until it hears `PruneDone`."""

    me: Ref
    nonce: Number
    agreed: bool


class PruneDone(Message, frozen=True, array_like=True, tag=56):
    """What became of the link."""

    nonce: Number
    kept: bool


AnyMessage = (
    Shuffle
    | ShuffleReply
    | DigestOffer
    | Descriptors
    | DescriptorRequest
    | Locate
    | Located
    | Status
    | LinkOpen
    | LinkOk
    | LinkSeen
    | LinkClose
    | LossReport
    | LossReportAck
    | ShadowQuery
    | ShadowReply
    | LinkedLossQuery
    | LinkedLossReply
    | LinkProposal
    | LinkConfirmed
    | Handled
    | RepairRequest
    | RingWalk
    | RingWalkReply
    | Leaving
    | RelayedQuery
    | PruneHint
    | PathProbe
    | PathReply
    | PruneRequest
    | PruneReply
    | PruneDone
    | Ping
    | Pong
    | Heartbeat
    | IndirectPing
    | FailureNotice
    | Refutation
    | LabelDigest
    | LabelBuckets
    | LabelUpdate
    | PieceReport
    | PieceReportAck
    | PieceQuery
    | PieceReply
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """The message in these bytes; raises msgspec.MsgspecError where there is none."""
    message: Message = _decoder.decode(data)
    return message

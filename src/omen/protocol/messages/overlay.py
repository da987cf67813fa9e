"""Everything nodes say to each other, and its wire form: msgpack, fields as a list, a small number for the kind."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from omen.protocol.messages.base import (
    FORWARDS_AT_MOST,
    NODES_AT_MOST,
    WALK_STEPS_AT_MOST,
    Bits,
    Descriptor,
    Digest,
    EventId,
    Forbidden,
    Hops,
    Incarnation,
    LinkRules,
    Message,
    Number,
    Place,
    Places,
    Ref,
    Refs,
    Topics,
)
from omen.protocol.messages.records import RecordAck, RecordOffer, RecordPut, RecordQuery, RecordReply, RecordWant

__all__ = ["Descriptor", "Digest", "EventId", "Message", "Ref"]


class Shuffle(Message, frozen=True, array_like=True, tag=1):
    entries: tuple[tuple[Ref, Number], ...]


class ShuffleReply(Message, frozen=True, array_like=True, tag=2):
    entries: tuple[tuple[Ref, Number], ...]


class DigestOffer(Message, frozen=True, array_like=True, tag=3):
    """T-Man's buffer as digests (Alg. 3 line 3); `want` asks for the descriptors behind digests seen before.

    `ended`: of the nodes that the other has named those that have ended, as far as this one knows.
    """

    digests: Annotated[tuple[Digest, ...], msgspec.Meta(max_length=NODES_AT_MOST)]
    want: Places
    reply: bool
    ended: Places = ()


class Descriptors(Message, frozen=True, array_like=True, tag=4):
    descriptors: tuple[Descriptor, ...]


class DescriptorRequest(Message, frozen=True, array_like=True, tag=5):
    asker: Ref
    ids: Places


class Locate(Message, frozen=True, array_like=True, tag=6):
    """Which node follows this place on the ring?"""

    asker: Ref
    nonce: Number
    target: Place


class Located(Message, frozen=True, array_like=True, tag=7):
    """`seeking`: the node that answers has not found its own place yet, and follows no other."""

    nonce: Number
    target: Place
    nodes: Refs
    seeking: bool = False


class Status(Message, frozen=True, array_like=True, tag=8):
    """A node tells its successors and neighbours who its neighbours and successors are now; topics only by version."""

    digest: Digest
    neighbours: Refs
    successors: Refs


class LinkOpen(Message, frozen=True, array_like=True, tag=10):
    """`spare`: only connectivity 2 asks for this link, and a node that has all the links it may have says no.

    `number`: of the link, as the end that opens counts them. What is said of a former one does not touch the next. 0:
    from an older version, which does not number them.
    """

    descriptor: Descriptor
    successors: Refs
    spare: bool = False
    number: Number = 0


class LinkOk(Message, frozen=True, array_like=True, tag=11):
    descriptor: Descriptor
    successors: Refs
    number: Number = 0


class LinkSeen(Message, frozen=True, array_like=True, tag=12):
    number: Number = 0


class LinkClose(Message, frozen=True, array_like=True, tag=13):
    incarnation: Incarnation
    number: Number = 0


class LossReport(Message, frozen=True, array_like=True, tag=20):
    """A former neighbour of a lost node names itself to the coordinator."""

    event: EventId
    reporter: Ref
    topics: Topics
    hops: Hops = FORWARDS_AT_MOST


class LossReportAck(Message, frozen=True, array_like=True, tag=21):
    event: EventId


class ShadowQuery(Message, frozen=True, array_like=True, tag=22):
    """The coordinator asks a member of the shadow set what it and its neighbours have of these topics.

    `lost` have failed; `fading` are still there, but about to leave or to give these topics up.
    """

    asker: Ref
    event: EventId
    attempt: Number
    topics: Topics
    lost: Refs
    fading: Places


class ShadowReply(Message, frozen=True, array_like=True, tag=23):
    """`mine`: bits over the asked topics; `links`: each neighbour with its bits; `former`: was linked to a loss.

    `unsettled`: those of `mine` in which this node waits to be linked itself. `leaving`: do not count on it.
    `prunable`: the neighbours this node might do without, as far as it can tell alone. `rules`: those of its links.
    """

    event: EventId
    attempt: Number
    me: Ref
    topics_version: Number
    mine: Bits
    unsettled: Bits
    degree: Number
    links: tuple[tuple[Place, bytes], ...]
    former: bool
    leaving: bool
    prunable: Places = ()
    rules: LinkRules | None = None


class LinkedLossQuery(Message, frozen=True, array_like=True, tag=24):
    """One coordinator asks another for the former neighbours of a loss that was linked to its own."""

    asker: Ref
    event: EventId
    lost: EventId
    neighbours: Refs
    topics: Topics


class LinkedLossReply(Message, frozen=True, array_like=True, tag=25):
    """The answer: bring these in, or (`lead` false) wait, for the other event comes first."""

    event: EventId
    lost: EventId
    known: bool
    lead: bool
    neighbours: Refs
    topics: Topics


class LinkProposal(Message, frozen=True, array_like=True, tag=26):
    """`lasting`: the asker counts on the link as a way round a node; it is not to be pruned."""

    asker: Ref
    event: EventId
    attempt: Number
    other: Ref
    lasting: bool = False


class LinkConfirmed(Message, frozen=True, array_like=True, tag=27):
    """A proposed link is up; `topics_version` shows whether the answer it was planned on still holds."""

    event: EventId
    attempt: Number
    other: Place
    topics_version: Number


class Handled(Message, frozen=True, array_like=True, tag=28):
    """`repaired`: the former neighbours that were heard, for those that would take over if another one turned up.

    `heard`: whether the receiver was one of them, if it is a former neighbour.
    """

    event: EventId
    repaired: Refs = ()
    heard: bool = True


class RepairRequest(Message, frozen=True, array_like=True, tag=30):
    """A newcomer, or a node with new topics, asks its successor to link it."""

    event: EventId
    descriptor: Descriptor
    added: Topics
    dropped: Topics
    hops: Hops = FORWARDS_AT_MOST


class RingWalk(Message, frozen=True, array_like=True, tag=31):
    """Walks the ring in steps of L for subscribers that no nearer node knows; each node met speaks for L
    predecessors. `number`: which walk of its origin, so that none passes a node twice (0: an older node does not say).
    `led`: the origin takes each step itself, so the node met answers it; an older node passes the walk on.
    """

    event: EventId
    origin: Ref
    topics: Topics
    found: tuple[Descriptor, ...]
    skip: Places
    hops: Hops = WALK_STEPS_AT_MOST
    number: Number = 0
    led: bool = False


class RingWalkReply(Message, frozen=True, array_like=True, tag=32):
    """What a walk has found. After one step of a walk that is led: which, the topics left, and where it goes on."""

    event: EventId
    descriptors: tuple[Descriptor, ...]
    number: Number = 0
    topics: Topics = ()
    onward: Ref | None = None


class Leaving(Message, frozen=True, array_like=True, tag=33):
    """`handled`: the gap is repaired already."""

    ref: Ref
    handled: bool


class RelayedQuery(Message, frozen=True, array_like=True, tag=50):
    """Pass this question on to these neighbours: they stand further off than the asker knows its way."""

    ask: ShadowQuery
    to: Places


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
    hops: Hops
    topics: Topics


class PathReply(Message, frozen=True, array_like=True, tag=53):
    """Goes back the way a probe came: the nodes that pass it on keep the links of that path for a while."""

    origin: Place
    target: Place
    nonce: Number
    topics: Topics


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


class Ping(Message, frozen=True, array_like=True, tag=34):
    """A direct probe. `asker` hears the answer: the sender, or the node it probes for."""

    nonce: Number
    asker: Ref


class Pong(Message, frozen=True, array_like=True, tag=35):
    nonce: Number
    me: Ref


class Heartbeat(Message, frozen=True, array_like=True, tag=36):
    """I am here, in this incarnation. `sent`: by my clock. `echo`: your last one, by yours, which I `held` so long.

    From the last two a peer knows how long a round trip takes. Version 0.1 skips them.
    """

    incarnation: Incarnation
    sent: Number = 0
    echo: Number = 0
    held: Number = 0


class IndirectPing(Message, frozen=True, array_like=True, tag=37):
    """Probe `target` for me: I do not hear it, and suspect it."""

    nonce: Number
    asker: Ref
    target: Ref


class FailureNotice(Message, frozen=True, array_like=True, tag=38):
    """I have declared this incarnation of you failed. `final`: its repair is under way, so rejoin if you are there."""

    me: Ref
    incarnation: Incarnation
    final: bool


class Refutation(Message, frozen=True, array_like=True, tag=39):
    """I am there, in this incarnation: to a peer that has declared me failed."""

    me: Ref


class NameClaimed(Message, frozen=True, array_like=True, tag=40):
    """Another process that goes by the receiver's name has tried to join, and was refused."""

    claimant: Ref


class LabelDigest(Message, frozen=True, array_like=True, tag=60):
    """One per link and period: a digest of the labels of all topics we share, and what topics I have by version."""

    digest: Place
    incarnation: Incarnation
    topics_version: Number


class LabelBuckets(Message, frozen=True, array_like=True, tag=61):
    """Our digests differ and we share many topics: a digest for each bucket of them, to see where."""

    digests: Places


class LabelUpdate(Message, frozen=True, array_like=True, tag=62):
    """The piece I am in, by topic: (sequence, leader, topics)."""

    pieces: tuple[tuple[Number, Place, tuple[Place, ...]], ...]


class PieceReport(Message, frozen=True, array_like=True, tag=63):
    """A leader to a rendezvous: these are the pieces I lead. Without `topics`: the same as before, if you agree."""

    me: Ref
    digest: Place
    topics: Topics | None


class PieceReportAck(Message, frozen=True, array_like=True, tag=64):
    """A rendezvous to a leader. `digest`: of what it has now. It answers for the places after `start` up to its own."""

    me: Ref
    digest: Place
    start: Place


class PieceQuery(Message, frozen=True, array_like=True, tag=65):
    """A rendezvous sees two pieces of these topics: do you still lead one?"""

    asker: Ref
    nonce: Number
    topics: Topics


class PieceReply(Message, frozen=True, array_like=True, tag=66):
    """`led`: bits over the topics asked. `near`: other topics of mine whose pieces changed lately, with a hash of the
    label. `hands`: members of these pieces to link through, (who, degree, bits over the topics asked and those near).
    `rules`: what each of them says of its links; empty where none says anything.
    """

    me: Ref
    nonce: Number
    led: Bits
    near: tuple[tuple[Place, Place], ...]
    hands: tuple[tuple[Ref, Number, bytes], ...]
    rules: tuple[LinkRules | None, ...] = ()


class NearbyQuery(Message, frozen=True, array_like=True, tag=70):
    """A node looks for a way round itself: which of your links carry these topics? `digest`: of your last answer."""

    asker: Ref
    nonce: Number
    topics: Topics
    digest: Number = 0


class NearbyReply(Message, frozen=True, array_like=True, tag=71):
    """`mine`: bits over the topics asked; `links`: each neighbour with its bits. `full`: I take no more links.

    `same`: all is as in my last answer, whose digest you know. `forbid`: to these nodes I make no link; an older
    version says nothing of it.
    """

    me: Ref
    nonce: Number
    mine: Bits
    degree: Number
    full: bool
    links: tuple[tuple[Ref, bytes], ...]
    same: bool = False
    forbid: Forbidden = ()


class NearbyChanged(Message, frozen=True, array_like=True, tag=72):
    """I have lost a link since I answered your `NearbyQuery`. `topics`: those concerned; all where none is named."""

    me: Ref
    topics: Topics = ()


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
    | NameClaimed
    | LabelDigest
    | LabelBuckets
    | LabelUpdate
    | PieceReport
    | PieceReportAck
    | PieceQuery
    | PieceReply
    | NearbyQuery
    | NearbyReply
    | NearbyChanged
    | RecordPut
    | RecordAck
    | RecordQuery
    | RecordReply
    | RecordOffer
    | RecordWant
)

FAILURE_DETECTION = ("Ping", "Pong", "Heartbeat", "IndirectPing", "FailureNotice", "Refutation")
AUDIT = ("LabelDigest", "LabelBuckets", "LabelUpdate", "PieceReport", "PieceReportAck", "PieceQuery", "PieceReply")
CONNECTIVITY = ("NearbyQuery", "NearbyReply", "NearbyChanged")
STORAGE = ("RecordPut", "RecordAck", "RecordQuery", "RecordReply", "RecordOffer", "RecordWant")
"""Kinds that are counted apart: those of the failure detector, of the audit, and of searches for ways round a node."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """The message in these bytes; raises msgspec.MsgspecError where there is none."""
    message: Message = _decoder.decode(data)
    return message

"""What nodes say to each other to see who is there (tags 34 to 40) and whether topics are whole (60 to 67)."""

from __future__ import annotations

from omen.protocol.messages.base import Incarnation, Message, Number, Place, Ref


class Ping(Message, frozen=True, array_like=True, tag=34):
    """Are you there? `asker` hears it: whoever sent this, or whom it asks for."""

    nonce: Number
    asker: Ref


class Pong(Message, frozen=True, array_like=True, tag=35):
    nonce: Number
    me: Ref


class Heartbeat(Message, frozen=True, array_like=True, tag=36):
    """I am here, in this life."""

    incarnation: Incarnation


class IndirectPing(Message, frozen=True, array_like=True, tag=37):
    """Ask `target` for me whether it is there: I do not hear it, and suspect that it is gone."""

    nonce: Number
    asker: Ref
    target: Ref


class FailureNotice(Message, frozen=True, array_like=True, tag=38):
    """I hold that your life `life` has ended. `final`: its gap is being mended, so if you are there, begin another."""

    me: Ref
    incarnation: Incarnation
    final: bool


class Refutation(Message, frozen=True, array_like=True, tag=39):
    """To whoever holds otherwise."""

    me: Ref


class LabelDigest(Message, frozen=True, array_like=True, tag=60):
    """One a link and a period: a digest of the labels of all topics we share, and what topics I have by version."""

    digest: Place
    incarnation: Incarnation
    topics_version: Number


class LabelBuckets(Message, frozen=True, array_like=True, tag=61):
    """Our digests differ and we share many topics: a digest for each bucket of them, to see where."""

    digests: tuple[Place, ...]


class LabelUpdate(Message, frozen=True, array_like=True, tag=62):
    """The piece I am in, by topic: (sequence, leader, topics)."""

    pieces: tuple[tuple[Number, Place, tuple[Place, ...]], ...]


class PieceReport(Message, frozen=True, array_like=True, tag=63):
    """A leader to a rendezvous: these are the pieces I lead. Without `topics`: the same as before, if you agree."""

    me: Ref
    digest: Place
    topics: tuple[Place, ...] | None


class PieceReportAck(Message, frozen=True, array_like=True, tag=64):
    """A rendezvous to a leader. `digest`: of what it has now. It answers for the places after `start` up to its own."""

    me: Ref
    digest: Place
    start: Place


class PieceQuery(Message, frozen=True, array_like=True, tag=65):
    """A rendezvous sees two pieces of these topics: do you still lead one?"""

    asker: Ref
    nonce: Number
    topics: tuple[Place, ...]


class PieceReply(Message, frozen=True, array_like=True, tag=66):
    """`led`: bits over the topics asked. `near`: other topics of mine whose pieces changed lately, with a hash of the
    label. `hands`: members of these pieces to link through, (who, degree, bits over the topics asked and those near).
    """

    me: Ref
    nonce: Number
    led: bytes
    near: tuple[tuple[Place, Place], ...]
    hands: tuple[tuple[Ref, Number, bytes], ...]


FAILURE_DETECTION = ("Ping", "Pong", "Heartbeat", "IndirectPing", "FailureNotice", "Refutation")
AUDIT = ("LabelDigest", "LabelBuckets", "LabelUpdate", "PieceReport", "PieceReportAck", "PieceQuery", "PieceReply")
"""Kinds that are counted apart: seeing who is there, and whether topics are whole."""

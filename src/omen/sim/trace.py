"""The trace of a run, line by line: names instead of places on the ring, messages as a kind and key=value fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, assert_never

from omen.interests import Label
from omen.protocol.events import (
    SECOND,
    ContactsFound,
    Deliver,
    Depart,
    Gap,
    Held,
    Left,
    LinkBroken,
    LinkPruned,
    LinkUp,
    NameConflict,
    NodeId,
    Notification,
    OwnNameSeen,
    PeerBanned,
    PeerDeclaredFailed,
    PeerLeft,
    PeerLost,
    PeerRefused,
    PeerSuspected,
    PeerUnreached,
    Publish,
    Received,
    Rejoined,
    RepairFinished,
    RepairStageEntered,
    RepairStopped,
    RequestHandled,
    SplitTopicsLinked,
    StoodStill,
    Subscribe,
    SuspicionRefuted,
    Time,
    TimerFired,
    Topic,
    WindowCut,
)
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
    DescriptorRequest,
    Descriptors,
    Digest,
    DigestOffer,
    EventId,
    FailureNotice,
    Heartbeat,
    LabelDigest,
    PieceReport,
    PieceReportAck,
    Ref,
    Shuffle,
    ShuffleReply,
    Status,
)
from omen.protocol.messages.publications import Publication
from omen.protocol.spidercast.messages import Heartbeat as SpiderHeartbeat
from omen.sim.world import UNREACHABLE, Dropped

ROUTINE = (
    Shuffle,
    ShuffleReply,
    DigestOffer,
    Descriptors,
    DescriptorRequest,
    Status,
    Heartbeat,
    LabelDigest,
    PieceReportAck,
    SpiderHeartbeat,
)
SPEAKERS = frozenset({"asker", "me", "reporter", "sender"})
NODE_FIELDS = frozenset({"target", "publisher", "origin", "start", "ids", "skip", "other", "fading", "to", "prunable"})
TOPIC_FIELDS = frozenset({"topics", "added", "dropped", "interest"})
DIGEST_FIELDS = frozenset({"digest", "digests"})
UNSAID = frozenset({"topics_version"})
KINDS = {
    EventKind.LEAVE: "the loss",
    EventKind.JOIN: "the join",
    EventKind.ADD: "the added topics",
    EventKind.DROP: "the dropped topics",
    EventKind.AUDIT: "an audit",
}


class TraceWriter:
    """Turns what a world traces into lines, and keeps a fingerprint of all of them.

    `write` gets the lines. With `everything` false, timers and routine messages (gossip, heartbeats, digests of labels)
    are left out of the lines, not of the fingerprint.
    """

    def __init__(
        self,
        names: Mapping[NodeId, Label],
        topics: Mapping[Topic, Label],
        write: Callable[[str], None] | None = None,
        everything: bool = False,
    ) -> None:
        self._names = names
        self._topics = topics
        self._write = write
        self._everything = everything
        self._hash = blake2b(digest_size=16)

    def __call__(self, time: Time, node: NodeId, what: object) -> None:
        line = f"{time / SECOND:12.6f}  {self.name(node)} {self.describe(node, what)}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._write is not None and (self._everything or not is_routine(what)):
            self._write(line)

    def fingerprint(self) -> str:
        """A hash of the run: two runs with the same one were the same."""
        return self._hash.hexdigest()

    def name(self, node: NodeId) -> str:
        return str(self._names.get(node, node))

    def ref(self, ref: Ref) -> str:
        """A node, with its incarnation from the second on."""
        return self.name(ref.id) + (f"/{ref.incarnation}" if ref.incarnation > 1 else "")

    def event(self, event: EventId) -> str:
        return f"{KINDS[event.kind]} of {self.ref(Ref(event.node, event.incarnation, ''))}"

    def describe(self, node: NodeId, what: object) -> str:
        """What happened to a node, or what it told the world."""
        match what:
            case str():
                return what
            case Received(sender, message):
                return f"<- {self.name(sender)}: {self.message(message, sender)}"
            case Dropped(to, message, why):
                return f"-> {self.name(to)}: {self.message(message, node)}: {why}"
            case PeerLost(peer, _):
                return f"loses its connection to {self.name(peer)}"
            case LinkBroken(peer):
                return f"sees its connection to {self.name(peer)} break"
            case PeerRefused(peer, later):
                return f"is {'refused' if later is None else 'answered by a later incarnation'} by {self.name(peer)}"
            case PeerUnreached(peer):
                return f"finds nobody where {self.name(peer)} was"
            case ContactsFound(peers):
                return f"finds {' '.join(map(self.ref, peers))} alive"
            case TimerFired(timer):
                return f"timer: {self.message(timer)}"
            case Subscribe(added, dropped):
                return f"is told to add {self._topic_set(added)} and to drop {self._topic_set(dropped)}"
            case Publish(topic, payload):
                return f"is told to publish {len(payload)} bytes on {self._topic(topic)}"
            case Depart():
                return "is told to leave"
            case Deliver() | Gap() | Held():
                return self._delivery(what)
            case _ if isinstance(what, Notification):
                return self._notification(what)
            case _:
                return self.message(what)

    def message(self, message: Any, sender: NodeId | None = None) -> str:
        """A message or timer: its kind, then each field that says something; not that a message is its sender's."""
        if isinstance(message, Publication):
            publisher, topic = self.name(message.publisher), self._topic(message.topic)
            return f"Publication sequence={message.sequence} publisher={publisher} topic={topic}"
        if not hasattr(message, "__struct_fields__"):
            return repr(message)
        words = [type(message).__name__]
        for field in message.__struct_fields__:
            value = getattr(message, field)
            if field in SPEAKERS and isinstance(value, Ref) and value.id == sender:
                continue
            if field == "hops" and value in message.__struct_defaults__:
                continue  # it was not passed on yet
            if field not in UNSAID and value not in ((), b"", b"\0", False, "", None):
                words.append(field if value is True else f"{field}={self.value(field, value)}")
        return " ".join(words)

    def value(self, field: str, value: Any) -> str:
        """A value as a person reads it; what a plain number means depends on the field it stands in."""
        match value:
            case EventId():
                kind = "loss" if value.kind == EventKind.LEAVE else value.kind
                return f"{kind}({self.ref(Ref(value.node, value.incarnation, ''))})"
            case Ref():
                return self.ref(value)
            case Digest():
                return self.ref(value.ref)
            case Descriptor():
                linked = " ".join(self.ref(ref) for ref in value.neighbours) or "none"
                return f"{self.ref(value.digest.ref)}({self._topic_set(value.topics)} links: {linked})"
            case (int() as node, bytes() as bits):
                return f"{self.name(node)}:{_bits(bits)}"
            case (Ref() as ref, int() as degree, bytes() as bits):
                return f"{self.ref(ref)}:{degree}:{_bits(bits)}"
            case (int() as sequence, int() as leader, tuple() as topics) if field == "pieces":
                return f"{sequence}/{self.name(leader)}{self._topic_set(topics)}"
            case (int() as topic, int() as label) if field == "near":
                return f"{self._topic(topic)}:{_short(label)}"
            case (int() as topic, tuple() as marks) if (
                field in TOPIC_FIELDS and marks and not isinstance(marks[0], int)
            ):
                return f"{self._topic(topic)}:{self.value('marks', marks)}"
            case tuple() if field in TOPIC_FIELDS and all(isinstance(item, int) for item in value):
                return self._topic_set(value)
            case tuple():
                return "[" + " ".join(self.value(field, item) for item in value) + "]"
            case bytes():
                return _bits(value)
            case int() if field in NODE_FIELDS:
                return self.name(value)
            case int() if field in DIGEST_FIELDS:
                return _short(value)
            case _:
                return self.message(value) if hasattr(value, "__struct_fields__") else str(value)

    def _topic(self, topic: Topic) -> str:
        return str(self._topics.get(topic, topic))

    def _topic_set(self, topics: tuple[Topic, ...]) -> str:
        return "{" + ",".join(sorted(map(self._topic, topics))) + "}"

    def _notification(self, heard: Notification) -> str:
        match heard:
            case RepairStageEntered(event, stage, members):
                shadow = f" [{' '.join(map(self.name, members))}]" if members else ""
                return f"repairs {self.event(event)}: {stage}{shadow}"
            case RepairFinished(event, links, _, events):
                others = [self.event(linked) for linked in events if linked != event]
                along = f" along with {' and '.join(others)}" if others else ""
                return f"has repaired {self.event(event)}{along}: {self._pairs(links) or 'no new links'}"
            case RequestHandled(event):
                return f"sees {self.event(event)} handled"
            case RepairStopped(event, outcome):
                return f"stops repairing {self.event(event)}: {outcome.replace('_', ' ')}"
            case PeerSuspected() | SuspicionRefuted() | StoodStill() | PeerDeclaredFailed() | PeerLeft():
                return self._peer_notification(heard)
            case PeerBanned(peer, offence, lasts):
                return f"drops {self.name(peer)} for {lasts / SECOND:g} s: {offence.replace('_', ' ')}"
            case Rejoined(incarnation):
                return f"was declared failed, and rejoins as incarnation {incarnation}"
            case SplitTopicsLinked(links, topics):
                count = "a split topic" if len(topics) == 1 else f"{len(topics)} split topics"
                return f"sees {count}, and has linked {self._pairs(links)}"
            case LinkUp(peer):
                return f"is linked to {self.name(peer)}"
            case LinkPruned(peer):
                return f"has pruned its link to {self.name(peer)}"
            case NameConflict(claimant):
                return f"hears that another process, in incarnation {claimant.incarnation}, goes by its name"
            case OwnNameSeen(ref):
                return f"sees incarnation {ref.incarnation} of itself at {ref.address}"
            case Left():
                return "has left"
            case WindowCut(topic, span, size):
                return f"keeps only {span / 1e6:.2f} s of {self._topic(topic)}: {size} bytes are all there is room for"
            case _:
                assert_never(heard)

    def _peer_notification(
        self, heard: PeerSuspected | SuspicionRefuted | StoodStill | PeerDeclaredFailed | PeerLeft
    ) -> str:
        match heard:
            case PeerSuspected(peer):
                return f"suspects {self.ref(peer)}"
            case SuspicionRefuted(peer):
                return f"suspects {self.ref(peer)} no more"
            case StoodStill(period):
                return f"stood still for {period / SECOND:g} s"
            case PeerDeclaredFailed(peer, _, refused):
                return f"declares {self.ref(peer)} failed{': refused' if refused else ''}"
            case PeerLeft(peer):
                return f"hears that {self.ref(peer)} leaves"
            case _:
                assert_never(heard)

    def _delivery(self, heard: Deliver | Gap | Held) -> str:
        match heard:
            case Deliver(topic, publisher, _, sequence, _):
                return f"delivers {sequence} of {self.name(publisher)} on {self._topic(topic)}"
            case Gap(topic, publisher, _, first, last):
                return f"delivers a gap from {first} to {last} of {self.name(publisher)} on {self._topic(topic)}"
            case Held(topic, sequence):
                return f"hears that its neighbours have all up to {sequence} on {self._topic(topic)}"
            case _:
                assert_never(heard)

    def _pairs(self, links: tuple[tuple[NodeId, NodeId], ...]) -> str:
        return ", ".join(f"{self.name(one)}-{self.name(other)}" for one, other in links)


def is_routine(what: object) -> bool:
    """Whether a trace that tells a story can do without this."""
    match what:
        case Dropped(_, FailureNotice(), why) if why == UNREACHABLE:
            return True  # the peer that was declared failed has failed
        case Received(_, message) | Dropped(_, message, _):
            unchanged = isinstance(message, PieceReport) and message.topics is None
            return isinstance(message, ROUTINE) or unchanged
        case TimerFired():
            return True
        case _:
            return False


def _bits(bits: bytes) -> str:
    return f"{int.from_bytes(bits, 'little'):b}"


def _short(digest: int) -> str:
    """Of a hash only the last digits: enough to see that two differ."""
    return f"{digest & 0xFFFF:04x}"

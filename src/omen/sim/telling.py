"""A run told line by line: names instead of places on the circle, messages in a few words each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from omen.interests import Label
from omen.protocol.events import (
    SECOND,
    Depart,
    Left,
    LinkPruned,
    LinkUp,
    NodeId,
    PeerDeclaredFailed,
    PeerLost,
    Received,
    Rejoined,
    RepairFinished,
    RepairStageEntered,
    RequestHandled,
    SplitTopicsLinked,
    Subscribe,
    Time,
    TimerFired,
    Topic,
)
from omen.protocol.membership.gossip import RoundTimer
from omen.protocol.membership.ring_lookup import LookupTimer
from omen.protocol.messages.overlay import (
    Descriptor,
    DescriptorRequest,
    Descriptors,
    Digest,
    DigestOffer,
    EventId,
    Ref,
    Shuffle,
    ShuffleReply,
    Status,
)
from omen.protocol.messages.publications import Publication
from omen.protocol.repair.links import LinkTimer
from omen.protocol.repair.loss_reports import LossReportTimer
from omen.protocol.repair.requests import RequestTimer
from omen.protocol.spidercast.messages import Heartbeat
from omen.protocol.spidercast.node import HeartbeatTimer
from omen.protocol.spidercast.task import MaintainTimer
from omen.sim.world import Dropped

GOSSIP = (Shuffle, ShuffleReply, DigestOffer, Descriptors, DescriptorRequest, Status, Heartbeat)
NODE_FIELDS = frozenset({"target", "ids", "skip", "other", "links", "fading"})
TOPIC_FIELDS = frozenset({"topics", "added", "dropped", "interest"})
QUIET_TIMERS = (
    RoundTimer,
    LinkTimer,
    LookupTimer,
    RequestTimer,
    LossReportTimer,
    MaintainTimer,
    HeartbeatTimer,
)


class Teller:
    """Turns what a world traces into lines, and keeps a fingerprint of all of them.

    `write` gets the lines; with `everything` false, gossip and timers without consequence are left out (of the lines,
    not of the fingerprint).
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
        line = f"{time / SECOND:12.6f}  {self.name(node)} {self.describe(what)}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._write is not None and (self._everything or not _is_routine(what)):
            self._write(line)

    def fingerprint(self) -> str:
        """A hash of the run: two runs with the same one were the same."""
        return self._hash.hexdigest()

    def name(self, node: NodeId) -> str:
        return str(self._names.get(node, node))

    def event(self, event: EventId) -> str:
        kinds = {"leave": "the loss", "join": "the join", "add": "new topics", "drop": "dropped topics"}
        which = f" (incarnation {event.incarnation})" if event.incarnation > 1 else ""
        return f"{kinds.get(event.kind, event.kind)} of {self.name(event.node)}{which}"

    def describe(self, what: object) -> str:
        match what:
            case str():
                return what
            case Received(sender, message):
                return f"<- {self.name(sender)}: {self.message(message)}"
            case Dropped(to, message, why):
                return f"-> {self.name(to)}: {self.message(message)}: {why}"
            case PeerLost(peer, _):
                return f"loses its connection to {self.name(peer)}"
            case TimerFired(timer):
                return f"timer: {self.message(timer)}"
            case Subscribe(added, dropped):
                return f"is told to want {self._wanted(added)} and no longer {self._wanted(dropped)}"
            case Depart():
                return "is told to leave"
            case _:
                return self._notification(what) or repr(what)

    def message(self, message: Any) -> str:
        """A message: its kind, then each field that says something."""
        if isinstance(message, Publication):
            topic = self._topics.get(message.topic, message.topic)
            return f"Publication {message.sequence} of {self.name(message.publisher)} on {topic}"
        words = [type(message).__name__]
        for field in message.__struct_fields__:
            value = getattr(message, field)
            if value not in ((), b"", False, ""):
                words.append(field if value is True else f"{field} {self.value(field, value)}")
        return " ".join(words)

    def value(self, field: str, value: Any) -> str:
        """A value as a person reads it; what a plain number means depends on the field it stands in."""
        match value:
            case EventId():
                return self.event(value)
            case Ref():
                return self.name(value.id)
            case Digest():
                return self.name(value.ref.id)
            case Descriptor():
                linked = " ".join(self.name(ref.id) for ref in value.neighbours) or "to nobody"
                return f"{self.name(value.digest.ref.id)}(wants {self._wanted(value.topics)}; linked {linked})"
            case tuple() if field in TOPIC_FIELDS:
                return self._wanted(value)
            case tuple():
                return "[" + " ".join(self.value(field, item) for item in value) + "]"
            case bytes():
                return f"{int.from_bytes(value, 'little'):b}"
            case int() if field in NODE_FIELDS:
                return self.name(value)
            case _:
                return str(value)

    def _wanted(self, topics: tuple[Topic, ...]) -> str:
        return "{" + ",".join(sorted(str(self._topics.get(topic, topic)) for topic in topics)) + "}"

    def _notification(self, heard: object) -> str | None:
        match heard:
            case RepairStageEntered(event, stage, members):
                return f"repairs {self.event(event)}: {stage}" + (f" {self.value('ids', members)}" if members else "")
            case RepairFinished(event, links, _, events):
                others = [self.event(linked) for linked in events if linked != event]
                along = f" along with {' and '.join(others)}" if others else ""
                return f"has repaired {self.event(event)}{along}: {self._pairs(links) or 'no new links'}"
            case RequestHandled(event):
                return f"hears that {self.event(event)} is handled"
            case PeerDeclaredFailed(peer):
                return f"declares {self.name(peer.id)} failed"
            case Rejoined(incarnation):
                return f"was declared failed, and rejoins as incarnation {incarnation}"
            case SplitTopicsLinked(links, topics):
                return f"sees {topics} split topics, and has linked {self._pairs(links)}"
            case LinkUp(peer):
                return f"is linked to {self.name(peer)}"
            case LinkPruned(peer):
                return f"has pruned its link to {self.name(peer)}"
            case Left():
                return "has left"
            case _:
                return None

    def _pairs(self, links: tuple[tuple[NodeId, NodeId], ...]) -> str:
        return ", ".join(f"{self.name(one)}-{self.name(other)}" for one, other in links)


def _is_routine(what: object) -> bool:
    match what:
        case Received(_, message) | Dropped(_, message, _):
            return isinstance(message, GOSSIP)
        case TimerFired(timer):
            return isinstance(timer, QUIET_TIMERS)
        case _:
            return False

"""A run told line by line: names instead of places on the circle, messages in a few words each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from omen.interests import Label
from omen.protocol.events import SECOND, Depart, NodeId, Notify, PeerLost, Received, Subscribe, Time, TimerFired, Topic
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
from omen.protocol.spidercast.messages import Heartbeat
from omen.sim.world import Dropped

GOSSIP = (Shuffle, ShuffleReply, DigestOffer, Descriptors, DescriptorRequest, Status, Heartbeat)
NODE_FIELDS = frozenset({"target", "ids", "skip", "other", "links", "fading"})
TOPIC_FIELDS = frozenset({"topics", "added", "dropped", "interest"})
QUIET_TIMERS = frozenset({"round", "link", "locate", "arrive", "report", "maintain", "heartbeat"})


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
        kinds = {"leave": "the loss", "join": "the coming", "add": "new topics", "drop": "dropped topics"}
        life = f" (life {event.incarnation})" if event.incarnation > 1 else ""
        return f"{kinds.get(event.kind, event.kind)} of {self.name(event.node)}{life}"

    def describe(self, what: object) -> str:
        match what:
            case str():
                return what
            case Received(sender, message):
                return f"<- {self.name(sender)}: {self.message(message)}"
            case Dropped(to, message, why):
                return f"-> {self.name(to)}: {self.message(message)}: {why}"
            case PeerLost(peer, _):
                return f"loses sight of {self.name(peer)}"
            case TimerFired(key):
                words = key if isinstance(key, tuple) else (key,)
                return "timer: " + " ".join(self.value("", word) for word in words)
            case Subscribe(added, dropped):
                return f"is told to want {self._wanted(added)} and no longer {self._wanted(dropped)}"
            case Depart():
                return "is told to leave"
            case Notify(kind, detail):
                return self._notice(kind, detail)
            case _:
                return repr(what)

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

    def _notice(self, kind: str, detail: Any) -> str:
        if kind == "step":
            event, step, members = detail
            return f"mends {self.event(event)}: {step}" + (f" {self.value('ids', members)}" if members else "")
        if kind == "handled":
            event, made, _, events = detail
            links = ", ".join(f"{self.name(one)}-{self.name(other)}" for one, other in made)
            others = [self.event(linked) for linked in events if linked != event]
            along = f" along with {' and '.join(others)}" if others else ""
            return f"has mended {self.event(event)}{along}: {links or 'no new links'}"
        if kind == "arrived":
            return f"hears that {self.event(detail)} is handled"
        if kind == "lost":
            return f"takes {self.name(detail.id)} for gone"
        if kind == "renewed":
            return f"was taken for gone, and begins life {detail}"
        if kind == "audit":
            pairs, topics = detail
            links = ", ".join(f"{self.name(one)}-{self.name(other)}" for one, other in pairs)
            return f"sees {topics} topics in pieces, and has linked {links}"
        if kind == "link":
            return f"is linked to {self.name(detail)}"
        return f"{kind}" + ("" if detail is None else f" {detail}")


def _is_routine(what: object) -> bool:
    match what:
        case Received(_, message) | Dropped(_, message, _):
            return isinstance(message, GOSSIP)
        case TimerFired(key):
            return (key[0] if isinstance(key, tuple) else key) in QUIET_TIMERS
        case _:
            return False

"""The event queue (exeQ) and the standby list (standbyL) of omen Alg. 5, and what is known of each event."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Descriptor, EventId, Ref
from omen.protocol.repair.shadow_set import Loss

HANDLED_AT_MOST = 256
HANDLED_NODES_AT_MOST = 1 << 15
"""Former neighbours remembered for all handled events together: about 10 MB."""
PENDING_WEIGHT_AT_MOST = 1 << 18
"""Topics, neighbours and reporters of all pending events together: about 25 MB."""


class PendingEvent(msgspec.Struct):
    """All that is known of an event, whichever node ends up handling it.

    `put_off`: how often. Of a newcomer that was put off: in which topics it is linked already, and who might have taken
    it in but did not answer.
    """

    loss: Loss
    centre: Descriptor | None = None
    reporters: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    inquirers: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    client: Ref | None = None
    put_off: int = 0
    linked: set[Topic] = msgspec.field(default_factory=set)
    passed_over: dict[NodeId, Ref] = msgspec.field(default_factory=dict)

    @property
    def is_hearsay(self) -> bool:
        """Whether it is known by a question alone: nobody has told what was lost."""
        return self.client is None and self.centre is None and not (self.loss.neighbours or self.loss.topics)

    @property
    def weight(self) -> int:
        """How much is kept of it: each topic and each node counts."""
        loss = self.loss
        return len(loss.topics) + len(loss.neighbours) + len(loss.backups) + len(self.reporters) + len(self.inquirers)


class EventQueue:
    """`exe_q`: to be handled here. `standby`: by another node, and by which (Alg. 5). `pending`: in the order heard
    of.
    """

    def __init__(self) -> None:
        self.exe_q: list[EventId] = []
        self.standby: dict[EventId, NodeId] = {}
        self.pending: dict[EventId, PendingEvent] = {}
        self.handled: dict[EventId, dict[NodeId, Ref]] = {}

    def get(self, event: EventId) -> PendingEvent:
        """What is known of an event, from nothing on."""
        return self.pending.setdefault(event, PendingEvent(Loss(event)))

    def take(self) -> EventId:
        """The queued event known here for longest: exeQ is ordered by local time, whichever node was to handle it
        before.
        """
        queued = set(self.exe_q)
        oldest = next((event for event in self.pending if event in queued), self.exe_q[0])
        self.exe_q.remove(oldest)
        return oldest

    def requeue(self, event: EventId) -> None:
        """Behind all others."""
        self.pending[event] = self.pending.pop(event)
        self.exe_q.append(event)

    def collect(self, event: EventId, repaired: Iterable[Ref]) -> None:
        """The event is handled, these former neighbours heard: forget all but that, and that in time (gcChurnEvent)."""
        self.standby.pop(event, None)
        self.pending.pop(event, None)
        if event in self.exe_q:
            self.exe_q.remove(event)
        self.remember(event, repaired)

    def remember(self, event: EventId, repaired: Iterable[Ref]) -> None:
        if event not in self.handled and len(self.handled) >= HANDLED_AT_MOST:
            del self.handled[next(iter(self.handled))]
        self.handled.setdefault(event, {}).update({ref.id: ref for ref in repaired})
        while len(self.handled) > 1 and sum(map(len, self.handled.values())) > HANDLED_NODES_AT_MOST:
            del self.handled[next(iter(self.handled))]

    def recall(self, linked: EventId, descriptor: Descriptor | None) -> Loss:
        """All this node has been told of a linked loss. `known` only if its neighbours were named to it.

        `descriptor`: the lost node's, if one is known. What was handled before is told by the nodes that were heard
        then: they stand for all that it held together.
        """
        pending, repaired = self.pending.get(linked), self.handled.get(linked)
        loss = Loss(linked, known=False)
        if pending is not None:
            loss = Loss(linked, set(pending.loss.topics), dict(pending.loss.neighbours), dict(pending.loss.backups))
            loss.known = pending.client is not None or bool(pending.loss.neighbours.keys() - pending.reporters.keys())
        if descriptor is not None and descriptor.digest.ref.incarnation == linked.incarnation:
            loss.topics.update(descriptor.topics)
            loss.neighbours.update({ref.id: ref for ref in descriptor.neighbours})
            loss.known = True
        if repaired is not None:
            loss.neighbours.update(repaired)
            loss.known = True
        return loss

    def weight(self) -> int:
        """How much is kept of all pending events."""
        return sum(pending.weight for pending in self.pending.values())

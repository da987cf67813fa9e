"""What a node asks its successor for: to be linked; a repair before it leaves or gives topics up."""

from __future__ import annotations

from collections.abc import Iterable

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, RequestHandled, Time, Timer, TimerHandlers, Topic
from omen.protocol.membership.connections import OwnDescriptor
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import Descriptor, Digest, EventId, Ref, RepairRequest
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views

ADDS_AT_MOST = 8
"""Requests to be linked in more topics that are under way; what is wanted beyond them goes together in the next. A node
that publishes on thousands of topics, one after the other, would otherwise ask for as many repairs."""


SOONER = 3
"""So many times a request is repeated in such a part of the standby time: where nodes dial each other at the same
moment, a message may go down with the connection that makes way."""


class DepartTimer(Timer, frozen=True):
    """This node has waited long enough for the repair of the gap it leaves: it goes."""


class RequestTimer(Timer, frozen=True):
    """A request is to be made again, unless it was handled."""

    event: EventId


class Requests:
    """`open`: asked and not yet heard to be handled. `wanted`: this node's topics once everything is handled.

    `joining`: on its way in, from before it has found its place until its join is handled.

    A topic that is given up is carried until the repair is done, as a link is made before another is broken.
    """

    def __init__(self, context: NodeContext, ring: Ring, links: Links, views: Views, descriptor: OwnDescriptor) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._ring = ring
        self._links = links
        self._views = views
        self._descriptor = descriptor
        self.open: dict[EventId, RepairRequest] = {}
        self.wanted = set(context.peer_table.me.topics)
        self.departing = False
        self.joining = False
        self._version = 0
        self._joins = 0
        self._collecting: EventId | None = None
        self._asked: dict[EventId, Ref] = {}
        self._tries: dict[EventId, int] = {}

    def timers(self) -> TimerHandlers:
        return {RequestTimer: self.on_timer}

    def begin_joining(self) -> None:
        """This node looks for its place: it stands for no other in any topic yet, whichever coordinator asks."""
        self.joining = True

    def end_joining(self) -> None:
        """There is no other node to join."""
        self.joining = False

    def join(self) -> None:
        """Ask to be linked. A node that was alone for a while asks again: that is another event."""
        if not any(event.kind == EventKind.JOIN for event in self.open):
            self._joins += 1
            self._ask(EventKind.JOIN, self._joins - 1, self._peer_table.me.topics, ())

    def depart(self) -> None:
        """Let the successor repair the gap first, then leave."""
        if not self.departing:
            self.departing = True
            self._out.set_timer(DepartTimer(), 2 * self._config.standby_timeout)
            self._ask(EventKind.LEAVE, 0, (), self._peer_table.me.topics)

    def resubscribe(self, added: Iterable[Topic], dropped: Iterable[Topic]) -> None:
        """Added topics like a join, dropped ones like a leave, for those topics only."""
        gained = set(added) - self.wanted
        given_up = (set(dropped) & self.wanted) - set(added)
        self.wanted = (self.wanted | gained) - given_up
        fresh = gained - set(self._peer_table.me.topics)
        if not fresh and not given_up:
            return
        self._version = max(self._version, self._peer_table.me.digest.topics_version) + 1
        if fresh:
            self._carry(fresh | set(self._peer_table.me.topics))
            self._ask_to_be_linked(fresh)
        if given_up:
            self._uncollect(given_up)
            self._ask(EventKind.DROP, self._version, (), tuple(sorted(given_up)))

    def _ask_to_be_linked(self, fresh: set[Topic]) -> None:
        """At once, or together with others when one of those under way is handled."""
        if self._collecting is not None:
            self._collect(fresh.union(self.open[self._collecting].added))
        elif sum(event.kind == EventKind.ADD for event in self.open) < ADDS_AT_MOST:
            self._ask(EventKind.ADD, self._version, tuple(sorted(fresh)), ())
        else:
            ref = self._peer_table.ref
            self._collecting = EventId(ref.id, ref.incarnation, EventKind.ADD, self._version)
            self._collect(fresh)

    def _collect(self, topics: set[Topic]) -> None:
        assert self._collecting is not None
        self.open[self._collecting] = RepairRequest(self._collecting, self._peer_table.me, tuple(sorted(topics)), ())

    def _uncollect(self, given_up: set[Topic]) -> None:
        """What is given up before anything was asked for it."""
        if self._collecting is not None:
            left = set(self.open[self._collecting].added) - given_up
            if left:
                self._collect(left)
            else:
                del self.open[self._collecting]
                self._collecting = None

    def on_timer(self, timer: RequestTimer) -> None:
        is_alone = not self._ring.members and not self._links.links and not self.joining
        if is_alone and timer.event in self.open and timer.event.kind in (EventKind.ADD, EventKind.DROP):
            self.on_handled(timer.event, ())  # nobody is left to ask
        else:
            self.ask_again(timer.event)

    def ask_again(self, event: EventId) -> None:
        """Ask the present successor, until it is said to be handled."""
        request = self.open.get(event)
        if request is not None and self._ring.successors:
            fresh = RepairRequest(event, self._descriptor.refresh(), request.added, request.dropped)
            successor = self._asked[event] = self._ring.members[self._ring.successors[0]]
            self._out.send(successor, fresh)
        if request is not None:
            tries = self._tries[event] = self._tries.get(event, 0) + 1
            standby = self._config.standby_timeout
            self._out.set_timer(RequestTimer(event), standby // SOONER if tries <= SOONER else standby)

    def follow_ring(self) -> None:
        """Another may be the coordinator now, or the one that was asked has rejoined and forgotten: if that goes on
        for a moment, ask again.
        """
        successor = self._ring.members[self._ring.successors[0]] if self._ring.successors else None
        for event, asked in self._asked.items():
            if successor is not None and (asked.id, asked.incarnation) != (successor.id, successor.incarnation):
                self._asked[event] = successor
                self._out.set_timer(RequestTimer(event), 2 * self._config.answer_timeout)

    def ask_all_again(self) -> None:
        """The node that was asked may have failed."""
        for event in list(self.open):
            if event != self._collecting:
                self.ask_again(event)

    def on_handled(self, event: EventId, repaired: Iterable[Ref]) -> bool:
        """Done, unless a neighbour has come in since who was not heard; whether this node can leave now."""
        request = self.open.pop(event, None)
        self._asked.pop(event, None)
        self._tries.pop(event, None)
        if request is None:
            return False
        if self._collecting is not None and event.kind == EventKind.ADD:
            collected, self._collecting = self._collecting, None
            self.ask_again(collected)
        left_over = self._is_left_over(request, repaired)
        if left_over or self._counts_on_fading(request):
            self._version += 1
            wait = 0 if left_over else self._config.standby_timeout // 4
            self._ask(event.kind, self._version, (), request.dropped, wait)
            return False
        self._out.notify(RequestHandled(event))
        if event.kind == EventKind.JOIN:
            self.joining = False
        if event.kind == EventKind.DROP:
            self._carry(set(self._peer_table.me.topics) - (set(request.dropped) - self.wanted))
        return event.kind == EventKind.LEAVE and self.departing

    def waiting_for(self) -> set[Topic]:
        """The topics in which this node is still to be linked."""
        if self.joining:
            return set(self._peer_table.me.topics)
        return {topic for request in self.open.values() for topic in request.added}

    def _ask(
        self, kind: EventKind, version: int, added: tuple[Topic, ...], dropped: tuple[Topic, ...], wait: Time = 0
    ) -> None:
        event = EventId(self._peer_table.id, self._peer_table.ref.incarnation, kind, version)
        self.open[event] = RepairRequest(event, self._peer_table.me, added, dropped)
        if wait:
            self._out.set_timer(RequestTimer(event), wait)
        else:
            self.ask_again(event)
        if not self._ring.members and not (self.joining and kind == EventKind.ADD):
            self.on_handled(event, ())

    def _is_left_over(self, request: RepairRequest, repaired: Iterable[Ref]) -> bool:
        """Whether a neighbour was not heard. One that leaves as well is not missed: its own repair stands for it."""
        heard = {ref.id for ref in repaired}
        left_out = [node for node in self._links.links if node not in heard and self._shares(node, request.dropped)]
        if request.event.kind == EventKind.LEAVE:
            left_out = [node for node in left_out if not self._links.count_on(node).isdisjoint(request.dropped)]
        return bool(self._ring.members) and bool(left_out)

    def _counts_on_fading(self, request: RepairRequest) -> bool:
        """Of two neighbours that give the same topic up at once each repair counts on the other: the higher waits."""
        if request.event.kind != EventKind.DROP or not self._ring.members:
            return False
        dropped = frozenset(request.dropped)
        lower = [node for node in self._links.links if node < self._peer_table.id]
        return any(dropped & (self._peer_table.topics_of(node) - self._links.count_on(node)) for node in lower)

    def _shares(self, node: NodeId, topics: tuple[Topic, ...]) -> bool:
        return not self._peer_table.topics_of(node).isdisjoint(topics)

    def _carry(self, topics: set[Topic]) -> None:
        digest = self._peer_table.me.digest
        digest = Digest(digest.ref, digest.topics_version + 1, digest.links_version)
        me = self._peer_table.me
        self._peer_table.describe(Descriptor(digest, tuple(sorted(topics)), me.neighbours, me.rules))
        self._views.note_news((self._peer_table.id,))
        self._views.select_view()

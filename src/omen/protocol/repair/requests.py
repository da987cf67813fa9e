"""What a node asks its successor for: to be linked, to have the gap mended before it leaves or gives topics up."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Descriptor, Digest, EventId, Ref, RepairRequest
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views


class Requests:
    """`open`: asked and not yet heard to be handled. `wanted`: this node's topics once everything is handled.

    `count_on`: a neighbour's topics without those it is known to be giving up.
    A topic that is given up is carried until the gap is mended, as a link is made before another is broken.
    """

    def __init__(
        self,
        peer_table: PeerTable,
        ring: Ring,
        links: Links,
        views: Views,
        config: Config,
        out: Outbox,
        describe: Callable[[], Descriptor],
    ) -> None:
        self._peer_table = peer_table
        self._ring = ring
        self._links = links
        self._views = views
        self._config = config
        self._out = out
        self._describe = describe
        self.open: dict[EventId, RepairRequest] = {}
        self.wanted = set(peer_table.me.topics)
        self.departing = False
        self.count_on: Callable[[NodeId], frozenset[Topic]] = peer_table.topics_of
        self._version = 0

    def join(self) -> None:
        self._ask("join", 0, self._peer_table.me.topics, ())

    def depart(self) -> None:
        """Let the successor mend the gap first, then go."""
        if not self.departing:
            self.departing = True
            self._out.set_timer(("depart",), 2 * self._config.standby_timeout)
            self._ask("leave", 0, (), self._peer_table.me.topics)

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
            self._ask("add", self._version, tuple(sorted(fresh)), ())
        if given_up:
            self._ask("drop", self._version, (), tuple(sorted(given_up)))

    def ask_again(self, event: EventId) -> None:
        """Ask the present successor, until somebody says it is handled."""
        request = self.open.get(event)
        if request is not None and self._ring.successors:
            fresh = RepairRequest(event, self._describe(), request.added, request.dropped)
            self._out.send(self._ring.members[self._ring.successors[0]], fresh)
        if request is not None:
            self._out.set_timer(("arrive", event), self._config.standby_timeout)

    def ask_all_again(self) -> None:
        """Whoever was asked may be gone."""
        for event in list(self.open):
            self.ask_again(event)

    def on_handled(self, event: EventId, repaired: Iterable[Ref]) -> bool:
        """Done, unless a neighbour has come in since who was not heard; whether this node can leave now."""
        request = self.open.pop(event, None)
        if request is None:
            return False
        left_over = self._is_left_over(request, repaired)
        if left_over or self._counts_on_fading(request):
            self._version += 1
            wait = 0 if left_over else self._config.standby_timeout // 4
            self._ask(event.kind, self._version, (), request.dropped, wait)
            return False
        self._out.notify("arrived", event)
        if event.kind == "drop":
            self._carry(set(self._peer_table.me.topics) - (set(request.dropped) - self.wanted))
        return event.kind == "leave" and self.departing

    def waiting_for(self) -> set[Topic]:
        """The topics in which this node is still to be linked."""
        return {topic for request in self.open.values() for topic in request.added}

    def _ask(
        self, kind: str, version: int, added: tuple[Topic, ...], dropped: tuple[Topic, ...], wait: Time = 0
    ) -> None:
        event = EventId(self._peer_table.id, self._peer_table.ref.incarnation, kind, version)
        self.open[event] = RepairRequest(event, self._peer_table.me, added, dropped)
        if wait:
            self._out.set_timer(("arrive", event), wait)
        else:
            self.ask_again(event)
        if not self._ring.members:
            self.on_handled(event, ())

    def _is_left_over(self, request: RepairRequest, repaired: Iterable[Ref]) -> bool:
        heard = {ref.id for ref in repaired}
        return bool(self._ring.members) and any(
            self._shares(node, request.dropped) for node in self._links.links if node not in heard
        )

    def _counts_on_fading(self, request: RepairRequest) -> bool:
        """Of two neighbours that give the same topic up at once each repair counts on the other: the higher waits."""
        if request.event.kind != "drop" or not self._ring.members:
            return False
        dropped = frozenset(request.dropped)
        lower = [node for node in self._links.links if node < self._peer_table.id]
        return any(dropped & (self._peer_table.topics_of(node) - self.count_on(node)) for node in lower)

    def _shares(self, node: NodeId, topics: tuple[Topic, ...]) -> bool:
        return not self._peer_table.topics_of(node).isdisjoint(topics)

    def _carry(self, topics: set[Topic]) -> None:
        digest = self._peer_table.me.digest
        digest = Digest(digest.ref, digest.topics_version + 1, digest.links_version)
        self._peer_table.describe(Descriptor(digest, tuple(sorted(topics)), self._peer_table.me.neighbours))
        self._views.note_news((self._peer_table.id,))
        self._views.select_view()

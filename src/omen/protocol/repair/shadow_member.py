"""What a node does while another mends: says what it and its neighbours have, makes the links proposed, walks on."""

from __future__ import annotations

from collections.abc import Callable

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.membership.circle import clockwise
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import (
    EventId,
    LinkConfirmed,
    LinkProposal,
    Ref,
    RelayedQuery,
    RingWalk,
    RingWalkReply,
    ShadowQuery,
    ShadowReply,
)
from omen.protocol.repair.link_pruning import LinkPruning
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports
from omen.protocol.repair.requests import Requests
from omen.protocol.repair.shadow_set import to_bits

LOSSES = ("leave", "drop")


class ShadowMember:
    """`proposals`: whom to tell when a proposed link is up. `lose` is called for losses heard of from coordinators.

    `sparing`: given where redundant links are to be removed.
    """

    def __init__(
        self,
        peer_table: PeerTable,
        ring: Ring,
        links: Links,
        loss_reports: LossReports,
        requests: Requests,
        config: Config,
        out: Outbox,
        lose: Callable[[Ref], None],
        clock: Callable[[], Time],
    ) -> None:
        self._peer_table = peer_table
        self._ring = ring
        self._links = links
        self._loss_reports = loss_reports
        self._requests = requests
        self._out = out
        self._config = config
        self._lose = lose
        self._clock = clock
        self.link_pruning: LinkPruning | None = None
        self.proposals: dict[NodeId, list[tuple[Ref, EventId, int]]] = {}
        self._fading: dict[NodeId, tuple[int, Time, frozenset[Topic]]] = {}

    def on_ask(self, message: ShadowQuery) -> None:
        """Of two repairs that ask this node, the later must hear of both losses: whoever is lost counts no more."""
        for ref in message.lost:
            if not self._peer_table.is_declared_failed(ref):
                self._lose(ref)
        self._note_fading(message)
        asked = message.topics
        links = tuple((node, to_bits(asked, self.count_on(node))) for node in self._links.up())
        self._out.send(
            message.asker,
            ShadowReply(
                message.event,
                message.attempt,
                self._peer_table.ref,
                self._peer_table.me.digest.topics_version,
                to_bits(asked, self._peer_table.topics_of(self._peer_table.id)),
                to_bits(asked, self._requests.waiting_for()),
                len(self._links.links),
                links,
                any(self._loss_reports.was_linked(ref) for ref in message.lost),
                self._requests.departing,
                self._spare(message),
            ),
        )

    def _spare(self, message: ShadowQuery) -> tuple[NodeId, ...]:
        """Which links might go, where that is wanted; a repair of a loss counts on all links named here."""
        if self.link_pruning is None:
            return ()
        if message.event.kind in LOSSES:
            self.link_pruning.note_answer(message)
        return self.link_pruning.spareable()

    def on_relay(self, message: RelayedQuery) -> None:
        """Pass a coordinator's question on to neighbours it has no address of."""
        for node in message.to:
            if self._links.is_up(node):
                self._out.send(self._links.links[node].ref, message.ask)

    def _note_fading(self, message: ShadowQuery) -> None:
        """Until its topics change, it is gone, or as long as a node takes to leave: one taken for lost may stay."""
        self._fading = {node: entry for node, entry in self._fading.items() if node in self._links.links}
        until = self._clock() + 2 * self._config.standby_timeout
        for node in message.fading:
            known = self._peer_table.known.get(node)
            if known is not None and node in self._links.links:
                faded = self._faded(node).union(message.topics)
                self._fading[node] = (known.digest.topics_version, until, faded)

    def _faded(self, node: NodeId) -> frozenset[Topic]:
        version, until, topics = self._fading.get(node, (0, 0, frozenset()))
        is_so = self._clock() < until and version == self._peer_table.known[node].digest.topics_version
        return topics if is_so else frozenset()

    def count_on(self, node: NodeId) -> frozenset[Topic]:
        """The topics of a neighbour, without those it is about to give up or to leave with."""
        topics = self._peer_table.topics_of(node)
        return topics - self._faded(node) if node in self._fading else topics

    def on_propose(self, message: LinkProposal) -> None:
        if self._requests.departing:
            return
        self._links.plan(message.other)
        if self._links.is_up(message.other.id):
            self._confirm(message.asker, message.event, message.attempt, message.other.id)
        elif message.other.id in self._links.links:
            waiting = self.proposals.setdefault(message.other.id, [])
            waiting[:] = [entry for entry in waiting if entry[1] != message.event]
            waiting.append((message.asker, message.event, message.attempt))

    def confirm_links(self) -> None:
        """Tell who proposed them of the links that came up; forget those that were given up."""
        for node in self._links.came_up:
            self._out.notify("link", node)
            for asker, event, attempt in self.proposals.pop(node, ()):
                self._confirm(asker, event, attempt, node)
        self._links.came_up.clear()
        for node in [node for node in self.proposals if node not in self._links.links]:
            del self.proposals[node]

    def _confirm(self, asker: Ref, event: EventId, attempt: int, other: NodeId) -> None:
        self._out.send(asker, LinkConfirmed(event, attempt, other, self._peer_table.me.digest.topics_version))

    def on_walk(self, message: RingWalk) -> None:
        """Speak for oneself and the predecessors; pass the rest on by L, until the circle is closed."""
        missing = list(message.topics)
        found = list(message.found)
        for node in (self._peer_table.id, *self._ring.get_preds()):
            descriptor = self._peer_table.get(node)
            if descriptor is None or node == message.event.node or node in message.skip:
                continue
            has = self._peer_table.topics_of(node)
            if any(topic in has for topic in missing):
                found.append(descriptor)
                missing = [topic for topic in missing if topic not in has]
        origin = message.origin.id
        onward = self._ring.get_succs()[-1] if self._ring.successors else self._peer_table.id
        closed = clockwise(origin, onward) <= clockwise(origin, self._peer_table.id) or onward == origin
        if not missing or closed:
            self._out.send(message.origin, RingWalkReply(message.event, tuple(found)))
        else:
            walk = RingWalk(message.event, message.origin, tuple(missing), tuple(found), message.skip)
            self._out.send(self._ring.members[onward], walk)

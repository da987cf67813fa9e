"""A member of a shadow set: it says what it and its neighbours have, makes the links proposed, passes ring walks on."""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, LinkUp, NodeId
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.base import WALK_STEPS_AT_MOST, EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
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

LOSSES = (EventKind.LEAVE, EventKind.DROP)
WAITING_AT_MOST = 64
"""Events for which one link is being made: who proposes it for another is told when it is up, or proposes it again."""
RELAYED_AT_MOST = 256
WALKS_REMEMBERED = 1024


class ShadowMember:
    """`proposals`: whom to tell when a proposed link is up. `link_pruning`: None where redundant links stay."""

    def __init__(
        self,
        context: NodeContext,
        ring: Ring,
        links: Links,
        loss_reports: LossReports,
        requests: Requests,
        link_pruning: LinkPruning | None,
    ) -> None:
        self._peer_table = context.peer_table
        self._out = context.out
        self._ring = ring
        self._links = links
        self._loss_reports = loss_reports
        self._requests = requests
        self._link_pruning = link_pruning
        self.proposals: dict[NodeId, list[tuple[Ref, EventId, int]]] = {}
        self._walks: dict[tuple[NodeId, NodeId, int, int], None] = {}

    def handlers(self) -> Handlers:
        return {
            RelayedQuery: self.on_relayed_query,
            LinkProposal: self.on_proposal,
            RingWalk: self.on_walk,
        }

    def on_query(self, _: NodeId, message: ShadowQuery) -> None:
        """A coordinator asks. The node has taken in before which losses it names: of two repairs that ask this node,
        the later must hear of both.
        """
        self._links.note_fading(message.fading, message.topics)
        asked = message.topics
        links = tuple((node, to_bits(asked, self._links.count_on(node))) for node in self._links.up())
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
                self._prunable(message),
                self._peer_table.me.rules,
            ),
        )

    def _prunable(self, message: ShadowQuery) -> tuple[NodeId, ...]:
        """Which links might be pruned, where that is wanted; a repair of a loss counts on all links named here."""
        if self._link_pruning is None:
            return ()
        if message.event.kind in LOSSES:
            self._link_pruning.note_reply(message)
        return self._link_pruning.prunable()

    def on_relayed_query(self, _: NodeId, message: RelayedQuery) -> None:
        """Pass a coordinator's question on to neighbours it has no address of."""
        for node in dict.fromkeys(message.to[:RELAYED_AT_MOST]):
            if self._links.is_up(node):
                self._out.send(self._links.links[node].ref, message.ask)

    def is_repeated(self, message: LinkProposal) -> bool:
        """Whether this was proposed before, and the link is being made or up: taken in again, it costs nothing."""
        if not self._links.has(message.other):
            return False
        waiting = self.proposals.get(message.other.id, ())
        return self._links.is_up(message.other.id) or any(
            (asker, event) == (message.asker, message.event) for asker, event, _ in waiting
        )

    def on_proposal(self, _: NodeId, message: LinkProposal) -> None:
        if self._requests.departing:
            return
        if message.lasting:
            if self._links.is_full() and message.other.id not in self._links.links:
                return
            self._keep_lasting(message.other.id)
        self._links.plan(message.other, spare=message.lasting)
        if self._links.is_up(message.other.id):
            self._confirm(message.asker, message.event, message.attempt, message.other.id)
        elif message.other.id in self._links.links:
            waiting = self.proposals.setdefault(message.other.id, [])
            waiting[:] = [entry for entry in waiting if entry[1] != message.event][1 - WAITING_AT_MOST :]
            waiting.append((message.asker, message.event, message.attempt))

    def _keep_lasting(self, node: NodeId) -> None:
        if self._link_pruning is not None:
            self._link_pruning.keep_lasting(node)

    def confirm_links(self) -> None:
        """Tell who proposed them of the links that came up; forget those that were given up."""
        for node in self._links.take_came_up():
            self._out.notify(LinkUp(node))
            for asker, event, attempt in self.proposals.pop(node, ()):
                self._confirm(asker, event, attempt, node)
        for node in [node for node in self.proposals if node not in self._links.links]:
            del self.proposals[node]

    def _confirm(self, asker: Ref, event: EventId, attempt: int, other: NodeId) -> None:
        self._out.send(asker, LinkConfirmed(event, attempt, other, self._peer_table.me.digest.topics_version))

    def on_walk(self, sender: NodeId, message: RingWalk) -> None:
        """Speak for this node and those near it on the ring; pass the rest on by L, until the ring is closed.

        After losses the L-th successor that is known may stand further off than L: so a node speaks for its successors
        too, and for the spare predecessors, and none between two steps is left out.

        A step of a walk that is led may come twice, for its answer may have been lost: it is answered again.
        """
        if not message.led and self._has_passed(sender, message):
            return
        missing = list(message.topics)
        found = list(message.found)
        for node in (self._peer_table.id, *self._ring.predecessors, *self._ring.get_succs()):
            descriptor = self._peer_table.get(node)
            if descriptor is None or node == message.event.node or node in message.skip:
                continue
            has = self._peer_table.topics_of(node)
            if any(topic in has for topic in missing):
                found.append(Descriptor(descriptor.digest, (), ()))  # which node it is: with topics a walk had no end
                missing = [topic for topic in missing if topic not in has]
        onward = self._ring.next_step(message.origin.id, message.event.node)
        if not missing or onward is None or not message.hops:
            self._out.send(message.origin, RingWalkReply(message.event, tuple(found), message.number * message.led))
        elif message.led:
            answer = RingWalkReply(message.event, tuple(found), message.number, tuple(missing), onward)
            self._out.send(message.origin, answer)
        else:
            hops = min(message.hops, WALK_STEPS_AT_MOST) - 1
            walk = RingWalk(
                message.event, message.origin, tuple(missing), tuple(found), message.skip, hops, message.number
            )
            self._out.send(onward, walk)

    def _has_passed(self, sender: NodeId, walk: RingWalk) -> bool:
        """Whether this walk has come by before, from the same peer: another must not be able to spoil it.

        An origin numbers its walks, and sends a new one where one was lost.
        """
        key = (sender, walk.origin.id, walk.origin.incarnation, walk.number)
        if not walk.number or key in self._walks:
            return walk.number > 0
        if len(self._walks) >= WALKS_REMEMBERED:
            del self._walks[next(iter(self._walks))]
        self._walks[key] = None
        return False

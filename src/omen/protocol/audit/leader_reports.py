"""The leader of each piece tells the topic's rendezvous that the piece is there: once per period, in few bytes."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from omen.protocol.audit.labels import MASK, PieceLabels, mix
from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Topic
from omen.protocol.membership.ring import SPARE, Ring, clockwise
from omen.protocol.membership.ring_lookup import LookupPurpose, RingLookup
from omen.protocol.messages.base import LinkRules
from omen.protocol.messages.overlay import PieceQuery, PieceReply, PieceReport, PieceReportAck, Ref
from omen.protocol.repair.links import Links
from omen.protocol.repair.shadow_set import to_bits

SEARCHES_AT_MOST = 16
SILENT_PERIODS = 2
HANDS = 3


def rendezvous_place(topic: Topic) -> NodeId:
    """The place on the ring to which the pieces of a topic are reported: the first node from there on is the
    rendezvous.
    """
    return mix(topic)


class Owner(msgspec.Struct):
    """A rendezvous as a leader knows it: it answers for the places after `start`. `seen`: digest of what it has."""

    ref: Ref
    start: NodeId
    seen: int = 0
    short: bool = False
    silent: int = 0

    def answers_for(self, place: NodeId) -> bool:
        return self.start == self.ref.id or 0 < clockwise(self.start, place) <= clockwise(self.start, self.ref.id)


class RendezvousLookup(LookupPurpose, frozen=True):
    """Who answers for this place?"""

    place: NodeId


class LeaderReports:
    """Knows which rendezvous answers for which stretch of the ring, and tells each what it should have."""

    def __init__(
        self, context: NodeContext, ring: Ring, links: Links, labels: PieceLabels, ring_lookup: RingLookup
    ) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._ring = ring
        self._links = links
        self._labels = labels
        self._ring_lookup = ring_lookup
        self.owners: dict[NodeId, Owner] = {}
        self._searched: set[NodeId] = set()  # in this period
        self._searching: set[NodeId] = set()

    def next_period(self) -> None:
        """Tell every rendezvous. One that has been silent for long is looked for anew."""
        for node in [node for node, owner in self.owners.items() if owner.silent >= SILENT_PERIODS]:
            del self.owners[node]
        self._searched.clear()
        self._searching.clear()
        self.report(to_all=True)

    def report(self, to_all: bool = False) -> None:
        """Tell the rendezvous whose pieces have changed, or all of them."""
        self._labels.note_reported()
        groups: dict[NodeId, list[Topic]] = {node: [] for node in self.owners}
        order = sorted(self.owners)
        for topic in self._labels.led():
            place = rendezvous_place(topic)
            owner = self._owner_of(place, order)
            if owner is None:
                self._search(place)
            else:
                groups.setdefault(owner, []).append(topic)
        for node, topics in groups.items():
            self._tell(self.owners[node], topics, to_all)

    def _owner_of(self, place: NodeId, order: list[NodeId]) -> NodeId | None:
        """From the ring where it reaches that far, else from what rendezvous have said."""
        if self._is_near(place):
            node = self._ring.nearest_successor_of(place)
            ref = self._peer_table.ref if node == self._peer_table.id else self._ring.members[node]
            owner = self.owners.get(node)
            if owner is None or owner.ref.incarnation < ref.incarnation:
                self.owners[node] = Owner(ref, (place - 1) & MASK)
            return node
        if not order:
            return None
        node = order[bisect_left(order, place) % len(order)]
        return node if node in self.owners and self.owners[node].answers_for(place) else None

    def _is_near(self, place: NodeId) -> bool:
        ring = self._ring
        if len(ring.members) < 2 * (self._config.resilience + SPARE):
            return True
        first, last = ring.predecessors[-1], ring.successors[-1]
        return 0 < clockwise(first, place) <= clockwise(first, last)

    def _search(self, place: NodeId) -> None:
        """A few at a time, each once per period; what is found may answer for places still to be looked for."""
        if len(self._searching) < SEARCHES_AT_MOST and place not in self._searched:
            self._searched.add(place)
            self._searching.add(place)
            self._ring_lookup.find(place, RendezvousLookup(place), self._ring.members.values())

    def on_located(self, place: NodeId, successor: Ref | None) -> None:
        self._searching.discard(place)
        if successor is not None:
            self.owners.setdefault(successor.id, Owner(successor, (place - 1) & MASK))
            self.report()

    def _tell(self, owner: Owner, topics: list[Topic], to_all: bool) -> None:
        digest = sum(map(mix, topics)) & MASK
        if owner.seen == digest and not (to_all and topics):
            owner.silent += to_all
            return
        owner.short = owner.seen == digest
        owner.silent += to_all
        self._out.send(owner.ref, PieceReport(self._peer_table.ref, digest, None if owner.short else tuple(topics)))

    def on_ack(self, sender: NodeId, message: PieceReportAck) -> None:
        """What a rendezvous has, and where its stretch begins: tell it again where that is not what it should have."""
        owner = self.owners.get(sender)
        if owner is None or message.me.id != sender:
            return
        is_news = owner.short and message.digest != owner.seen
        owner.ref, owner.seen, owner.start, owner.silent = message.me, message.digest, message.start, 0
        if is_news:
            self.report()

    def on_query(self, _: NodeId, message: PieceQuery) -> None:
        """Say which of these pieces this node leads, and through whom to link them: who has most that may be split."""
        asked = message.topics
        led = frozenset(topic for topic in asked if self._labels.leads(topic))
        near = {topic: label for topic, label in self._labels.changed_lately().items() if topic not in asked}
        told = (*asked, *near)
        hands = [(self._peer_table.ref, len(self._links.links), to_bits(told, led.union(near)))]
        links = self._links.links  # a carrier's link may have gone since it said what it carries
        carriers = self._labels.carriers(led.union(near))
        helpers = [
            (self._is_full(node), -len(topics), self._degree(node), node, topics)
            for node, topics in carriers
            if node in links and not topics.isdisjoint(led)
        ]
        for _, _, degree, node, topics in sorted(helpers, key=lambda entry: entry[:4])[:HANDS]:
            hands.append((links[node].ref, degree, to_bits(told, topics)))
        bits = to_bits(asked, led)
        rules = tuple(self._rules(ref.id) for ref, _, _ in hands)
        reply = PieceReply(
            self._peer_table.ref,
            message.nonce,
            bits,
            tuple(near.items()),
            tuple(hands),
            rules if any(rules) else (),
        )
        self._out.send(message.asker, reply if led else PieceReply(self._peer_table.ref, message.nonce, bits, (), ()))

    def _is_full(self, node: NodeId) -> bool:
        known = self._peer_table.known.get(node)
        return known is not None and known.is_full

    def _rules(self, node: NodeId) -> LinkRules | None:
        known = self._peer_table.get(node)
        return known.rules if known is not None else None

    def _degree(self, node: NodeId) -> int:
        known = self._peer_table.known.get(node)
        return len(known.neighbours) if known is not None else 0

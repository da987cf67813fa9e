"""Joining and leaving: a node's place on the ring (omen 3.3, 5)."""

from __future__ import annotations

from collections.abc import Sequence

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Time, Timer, TimerHandlers, Topic
from omen.protocol.membership.gossip import Gossip
from omen.protocol.membership.ring import Ring, clockwise
from omen.protocol.membership.ring_lookup import LookupPurpose, RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import DigestOffer, EventId, Leaving, Locate, Located, Ref, RepairRequest
from omen.protocol.repair.links import UP, Links
from omen.protocol.repair.requests import Requests

HELD_AT_MOST = 64
"""Requests that wait until this node has its place. One that finds no room is made again by the node that asks."""
CONTACTS_AT_MOST = 256
NAMED_AT_MOST = 64
"""Contacts that a node that seeks its place names to others that seek theirs."""


class JoinTimer(Timer, frozen=True):
    """A node that joins should have been linked by now."""


class JoinLookup(LookupPurpose, frozen=True):
    """Where on the ring is this node's own place?"""


class JoinLeave:
    """Finds this node's place and asks for links there; answers others that look for theirs."""

    def __init__(
        self,
        context: NodeContext,
        ring: Ring,
        links: Links,
        ring_lookup: RingLookup,
        gossip: Gossip,
        requests: Requests,
    ) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._clock = context.clock
        self._out = context.out
        self._ring = ring
        self._links = links
        self._ring_lookup = ring_lookup
        self._gossip = gossip
        self._requests = requests
        self._contacts: tuple[Ref, ...] = ()
        self._persists = False
        self._looks = False
        self._in_vain = 0
        self._doubts_until: Time = 0
        self._held: dict[EventId, RepairRequest] = {}

    def handlers(self) -> Handlers:
        return {Locate: self.on_locate}

    def timers(self) -> TimerHandlers:
        return {JoinTimer: self.on_join_timer}

    @property
    def is_outside(self) -> bool:
        """Whether this node knows no other on the ring: it is the first, has lost all others, or seeks its place."""
        return not self._ring.members and not self._requests.departing

    @property
    def is_seeking(self) -> bool:
        """Whether this node looks for its place, or is about to look again: whom it has heard of so far is no ring."""
        return self._looks or (self._persists and not self._is_placed)

    @property
    def _is_placed(self) -> bool:
        asked = any(event.kind == EventKind.JOIN for event in self._requests.open)
        return asked or not self._requests.joining

    def hold(self, request: RepairRequest) -> bool:
        """Keep a request until this node has its place; whether it is kept.

        A coordinator counts on its ring: a walk that begins at a wrong successor is closed before it went round.
        """
        is_held = self.is_seeking
        if is_held and (request.event in self._held or len(self._held) < HELD_AT_MOST):
            self._held[request.event] = request
        return is_held

    def is_offered_a_ring(self, sender: NodeId, message: DigestOffer) -> bool:
        """Whether a node that is alone hears of others by gossip: then it is to join them, not they it."""
        table = self._peer_table
        own = (sender, table.id)
        others = (digest.ref for digest in message.digests if digest.ref.id not in own)
        return self.is_outside and not self._requests.joining and not all(map(table.is_declared_failed, others))

    def join(self, contacts: Sequence[Ref], persists: bool = False) -> None:
        """Look for this node's place on the ring, beginning with the contacts.

        `persists`: where none of them answers, go on trying; else this node is alone until it meets another.
        """
        self._contacts, self._persists = tuple(contacts), persists
        self._looks = any(ref.id != self._peer_table.id for ref in contacts)
        self._in_vain = 0
        self._begin_to_doubt()
        self._requests.begin_joining()
        self._out.set_timer(JoinTimer(), self._config.standby_timeout)
        self._ring_lookup.find(self._peer_table.id, JoinLookup(), self._contacts)

    def join_through(self, met: Sequence[Ref]) -> None:
        """Nodes that are there have turned up while this one knows no ring: it is looked for through them. The contacts
        so far may all be gone, or be what leads to a ring: they are asked where those who turned up have no place.
        """
        if not self.is_seeking:
            self.join(met)
            return
        turned_up = {ref.id for ref in met}
        former = tuple(ref for ref in self._contacts if ref.id not in turned_up)
        self._contacts = (*met, *former)[:CONTACTS_AT_MOST]
        if not self._ring_lookup.goes_on_with(JoinLookup(), met):
            self._looks = True
            self._begin_to_doubt()
            self._requests.begin_joining()
            self._out.set_timer(JoinTimer(), self._config.standby_timeout)
            self._ring_lookup.find_anew(self._peer_table.id, JoinLookup(), met, former)

    def _begin_to_doubt(self) -> None:
        """From when this node has begun to look, or has found nobody: a contact may stand still for so long."""
        if not self._doubts_until and self._persists:
            self._doubts_until = self._clock.now + self._config.standby_timeout

    def on_join_timer(self, _: JoinTimer) -> None:
        """All nodes met on the way in may have failed before this one was linked: then it begins anew."""
        if not self._ring.members and not self._persists:
            self._requests.end_joining()
        elif not self._ring.members or not self._is_placed:
            self.join(self._contacts, self._persists)
        elif self._requests.open:
            self._out.set_timer(JoinTimer(), self._config.standby_timeout)

    def take_place(self, met: Sequence[Ref], in_doubt: bool = False) -> list[RepairRequest]:
        """The place on the ring is found: greet the nodes around it, then ask the successor for links.

        Where no contact has answered but others have turned to this node meanwhile, the contacts are asked once more,
        then the others. In doubt, all that were met are asked again, for a standby time: a node that takes its place
        among nodes without one is on a ring of their own. A node that was alone, and has met others, takes it at once.
        Returns what was asked of this node while it looked.
        """
        if in_doubt and self._clock.now < self._doubts_until:
            self._ring_lookup.find(self._peer_table.id, JoinLookup(), met)
            return []
        if not met and self._ring.members and self._in_vain < 2:
            self._in_vain += 1
            known = self._contacts if self._in_vain == 1 else tuple(self._ring.members.values())
            self._ring_lookup.find(self._peer_table.id, JoinLookup(), known)
            return []
        self._looks, self._doubts_until = False, 0
        if self._gossip.introduce(met):
            self._requests.join()
        held, self._held = self._held, {}
        return list(held.values())

    def on_locate(self, _: NodeId, message: Locate) -> None:
        asker = message.asker.id
        after = sorted(self._gossip.peers(), key=lambda ref: clockwise(message.target, ref.id))
        near = [ref for ref in after if ref.id != asker][: 2 * self._config.resilience]
        before = [ref for ref in reversed(after) if ref.id != asker][: self._config.resilience]
        seeking = not self._is_placed
        contacts = self._contacts[:NAMED_AT_MOST] if seeking else ()
        own = (asker, self._peer_table.id)
        reply = {ref.id: ref for ref in (*contacts, *near, *before) if ref.id not in own}
        self._out.send(message.asker, Located(message.nonce, message.target, tuple(reply.values()), seeking))

    @property
    def is_leaf(self) -> bool:
        """Whether no topic is connected through this node: it has at most one neighbour in each."""
        own = self._peer_table.topics_of(self._peer_table.id)
        met: set[Topic] = set()
        for other, link in self._links.links.items():
            shared = self._peer_table.topics_of(other) & own
            if link.state is not UP or not met.isdisjoint(shared):
                return False
            met |= shared
        return not self._requests.open

    def depart(self) -> bool:
        """Ask for the repair of the gap this node will leave; whether it can leave at once, as it is alone."""
        self._requests.depart()
        return not self._ring.members

    def say_goodbye(self, handled: bool) -> None:
        """Tell the ring and all neighbours that this incarnation ends; `handled`: and that the gap is repaired."""
        told = {**self._ring.members, **{other: link.ref for other, link in self._links.links.items()}}
        for other in sorted(told):
            self._out.send(told[other], Leaving(self._peer_table.ref, handled))

"""Coming, going, and being taken for gone: a node's place among the others (omen 3.3, 5).

A loss that was announced is final for that life. A node that finds out that it was taken for gone, and that its gap is
being mended, begins another life: it says goodbye for the old one, and joins again. So a false suspicion costs the
node its links, and nothing is ever both lost and there. Where no link was given up, as between the halves of a network
that was cut for a while, a sign of life is enough to lift the tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omen.protocol.events import NodeId, Time
from omen.protocol.membership.circle import clockwise
from omen.protocol.membership.peer_table import is_newer
from omen.protocol.messages.base import INCARNATION_AT_MOST
from omen.protocol.messages.overlay import (
    Descriptor,
    Digest,
    EventId,
    FailureNotice,
    Heartbeat,
    Leaving,
    LinkClose,
    LinkOpen,
    Locate,
    Located,
    Pong,
    Ref,
    Refutation,
    RepairRequest,
)

if TYPE_CHECKING:
    from omen.protocol.node import OmenNode

GHOSTS_AT_MOST = 128


class Membership:
    """Works on all parts of its node. `remembered`: lost peers that may be there after all, and when to try them."""

    def __init__(self, node: OmenNode) -> None:
        self._node = node
        self.remembered: dict[NodeId, tuple[Ref, Time, Time]] = {}
        self._knocked: dict[NodeId, Time] = {}

    def join(self) -> None:
        node = self._node
        node.out.set_timer(("join",), node.config.standby_timeout)
        node.ring_lookup.search(node.peer_table.id, ("join",), node.contacts)

    def join_unless_taken_in(self) -> None:
        """Those met on the way in may all be gone before anybody has linked this node: then begin anew."""
        node = self._node
        if not node.ring.members:
            self.join()
        elif node.requests.open:
            node.out.set_timer(("join",), node.config.standby_timeout)

    def take_place(self, met: Iterable[Ref]) -> None:
        """The place on the circle is found: say hello to those around it, then ask the successor for links."""
        node = self._node
        for ref in met:
            node.ring.consider(ref)
            node.peer_sampling.add(ref)
        node.gossip.ring_changed = True
        if not node.ring.members:
            return
        for member in sorted(node.ring.members):
            node.gossip.offer(node.ring.members[member])
        node.requests.join()

    def on_locate(self, message: Locate) -> None:
        node = self._node
        known = [*node.ring.members.values(), *(ref for ref, _ in node.peer_sampling.view.values())]
        after = sorted({ref.id: ref for ref in known}.values(), key=lambda ref: clockwise(message.target, ref.id))
        near = [ref for ref in after if ref.id != message.asker.id][: 2 * node.config.resilience]
        before = [ref for ref in reversed(after) if ref.id != message.asker.id][: node.config.resilience]
        reply = {ref.id: ref for ref in (*near, *before)}
        node.out.send(message.asker, Located(message.nonce, message.target, tuple(reply.values())))

    def on_arrive(self, message: RepairRequest) -> None:
        """Only the nearest successor handles it; who knows a nearer one passes it on."""
        node = self._node
        node.gossip.learn((message.descriptor,))
        nearest = node.ring.nearest_successor_of(message.event.node)
        if nearest != node.peer_table.id:
            node.out.send(node.ring.members[nearest], message)
            return
        node.coordinator.on_arrive(message)

    def on_link_open(self, message: LinkOpen) -> None:
        node = self._node
        node.gossip.learn((message.descriptor,))
        if node.requests.departing and message.descriptor.digest.ref.id not in node.links.links:
            node.out.send(message.descriptor.digest.ref, LinkClose(node.ref.incarnation))
            return
        node.links.on_open(message)

    def depart(self) -> None:
        self._node.requests.depart()
        if not self._node.ring.members:
            self.say_goodbye(handled=True)

    def say_goodbye(self, handled: bool) -> None:
        node = self._node
        self.tell_everybody(handled)
        node.stopped = True
        node.withdraw()
        node.out.notify("left")

    def tell_everybody(self, handled: bool) -> None:
        node = self._node
        told = {**node.ring.members, **{other: link.ref for other, link in node.links.links.items()}}
        for other in sorted(told):
            node.out.send(told[other], Leaving(node.ref, handled))

    def on_goodbye(self, sender: NodeId, message: Leaving) -> None:
        node = self._node
        if message.handled:
            event = EventId(message.ref.id, message.ref.incarnation, "leave")
            node.coordinator.event_queue.remember(event, ())
            node.links.drop(sender)
        self.lose(message.ref.id, message.ref.incarnation, doubtful=False)

    def lose(self, other: NodeId, incarnation: int | None, doubtful: bool = True) -> None:
        """A node is gone: report it if it was a neighbour, handle or watch its event if it was a predecessor.

        `doubtful`: it has not said so itself, and may be there after all.
        """
        node = self._node
        known = node.peer_table.known.get(other)
        link = node.links.links.get(other)
        refs = self._refs(other)
        lives = [ref.incarnation for ref in refs]
        life = incarnation if incarnation is not None else max(lives, default=0)
        if link is not None and link.ref.incarnation > life:
            link = None
        if known is not None and known.digest.ref.incarnation > life:
            known = None
        was_predecessor = other in node.views.shadows and other in node.ring.get_preds()
        backups = node.views.backups_of(other) if was_predecessor else []
        topics = tuple(sorted(node.peer_table.topics_of(other) & node.peer_table.topics_of(node.peer_table.id)))
        node.peer_table.declare_failed(other, life, node.now)
        if not any(alive > life for alive in lives):
            self._forget(other)
            if refs and doubtful:
                node.out.notify("lost", Ref(other, life, ""))
                self._tell_ghost(refs[0], life)
        elif known is not None:
            self._choose_others(other)
        if link is not None:
            node.links.drop(other)
        node.coordinator.take_over(other)
        if was_predecessor and known is not None:
            node.coordinator.on_loss(known, backups)
        node.coordinator.on_node_lost(other, life)
        if link is not None:
            node.loss_reports.on_neighbour_lost(Ref(other, life, ""), topics, link.successors)
        node.requests.ask_all_again()

    def lose_ref(self, ref: Ref) -> None:
        """A life has ended, others say."""
        self.lose(ref.id, ref.incarnation)

    def end_former_life(self, former: Ref) -> None:
        """A node is back: its loss is a loss even if nobody saw it."""
        self.lose(former.id, former.incarnation, doubtful=False)

    def _forget(self, other: NodeId) -> None:
        """Nothing newer is known of a lost node: it has no place here any more."""
        node = self._node
        node.peer_sampling.drop(other)
        self._choose_others(other)
        node.forget_connection(other)
        if node.ring.drop(other):
            node.gossip.ring_changed = True

    def _choose_others(self, other: NodeId) -> None:
        """Its topics are not known any more: it is nobody's backup, until those of its next life are."""
        self._node.views.note_loss(other)
        self._node.views.select_view()

    def _tell_ghost(self, ref: Ref, life: int) -> None:
        """If it is there after all it should know; and it is tried again for a while."""
        node = self._node
        node.out.send(ref, FailureNotice(node.ref, life, final=False))
        if node.config.audit:
            while len(self.remembered) >= GHOSTS_AT_MOST:
                del self.remembered[next(iter(self.remembered))]
            patience = node.config.audit_period
            self.remembered[ref.id] = (ref, node.now + node.config.lost_memory, node.now + patience)

    def try_lost(self, at_once: int = 8) -> None:
        """Knock at a few of the lost peers whose turn it is; each time it takes longer until the next."""
        node = self._node
        now = node.now
        for other in [other for other, (_, until, _) in self.remembered.items() if until <= now]:
            del self.remembered[other]
        due = sorted(other for other, (_, _, at) in self.remembered.items() if at <= now)
        for other in due[:at_once]:
            ref, until, _ = self.remembered[other]
            node.out.send(ref, FailureNotice(node.ref, ref.incarnation, final=False))
            waited = node.config.lost_memory - (until - now)
            self.remembered[other] = (ref, until, now + max(node.config.audit_period, waited // 2))

    def meet_ghost(self, sender: NodeId) -> None:
        """Somebody speaks whose life has ended for this node, and no other is known: one of the two is wrong."""
        node = self._node
        life, _ = node.peer_table.tombstones[sender]
        ref = self.known_ref(sender)
        if ref is not None and ref.incarnation > life:
            return
        if self._knocked.get(sender, -node.config.standby_timeout) + node.config.standby_timeout > node.now:
            return
        if len(self._knocked) >= GHOSTS_AT_MOST:
            del self._knocked[next(iter(self._knocked))]
        self._knocked[sender] = node.now
        remembered = self.remembered.get(sender)
        address = remembered[0].address if remembered is not None else ""
        node.out.send(Ref(sender, life, address), FailureNotice(node.ref, life, final=False))

    def known_ref(self, other: NodeId) -> Ref | None:
        """The latest life of a node that is known here."""
        return max(self._refs(other), key=lambda ref: ref.incarnation, default=None)

    def _refs(self, other: NodeId) -> list[Ref]:
        """A node as ring, links and book know it."""
        node = self._node
        link, known, member = (
            node.links.links.get(other),
            node.peer_table.known.get(other),
            node.ring.members.get(other),
        )
        refs = [member] if member is not None else []
        if link is not None:
            refs.append(link.ref)
        if known is not None:
            refs.append(known.digest.ref)
        return refs

    def on_knock(self, sender: NodeId, message: FailureNotice) -> None:
        """Somebody takes this node for gone. If that has cost it a link, begin another life; else say otherwise."""
        node = self._node
        link = node.links.links.get(sender)
        given_up = link is not None and link.ref.incarnation == message.me.incarnation
        if message.life == node.ref.incarnation and (message.final or given_up):
            self.renew(message.life)
            return
        node.out.send(message.me, Refutation(node.ref))
        self._take_back(message.me)

    def on_alive(self, message: Refutation) -> None:
        self._take_back(message.me)

    def _take_back(self, ref: Ref) -> None:
        """A sign of life from its own mouth: lift the tombstone, take it in again."""
        node = self._node
        self._hear_of_life(ref.id, ref.incarnation)
        if node.peer_table.is_declared_failed(ref):
            self._exhume(ref)
            if len(node.peer_sampling.view) >= node.config.sample_size:
                node.peer_sampling.drop(
                    max(node.peer_sampling.view, key=lambda other: (node.peer_sampling.view[other][1], other))
                )
            node.gossip.offer(ref)
        self.remembered.pop(ref.id, None)
        node.peer_sampling.add(ref)
        node.gossip.meet(ref)

    def _exhume(self, ref: Ref) -> None:
        """What was handled for that life is void: when it ends it is to be mended anew."""
        node = self._node
        del node.peer_table.tombstones[ref.id]
        node.coordinator.event_queue.handled.pop(EventId(ref.id, ref.incarnation, "leave"), None)

    def expire(self, now: Time) -> None:
        """Tombstones that have had their time go, and with them what is remembered of the loss."""
        node = self._node
        for other, (life, until) in list(node.peer_table.tombstones.items()):
            if until <= now:
                self._exhume(Ref(other, life, ""))

    def on_beat(self, sender: NodeId, message: Heartbeat) -> None:
        """A beat of another life than the one that is known is news of the loss of that one."""
        self._node.detector.on_beat(sender, self._node.now)
        self._hear_of_life(sender, message.incarnation)

    def on_pong(self, message: Pong) -> None:
        if self._node.detector.on_pong(message, self._node.now):
            self._hear_of_life(message.me.id, message.me.incarnation)

    def _hear_of_life(self, other: NodeId, incarnation: int) -> None:
        known = self.known_ref(other)
        if known is not None and known.incarnation < incarnation:
            self.end_former_life(known)

    def hear_of_oneself(self, digest: Digest) -> None:
        """Others know a later life of this node, or later topics, than there is: go beyond, so that they listen."""
        peer_table = self._node.peer_table
        mine = peer_table.me.digest
        if digest.ref.incarnation > mine.ref.incarnation:
            self.renew(digest.ref.incarnation)
        elif digest.ref.incarnation == mine.ref.incarnation and is_newer(digest, mine):
            topics = max(digest.topics_version + 1, mine.topics_version)
            fresh = Digest(mine.ref, topics, max(digest.links_version, mine.links_version) + 1)
            peer_table.describe(Descriptor(fresh, peer_table.me.topics, peer_table.me.neighbours))

    def renew(self, beyond: int) -> None:
        """Begin another life: goodbye for this one, then join as a newcomer would. One that was leaving is gone."""
        node = self._node
        if node.requests.departing:
            self.say_goodbye(handled=False)
        elif beyond < INCARNATION_AT_MOST:
            node.next_life = max(beyond, node.ref.incarnation) + 1

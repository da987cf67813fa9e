"""A peer fails, leaves or is back: what every part of a node does about it (omen 3.3, 4).

The failure detector, a refused connection, a peer's own farewell, a later incarnation of it, another node's word: each
may be the first news of a loss. All of them end in `lose`, which tells the parts in one order. A loss is undone by
`take_back`, where the peer says itself that it is there, and forgotten when its tombstone has had its time.

Messages: Pong, and Leaving by way of the node. Timers: ProbeTimer.
"""

from __future__ import annotations

from collections.abc import Iterable

from omen.protocol import events
from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Offence, TimerHandlers
from omen.protocol.membership.conduct import Conduct
from omen.protocol.membership.failure_detector import ProbeTimer
from omen.protocol.membership.refusals import Refusals
from omen.protocol.messages.base import INCARNATION_AT_MOST, EventId, EventKind, Ref
from omen.protocol.messages.overlay import Leaving, Pong
from omen.protocol.parts import Parts


class PeerLosses:
    """`refusals` and `conduct` outlast the node's own incarnations, as everything else here does not."""

    def __init__(self, context: NodeContext, parts: Parts, refusals: Refusals, conduct: Conduct) -> None:
        self._config = context.config
        self._out = context.out
        self._clock = context.clock
        self._parts = parts
        self._refusals = refusals
        self._conduct = conduct

    def handlers(self) -> Handlers:
        return {Pong: self.on_pong}

    def timers(self) -> TimerHandlers:
        return {ProbeTimer: self.on_probe_timer}

    # First news of a loss

    def on_connection_lost(self, peer: NodeId, incarnation: int | None) -> None:
        """A lost connection is a reason to probe, no more, where there is a failure detector."""
        detector = self._parts.failure_detector
        if not (self._config.detector and detector.suspect(peer, self._clock.now)):
            self.lose(peer, incarnation)

    def on_probe_timer(self, timer: ProbeTimer) -> None:
        self._parts.failure_detector.on_probe_timer(timer)
        for ref in self._parts.failure_detector.take_failed():
            self.lose(ref.id, ref.incarnation)

    def on_refused(self, peer: NodeId, later: int | None) -> None:
        """Nobody listens any more where a peer did, or a later incarnation of it does."""
        if later is not None:
            self.hear_of_incarnation(peer, later)
            return
        ref = self._parts.failure_detector.watched(peer) if self._config.detector else None
        if not self._config.detector:
            self.lose(peer, None, refused=True)
        elif ref is not None and self._refusals.note(peer, self._clock.now):
            self.lose(peer, ref.incarnation, refused=True)

    def on_pong(self, _: NodeId, message: Pong) -> None:
        if self._parts.failure_detector.on_pong(message, self._clock.now):
            self.hear_of_incarnation(message.me.id, message.me.incarnation)

    def hear_of_incarnation(self, other: NodeId, incarnation: int) -> None:
        """A later incarnation than the one known is news of the loss of that one."""
        known = self._parts.incarnations.latest(other)
        if known is not None and known.incarnation < incarnation:
            self.lose(known.id, known.incarnation, doubtful=False)

    def on_leaving(self, sender: NodeId, message: Leaving) -> None:
        if message.handled:
            event = EventId(message.ref.id, message.ref.incarnation, EventKind.LEAVE)
            self._parts.coordinator.note_handled(event)
            self._parts.links.drop(sender)
        if not self._parts.peer_table.is_declared_failed(message.ref):
            self._out.notify(events.PeerLeft(message.ref, message.handled))
        self.lose(message.ref.id, message.ref.incarnation, doubtful=False)

    def hold_to_account(self, peer: NodeId, offence: Offence) -> None:
        """A peer has broken a rule. One that does so again and again is dropped for a while: lost for all that this
        node knows, whichever incarnation comes next.
        """
        now = self._clock.now
        if peer != self._parts.peer_table.id and self._conduct.note(peer, offence, now):
            lasts = self._conduct.ban(peer, now)
            self._out.notify(events.PeerBanned(peer, offence, lasts))
            self.lose(peer, None, doubtful=False)
            self._parts.peer_table.declare_failed(peer, INCARNATION_AT_MOST, now, lasts)
            self._parts.lost_peers.forget(peer)

    def on_told(self, lost: Iterable[Ref], by: NodeId) -> None:
        """Another node names losses that this one may not have heard of yet."""
        for ref in lost:
            if not self._parts.peer_table.is_declared_failed(ref):
                self.lose(ref.id, ref.incarnation, told_by=by)

    # The loss itself

    def lose(
        self,
        other: NodeId,
        incarnation: int | None,
        doubtful: bool = True,
        told_by: NodeId | None = None,
        refused: bool = False,
    ) -> None:
        """A node has failed or left: report it if it was a neighbour, handle or watch its event if a predecessor.

        `doubtful`: it has not said so itself, and may be there after all. `told_by`: the node that says so, unless it
        is this one. `refused`: nobody listens there any more.
        """
        table, links = self._parts.peer_table, self._parts.links
        known, link = table.known.get(other), links.links.get(other)
        refs = self._parts.incarnations.known(other)
        incarnations = [ref.incarnation for ref in refs]
        ended = incarnation if incarnation is not None else max(incarnations, default=0)
        if link is not None and link.ref.incarnation > ended:
            link = None
        if known is not None and known.digest.ref.incarnation > ended:
            known = None
        was_predecessor = other in self._parts.views.shadows and other in self._parts.ring.get_preds()
        backups = self._parts.views.backups_of(other) if was_predecessor else []
        topics = tuple(sorted(table.topics_of(other) & table.topics_of(table.id)))
        table.declare_failed(other, ended, self._clock.now)
        if not any(later > ended for later in incarnations):
            self._forget(other)
            if refs and doubtful:
                by = table.id if told_by is None else told_by
                self._out.notify(events.PeerDeclaredFailed(Ref(other, ended, ""), by, refused))
                self._parts.lost_peers.add(refs[0], ended)
        elif known is not None:
            self._parts.views.note_loss(other)
            self._parts.views.select_view()
        if link is not None:
            links.drop(other)
        self._parts.coordinator.take_over(other)
        if was_predecessor and known is not None:
            self._parts.coordinator.on_loss(known, backups)
        self._parts.coordinator.on_node_lost(other, ended)
        if link is not None:
            self._parts.loss_reports.on_neighbour_lost(Ref(other, ended, ""), topics, link.successors)
        self._parts.requests.ask_all_again()

    def _forget(self, other: NodeId) -> None:
        """Nothing newer is known of a lost node: it is no peer, and no backup until the topics of its next
        incarnation are known.
        """
        self._parts.peer_sampling.drop(other)
        self._parts.views.note_loss(other)
        self._parts.views.select_view()
        self._parts.connections.forget(other)
        self._parts.ring.drop(other)

    # The loss undone, or forgotten

    def on_heard(self, peer: NodeId) -> None:
        """A peer has sent a message: it is alive."""
        if self._config.detector:
            self._parts.failure_detector.hear(peer, self._clock.now)
            if self._refusals.waiting:
                self._refusals.clear(peer)

    def take_back(self, ref: Ref) -> None:
        """A peer says itself that it is there: lift the tombstone."""
        self.hear_of_incarnation(ref.id, ref.incarnation)
        if self._parts.peer_table.is_declared_failed(ref):
            self._lift_tombstone(ref)
        self._parts.lost_peers.forget(ref.id)

    def _lift_tombstone(self, ref: Ref) -> None:
        """What was handled for that incarnation is void: when it ends it is to be repaired anew."""
        del self._parts.peer_table.tombstones[ref.id]
        self._parts.coordinator.forget_handled(EventId(ref.id, ref.incarnation, EventKind.LEAVE))

    def expire_tombstones(self) -> None:
        """Tombstones that have had their time go, and with them what is remembered of the loss."""
        for other, (incarnation, until) in list(self._parts.peer_table.tombstones.items()):
            if until <= self._clock.now:
                self._lift_tombstone(Ref(other, incarnation, ""))

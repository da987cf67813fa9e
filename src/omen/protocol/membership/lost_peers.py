"""Peers that were declared failed and may be there after all.

A declaration of failure is final for that incarnation. A node that finds out that it was declared failed, and that
this has cost it a link, rejoins under a higher incarnation: it says goodbye for the old one and joins again. So a false
suspicion costs the node its links, and nothing is ever both lost and there. Where no link was given up, as between the
halves of a network that was cut for a while, a refutation is enough to lift the tombstone.

Lost peers are tried for ever, a few at a time, with growing, jittered pauses: a cut may last for days. One answer is
enough for two rings to become one, so the more nodes a ring has the less often each of them tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Time, Timer, TimerHandlers
from omen.protocol.membership.connections import Incarnations
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Digest, DigestOffer, FailureNotice, Leaving, Ref, RepairRequest

LOST_PEERS_AT_MOST = 128
NOTICES_AT_ONCE = 2
GROWING = 2  # doublings until the pause is the longest: notices are repeated by themselves at first
NODES_IN_TURN = 32  # a ring with more nodes than this tries no more often than one of this many
REPEATS = 3  # of what is not confirmed: a node that has not heard it keeps a link that the other end gave up


class RetryTimer(Timer, frozen=True):
    """A few of the lost peers are to be tried again."""


class NoticeTimer(Timer, frozen=True):
    """A peer that was declared failed is told again, unless something newer is known of it."""

    peer: Ref
    times: int


class FarewellTimer(Timer, frozen=True):
    """Former neighbours are told again that this node's last incarnation has ended."""

    incarnation: int
    times: int


class LostPeer(msgspec.Struct, frozen=True):
    """A peer, and how many times it was tried."""

    ref: Ref
    tries: int = 0


class LostPeers:
    """`remembered`: the lost peers that are still tried. They outlast this node's own incarnations."""

    def __init__(
        self, context: NodeContext, incarnations: Incarnations, ring: Ring, remembered: Mapping[NodeId, LostPeer]
    ) -> None:
        self._incarnations = incarnations
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._clock = context.clock
        self._random = context.random
        self._ring = ring
        self._doublings = 0
        self._armed = False
        self.remembered = dict(remembered)
        self._told: dict[NodeId, Time] = {}
        self._farewell: tuple[Leaving, tuple[Ref, ...]] | None = None

    def timers(self) -> TimerHandlers:
        return {
            RetryTimer: self.on_retry_timer,
            NoticeTimer: self.on_notice_timer,
            FarewellTimer: self.on_farewell_timer,
        }

    def start(self) -> None:
        """Go on with those that the incarnation before this one had lost."""
        if self.remembered:
            self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            nodes = self._ring.estimate_nodes()
            longest = self._config.lost_retry * max(nodes, NODES_IN_TURN) // NODES_IN_TURN
            pause = longest >> (GROWING - self._doublings)
            self._out.set_timer(RetryTimer(), pause // 2 + self._random.randrange(pause // 2 + 1))

    def add(self, ref: Ref, incarnation: int) -> None:
        """A peer was declared failed: if it is there after all it should know, and it is tried again."""
        self._out.send(ref, FailureNotice(self._peer_table.ref, incarnation, final=False))
        self._repeat(NoticeTimer(Ref(ref.id, incarnation, ref.address), 1))
        if self._config.audit:
            while len(self.remembered) >= LOST_PEERS_AT_MOST:
                del self.remembered[next(iter(self.remembered))]
            self.remembered[ref.id] = LostPeer(ref)
            self._doublings = 0
            self._arm()

    def _repeat(self, timer: NoticeTimer | FarewellTimer) -> None:
        """Say it again a few times, with growing pauses."""
        if timer.times <= REPEATS:
            pause = self._config.answer_timeout * self._config.attempts << timer.times - 1
            self._out.set_timer(timer, pause)

    def on_notice_timer(self, timer: NoticeTimer) -> None:
        """No answer yet: the notice may have been lost. Of no effect once something newer is known."""
        peer = timer.peer
        if self._incarnations.latest(peer.id) is not None or not self._peer_table.is_declared_failed(peer):
            return
        self._out.send(peer, FailureNotice(self._peer_table.ref, peer.incarnation, final=False))
        self._repeat(NoticeTimer(peer, timer.times + 1))

    def on_farewell_timer(self, timer: FarewellTimer) -> None:
        if self._farewell is None:
            return
        farewell, former = self._farewell
        for ref in former:
            self._out.send(ref, farewell)
        self._repeat(FarewellTimer(timer.incarnation, timer.times + 1))

    def repeat_farewell(self, farewell: Leaving, former: Iterable[Ref]) -> None:
        """To the nodes that were linked to the incarnation before this one."""
        self._farewell = (farewell, tuple(former))
        self._repeat(FarewellTimer(farewell.ref.incarnation, 1))

    def on_retry_timer(self, _: RetryTimer) -> None:
        """Send a notice to those that were tried least; each time it takes longer until the next."""
        self._armed = False
        for other in sorted(self.remembered, key=lambda other: (self.remembered[other].tries, other))[:NOTICES_AT_ONCE]:
            lost = self.remembered[other]
            self._out.send(lost.ref, FailureNotice(self._peer_table.ref, lost.ref.incarnation, final=False))
            self.remembered[other] = LostPeer(lost.ref, lost.tries + 1)
        if self.remembered:
            self._doublings = min(self._doublings + 1, GROWING)
            self._arm()

    def on_message_from(self, sender: NodeId, known: Ref | None) -> None:
        """A peer speaks that was declared failed, and no later incarnation is known: one of the two is wrong."""
        incarnation, _ = self._peer_table.tombstones[sender]
        if known is not None and known.incarnation > incarnation:
            return
        if not self._may_tell(sender):
            return
        lost = self.remembered.get(sender)
        address = lost.ref.address if lost is not None else ""
        self._out.send(Ref(sender, incarnation, address), FailureNotice(self._peer_table.ref, incarnation, final=False))

    def on_stale_request(self, request: RepairRequest) -> None:
        """A node asks to be repaired that is known here by a later incarnation than it has.

        Its request may have been under way while it rejoined; then it is told nothing new. Or a peer told a lie here:
        no request of it would ever be taken, so it has to go beyond that incarnation.
        """
        event = request.event
        known = self._incarnations.latest(event.node)
        if known is not None and known.incarnation > event.incarnation and self._may_tell(event.node):
            theirs = Digest(known, 0, 0)
            self._out.send(known, DigestOffer((self._peer_table.me.digest, theirs), (), reply=True))

    def _may_tell(self, node: NodeId) -> bool:
        """Whether it was not told just now; from here on it was."""
        pause, now = self._config.standby_timeout, self._clock.now
        if self._told.get(node, -pause) + pause > now:
            return False
        if len(self._told) >= LOST_PEERS_AT_MOST:
            del self._told[next(iter(self._told))]
        self._told[node] = now
        return True

    def forget(self, node: NodeId) -> None:
        self.remembered.pop(node, None)

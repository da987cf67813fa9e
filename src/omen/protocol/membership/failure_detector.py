"""Who is there? Heartbeats, questions through others, and a time of suspicion before a node counts as gone.

After SWIM (Das, Gupta, Motivala 2002) and Lifeguard (Dadgar, Phillips, Currey 2018). Every node sends a beat a period
to those it is linked to or stands near on the circle, and they to it: nobody has to ask while all is well. One that is
silent for longer than it usually is, is asked directly, then through others, then suspected; several who suspect it
need less time. Whatever is heard of it meanwhile ends the suspicion. One that was declared gone and is not, is told so
(`FailureNotice`) and begins another life.

Adaptive in two ways. To a slow peer: how long silence may last follows the gaps between its signs of life. To its own
slowness: a node whose own timer came late, or whose suspicions turn out to be false, gives everybody more time.

Guarantee: a node that is gone is declared gone by everybody that watches it, after at most
`longest_silence() + longest_suspicion()`. Cost while all is well: one beat a peer and a period, each way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Randomness, Time
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Heartbeat, IndirectPing, Ping, Pong, Ref

HEALTH_AT_MOST = 6
SILENT_PERIODS = 2
SILENT_PERIODS_AT_MOST = 8
RELAYED_AT_MOST = 64
QUIET, ASKED, SUSPECTED = "quiet", "asked", "suspected"


@dataclass(slots=True)
class Peer:
    """A node that is watched. `gap` and `deviation`: of its signs of life, smoothed as TCP smooths round trips."""

    ref: Ref
    heard: Time
    gap: Time
    deviation: Time
    beat: Time = 0
    state: str = QUIET
    since: Time = 0
    nonce: int = 0
    doubters: set[NodeId] = field(default_factory=set)


class FailureDetector:
    """`gone`: whom this node has just declared gone; the node takes them from there."""

    def __init__(self, peer_table: PeerTable, config: Config, randomness: Randomness, out: Outbox) -> None:
        self._peer_table = peer_table
        self._config = config
        self._random = randomness
        self._out = out
        self.peers: dict[NodeId, Peer] = {}
        self.gone: list[Ref] = []
        self.health = 0
        self.suspicions = 0
        self.refuted = 0
        self._nonce = 0
        self._relayed: dict[int, tuple[Ref, int]] = {}
        self._ticked: Time | None = None

    def start(self) -> None:
        """Begin at a random time of the period, so that beats are spread."""
        self._out.set_timer(("detect", "beat"), self._random.randrange(self._config.heartbeat_period))

    def watch(self, refs: Mapping[NodeId, Ref], now: Time) -> None:
        """These, and nobody else. A newly watched node, or another life of one, is given time to be heard."""
        for node in [node for node in self.peers if node not in refs]:
            del self.peers[node]
        for node, ref in refs.items():
            peer = self.peers.get(node)
            if peer is None or peer.ref.incarnation != ref.incarnation:
                self.peers[node] = Peer(ref, now, self._config.heartbeat_period, 0)

    def hear(self, node: NodeId, now: Time) -> None:
        """Any message is a sign of life."""
        peer = self.peers.get(node)
        if peer is None:
            return
        peer.heard = now
        if peer.state != QUIET:
            if peer.state == SUSPECTED:
                self.refuted += 1
                self.health = min(self.health + 1, HEALTH_AT_MOST)
            peer.state = QUIET
            peer.doubters.clear()

    def on_beat(self, node: NodeId, now: Time) -> None:
        """Learn how regular a peer is."""
        peer = self.peers.get(node)
        if peer is None:
            return
        if peer.beat:
            gap = min(now - peer.beat, SILENT_PERIODS_AT_MOST * self._config.heartbeat_period)
            peer.deviation += (abs(gap - peer.gap) - peer.deviation) // 4
            peer.gap += (gap - peer.gap) // 8
        peer.beat = now

    def suspect(self, node: NodeId, now: Time) -> bool:
        """Somebody says that this peer is gone: ask it now; whether it is watched here."""
        peer = self.peers.get(node)
        if peer is None:
            return False
        if peer.state == QUIET:
            self._ask(peer, now)
        return True

    def on_timer(self, key: tuple[object, ...], now: Time) -> None:
        """`key`: ("detect", "beat") or ("detect", node, nonce)."""
        if key[1] == "beat":
            self._beat(now)
            return
        node, nonce = key[1:]
        peer = self.peers.get(node) if isinstance(node, int) else None
        if peer is not None and peer.nonce == nonce and peer.state != QUIET:
            self._doubt(peer, now)

    def _beat(self, now: Time) -> None:
        period = self._config.heartbeat_period
        self._out.set_timer(("detect", "beat"), period)
        late = self._ticked is not None and now - self._ticked > 2 * period
        self._ticked = now
        if late:
            self._excuse_everybody(now)
        elif self.health and not any(peer.state == SUSPECTED for peer in self.peers.values()):
            self.health -= 1
        beat = Heartbeat(self._peer_table.ref.incarnation)
        for node in sorted(self.peers):
            peer = self.peers[node]
            self._out.send(peer.ref, beat)
            if peer.state == QUIET and now - peer.heard > self._allowed_silence(peer):
                self._ask(peer, now)

    def _excuse_everybody(self, now: Time) -> None:
        """This node itself stood still: that it heard nobody says nothing of them."""
        self.health = min(self.health + 1, HEALTH_AT_MOST)
        for peer in self.peers.values():
            peer.heard, peer.state = now, QUIET
            peer.doubters.clear()

    def _allowed_silence(self, peer: Peer) -> Time:
        period = self._config.heartbeat_period
        usual = max(SILENT_PERIODS * period, peer.gap + 4 * peer.deviation)
        return min(usual, SILENT_PERIODS_AT_MOST * period)

    def longest_silence(self) -> Time:
        """What passes at most before somebody who is gone is asked after, from the last sign of life on."""
        return (SILENT_PERIODS_AT_MOST + 1) * self._config.heartbeat_period

    def longest_suspicion(self) -> Time:
        """What passes at most from then on."""
        patience = self._config.answer_timeout * 2
        return patience + self._suspicion_time(0, HEALTH_AT_MOST) + self._config.heartbeat_period

    def _suspicion_time(self, doubters: int, health: int) -> Time:
        """Lifeguard's: from longest to shortest with the logarithm of how many others suspect it too."""
        shortest = self._config.suspicion_time * (2 + health) // 2
        longest = 2 * shortest
        share = math.log(doubters + 1) / math.log(self._config.indirect_probes + 2)
        return max(shortest, longest - int((longest - shortest) * share))

    def _ask(self, peer: Peer, now: Time) -> None:
        peer.state, peer.since = ASKED, now
        self._ping(peer)
        self._out.set_timer(("detect", peer.ref.id, peer.nonce), 2 * self._config.answer_timeout)

    def _ping(self, peer: Peer) -> None:
        self._nonce += 1
        peer.nonce = self._nonce
        self._out.send(peer.ref, Ping(peer.nonce, self._peer_table.ref))

    def _doubt(self, peer: Peer, now: Time) -> None:
        """It has not answered: suspect it, ask again and through others, until its time is over."""
        if peer.state == ASKED:
            peer.state, peer.since = SUSPECTED, now
            self.suspicions += 1
        elif now - peer.since >= self._suspicion_time(len(peer.doubters), self.health):
            del self.peers[peer.ref.id]
            self.gone.append(peer.ref)
            return
        self._ping(peer)
        for helper in self._helpers(peer):
            self._out.send(helper, IndirectPing(peer.nonce, self._peer_table.ref, peer.ref))
        self._out.set_timer(("detect", peer.ref.id, peer.nonce), self._config.heartbeat_period // 2)

    def _helpers(self, peer: Peer) -> list[Ref]:
        """A few of those who watch it too, as far as known here, else of those this node watches."""
        descriptor = self._peer_table.known.get(peer.ref.id)
        near = {ref.id: ref for ref in descriptor.neighbours} if descriptor is not None else {}
        near.pop(self._peer_table.id, None)
        wanted = self._config.indirect_probes
        if len(near) < wanted:
            near.update({node: other.ref for node, other in self.peers.items() if other is not peer})
        nodes = sorted(node for node in near if not self._peer_table.is_declared_failed(near[node]))
        chosen = self._random.sample(nodes, wanted) if len(nodes) > wanted else nodes
        return [near[node] for node in chosen]

    def on_ping(self, message: Ping) -> None:
        self._out.send(message.asker, Pong(message.nonce, self._peer_table.ref))

    def on_ping_for(self, message: IndirectPing) -> None:
        """Ask for somebody else. If this node suspects the same, they confirm each other."""
        peer = self.peers.get(message.target.id)
        if peer is not None and peer.state != QUIET:
            peer.doubters.add(message.asker.id)
        self._nonce += 1
        if len(self._relayed) >= RELAYED_AT_MOST:
            del self._relayed[next(iter(self._relayed))]
        self._relayed[self._nonce] = (message.asker, message.nonce)
        self._out.send(message.target, Ping(self._nonce, self._peer_table.ref))

    def on_pong(self, message: Pong, now: Time) -> bool:
        """An answer, to this node or to one it asked for; whether anybody had asked."""
        relayed = self._relayed.pop(message.nonce, None)
        if relayed is not None:
            asker, nonce = relayed
            self._out.send(asker, Pong(nonce, message.me))
            return True
        peer = self.peers.get(message.me.id)
        if peer is None or peer.nonce != message.nonce:
            return False
        if message.me.incarnation == peer.ref.incarnation:
            self.hear(message.me.id, now)
        return True

    def take_gone(self) -> Iterable[Ref]:
        gone, self.gone = self.gone, []
        return gone

"""The failure detector: heartbeats, direct and indirect probes, and a suspicion before a peer is declared failed.

After SWIM (Das, Gupta, Motivala 2002) and Lifeguard (Dadgar, Phillips, Currey 2018). Every node sends one heartbeat
per period to its neighbours and its peers on the ring, and they to it: no probe is needed while all is well. One that
is silent for longer than it usually is, is asked directly, then through others, then suspected; several who suspect it
need less time. Whatever is heard of it meanwhile ends the suspicion. One that was declared failed and has not, is told
so (`FailureNotice`) and rejoins.

Adaptive in two ways. To a slow peer: how long silence may last follows the gaps between its messages. To its own
slowness: a node whose own timer came late, or whose suspicions turn out to be false, gives every peer more time.

Guarantee: a node that has failed is declared failed by every peer that watches it, after at most
`longest_silence() + longest_suspicion()`. Cost while all is well: one heartbeat per peer and period, each way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import (
    Handlers,
    NodeId,
    PeerSuspected,
    StoodStill,
    SuspicionRefuted,
    Time,
    Timer,
    TimerHandlers,
)
from omen.protocol.messages.overlay import Heartbeat, IndirectPing, Ping, Pong, Ref

HEALTH_AT_MOST = 6
SILENT_PERIODS = 2
SILENT_PERIODS_AT_MOST = 8
ROUND_TRIPS_KEPT = 4
RELAYED_AT_MOST = 64


class PeerState(Enum):
    """How this node sees a peer that it watches."""

    ALIVE = "alive"
    PROBED = "probed"
    SUSPECTED = "suspected"


ALIVE, PROBED, SUSPECTED = PeerState


class HeartbeatTimer(Timer, frozen=True):
    """A heartbeat is due to every peer that is watched."""


class ProbeTimer(Timer, frozen=True):
    """A peer has had its time to answer a probe."""

    node: NodeId
    nonce: int


class Peer(msgspec.Struct):
    """A node that is watched. `gap` and `deviation`: between its messages, smoothed as TCP smooths round trips.

    `round_trips`: of the last heartbeats and their echoes; `round_trip`: the longest of these, 0 until one was
    measured. `echo`: what its last heartbeat said was the time by its clock.
    """

    ref: Ref
    heard: Time
    gap: Time
    deviation: Time
    heartbeat: Time = 0
    echo: int = 0
    round_trip: Time = 0
    round_trips: tuple[Time, ...] = ()
    state: PeerState = ALIVE
    since: Time = 0
    nonce: int = 0
    suspecters: set[NodeId] = msgspec.field(default_factory=set)


class FailureDetector:
    """`failed`: the peers just declared failed; the node takes them from there."""

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._random = context.random
        self._out = context.out
        self._clock = context.clock
        self.peers: dict[NodeId, Peer] = {}
        self.failed: list[Ref] = []
        self.health = 0
        self.suspicions = 0
        self.refuted = 0
        self._nonce = 0
        self._relayed: dict[int, tuple[Ref, int]] = {}
        self._ticked: Time | None = None
        self._still_until: Time | None = None

    def handlers(self) -> Handlers:
        return {Ping: self.on_ping, IndirectPing: self.on_indirect_ping}

    def timers(self) -> TimerHandlers:
        return {HeartbeatTimer: self.on_heartbeat_timer}

    def suspected(self) -> list[NodeId]:
        """The peers that this node suspects now."""
        return [node for node, peer in self.peers.items() if peer.state is SUSPECTED]

    def watched(self, node: NodeId) -> Ref | None:
        """The incarnation of a peer that is watched."""
        peer = self.peers.get(node)
        return None if peer is None else peer.ref

    def longest_round_trip(self, nodes: Iterable[NodeId]) -> Time:
        """How long an answer of these takes at most, as a rule; 0: none of them was measured."""
        longest, peers = 0, self.peers
        for node in nodes:  # a loop, for it is asked with each heartbeat
            peer = peers.get(node)
            if peer is not None and peer.round_trip > longest:
                longest = peer.round_trip
        return longest

    def start(self) -> None:
        """Begin at a random time of the period, so that heartbeats are spread."""
        self._ticked = self._clock.now
        self._out.set_timer(HeartbeatTimer(), self._random.randrange(self._config.heartbeat_period))

    def watch(self, refs: Mapping[NodeId, Ref], now: Time) -> None:
        """Watch these peers alone. A newly watched one, or another incarnation of one, is given time to be heard."""
        for node in [node for node in self.peers if node not in refs]:
            del self.peers[node]
        for node, ref in refs.items():
            peer = self.peers.get(node)
            if peer is None or peer.ref.incarnation != ref.incarnation:
                self.peers[node] = Peer(ref, now, self._config.heartbeat_period, 0)

    def hear(self, node: NodeId, now: Time) -> None:
        """Any message refutes a suspicion."""
        peer = self.peers.get(node)
        if peer is None:
            return
        peer.heard = now
        if peer.state is not ALIVE:
            if peer.state is SUSPECTED:
                self.refuted += 1
                self._out.notify(SuspicionRefuted(peer.ref, now - peer.since))
                self.health = min(self.health + 1, HEALTH_AT_MOST)
            peer.state = ALIVE
            peer.suspecters.clear()

    def on_heartbeat(self, node: NodeId, message: Heartbeat, now: Time) -> bool:
        """Learn how regular a peer is, and how far away; whether this incarnation of it is watched, and so no news."""
        peer = self.peers.get(node)
        if peer is None:
            return False
        peer.echo = message.sent
        if 0 < message.echo <= now - message.held:
            _note_round_trip(peer, now - message.held - message.echo)
        if peer.heartbeat:
            gap = min(now - peer.heartbeat, SILENT_PERIODS_AT_MOST * self._config.heartbeat_period)
            peer.deviation += (abs(gap - peer.gap) - peer.deviation) // 4
            peer.gap += (gap - peer.gap) // 8
        peer.heartbeat = now
        return peer.ref.incarnation == message.incarnation

    def suspect(self, node: NodeId, now: Time) -> bool:
        """This peer is said to have failed: probe it now; whether it is watched here."""
        peer = self.peers.get(node)
        if peer is None:
            return False
        if peer.state is ALIVE:
            self._ask(peer, now)
        return True

    def on_probe_timer(self, timer: ProbeTimer) -> None:
        peer = self.peers.get(timer.node)
        if peer is not None and peer.nonce == timer.nonce and peer.state is not ALIVE:
            self._suspect(peer, self._clock.now)

    def on_heartbeat_timer(self, _: HeartbeatTimer) -> None:
        now = self._clock.now
        period = self._config.heartbeat_period
        self._out.set_timer(HeartbeatTimer(), period)
        late = self.check_own_pace()
        self._ticked = now
        if late:
            self._excuse_all(now)
        elif self.health and not any(peer.state is SUSPECTED for peer in self.peers.values()):
            self.health -= 1
        send, incarnation = self._out.send, self._peer_table.ref.incarnation
        long_ago = now - SILENT_PERIODS * period  # less silence is always allowed
        for node in sorted(self.peers):
            peer = self.peers[node]
            held = now - peer.heartbeat if peer.echo else 0
            send(peer.ref, Heartbeat(incarnation, now, peer.echo, held))
            if peer.heard < long_ago and peer.state is ALIVE and now - peer.heard > self._allowed_silence(peer):
                self._ask(peer, now)

    def check_own_pace(self) -> bool:
        """Whether this node itself has stood still since its last heartbeat; then it says so."""
        passed = self._clock.now - self._ticked if self._ticked is not None else 0
        if passed > 2 * self._config.heartbeat_period:
            self._out.notify(StoodStill(passed - self._config.heartbeat_period))
            self._still_until = self._clock.now
            return True
        return False

    def has_stood_still(self) -> bool:
        """Whether this node itself stood still lately, so that it may have been lost to others without noticing it."""
        now = self._clock.now
        if self._ticked is not None and now - self._ticked > 2 * self._config.heartbeat_period:
            return True
        return self._still_until is not None and (
            now - self._still_until <= self.longest_silence() + self.longest_suspicion()
        )

    def _excuse_all(self, now: Time) -> None:
        """This node itself stood still: that it heard nothing says nothing of its peers."""
        self.health = min(self.health + 1, HEALTH_AT_MOST)
        for peer in self.peers.values():
            peer.heard, peer.state = now, ALIVE
            peer.suspecters.clear()

    def _allowed_silence(self, peer: Peer) -> Time:
        period = self._config.heartbeat_period
        usual = max(SILENT_PERIODS * period, peer.gap + 4 * peer.deviation)
        return min(usual, SILENT_PERIODS_AT_MOST * period)

    def longest_silence(self) -> Time:
        """How long a failed peer may be silent at most, from its last message on, before it is probed."""
        return (SILENT_PERIODS_AT_MOST + 1) * self._config.heartbeat_period

    def longest_suspicion(self) -> Time:
        """What passes at most from then on."""
        patience = self._config.answer_timeout * 2
        return patience + self._suspicion_time(0, HEALTH_AT_MOST) + self._config.heartbeat_period

    def _suspicion_time(self, suspecters: int, health: int) -> Time:
        """Lifeguard's: from longest to shortest with the logarithm of how many others suspect it too."""
        shortest = self._config.suspicion_time * (2 + health) // 2
        longest = 2 * shortest
        share = math.log(suspecters + 1) / math.log(self._config.indirect_probes + 2)
        return max(shortest, longest - int((longest - shortest) * share))

    def _ask(self, peer: Peer, now: Time) -> None:
        peer.state, peer.since = PROBED, now
        self._ping(peer)
        self._out.set_timer(ProbeTimer(peer.ref.id, peer.nonce), 2 * self._config.answer_timeout)

    def _ping(self, peer: Peer) -> None:
        self._nonce += 1
        peer.nonce = self._nonce
        self._out.send(peer.ref, Ping(peer.nonce, self._peer_table.ref))

    def _suspect(self, peer: Peer, now: Time) -> None:
        """It has not answered: suspect it, ask again and through others, until its time is over."""
        if peer.state is PROBED:
            peer.state, peer.since = SUSPECTED, now
            self.suspicions += 1
            self._out.notify(PeerSuspected(peer.ref))
        elif now - peer.since >= self._suspicion_time(len(peer.suspecters), self.health):
            del self.peers[peer.ref.id]
            self.failed.append(peer.ref)
            return
        self._ping(peer)
        for helper in self._helpers(peer):
            self._out.send(helper, IndirectPing(peer.nonce, self._peer_table.ref, peer.ref))
        self._out.set_timer(ProbeTimer(peer.ref.id, peer.nonce), self._config.heartbeat_period // 2)

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

    def on_ping(self, _: NodeId, message: Ping) -> None:
        self._out.send(message.asker, Pong(message.nonce, self._peer_table.ref))

    def on_indirect_ping(self, _: NodeId, message: IndirectPing) -> None:
        """Probe for another node. If this node suspects the same peer, they confirm each other."""
        peer = self.peers.get(message.target.id)
        if peer is not None and peer.state is not ALIVE:
            peer.suspecters.add(message.asker.id)
        self._nonce += 1
        if len(self._relayed) >= RELAYED_AT_MOST:
            del self._relayed[next(iter(self._relayed))]
        self._relayed[self._nonce] = (message.asker, message.nonce)
        self._out.send(message.target, Ping(self._nonce, self._peer_table.ref))

    def on_pong(self, message: Pong, now: Time) -> bool:
        """An answer, to this node or to one it probed for; whether it was asked for."""
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

    def take_failed(self) -> Iterable[Ref]:
        failed, self.failed = self.failed, []
        return failed


def _note_round_trip(peer: Peer, round_trip: Time) -> None:
    """The longest of the last few counts: what was slow once, as while nodes begin together, is soon forgotten.

    Smoothed as TCP does (RFC 6298), one slow heartbeat of 100 ms counted for twenty seconds.
    """
    peer.round_trips = (max(round_trip, 1), *peer.round_trips[: ROUND_TRIPS_KEPT - 1])
    peer.round_trip = max(peer.round_trips)

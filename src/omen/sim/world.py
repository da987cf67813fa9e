"""A world of protocol cores in virtual time: latency, loss, crashes, pauses, partitions, all drawn from one seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, assert_never

from omen.protocol.events import (
    Connect,
    Core,
    Deliver,
    Disconnect,
    Fetched,
    Gap,
    Held,
    Input,
    Left,
    LinkBroken,
    Multicast,
    NodeId,
    Notification,
    Notify,
    OfRecords,
    Output,
    PeerLost,
    PeerRefused,
    PeerUnreached,
    Received,
    RecordDropped,
    RecordKept,
    Rejoined,
    Send,
    SetTimer,
    Stored,
    Time,
    Timer,
    TimerFired,
)
from omen.protocol.messages.wire import size_of
from omen.sim.latency import Latency, constant

START = "start"
NO_NODE = -1
REFUSAL_GAP = 110_000  # longer than a core demands, for its clock may run slow
UNREACHABLE, CUT, LOST = "unreachable", "cut off", "lost"
"""Why a message does not arrive: its addressee has crashed or left, the network is cut between the two, bad luck."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A node is about to be told that a peer has failed. Void if the same incarnation can be reached again by then."""

    lost: NodeId
    incarnation: int | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A node is about to try a connection again that has broken, to a process that has ended."""

    lost: NodeId
    incarnation: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that does not arrive, for the trace."""

    to: NodeId
    message: Any
    why: str


def generator_for(seed: int, *words: object) -> random.Random:
    """An own generator for each (seed, words), the same in every process."""
    text = "/".join(str(word) for word in (seed, *words))
    return random.Random(int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big"))


@dataclass(frozen=True, slots=True)
class Network:
    """How messages and bad news travel."""

    latency: Latency = field(default_factory=lambda: constant(1_000))
    loss: float = 0.0
    duplication: float = 0.0
    detection: Latency | None = field(default_factory=lambda: constant(50_000))
    """How long until the peers connected to a lost node are told; None: never, they find out by themselves."""
    refusal: Latency | None = None
    """How long until a connection to a process that has ended is tried again, and refused; None: its host is down too.

    Each peer that was connected tries twice."""
    silent_crashes: float = 0.0
    """The share of crashes that take the host along, so that nothing is refused."""
    drift: float = 0.0
    """Clocks run fast or slow by up to this share; each node's own rate is drawn."""


@dataclass(slots=True)
class Place:
    """A node in the world. `refuses`: its host is up, though it has ended. `dialled`: to be found not to listen."""

    core: Core
    incarnation: int
    alive: bool = True
    paused: bool = False
    drift: float = 1.0
    timers: dict[Timer, int] = field(default_factory=dict)
    connected: set[NodeId] = field(default_factory=set)
    held: list[Input] = field(default_factory=list)
    refuses: bool = False
    dialled: set[NodeId] = field(default_factory=set)


Heard = Notification | Deliver | Gap | Held | OfRecords
"""What a core says to the world around it."""
RarerOutput = Connect | Disconnect | Notify | Multicast | Deliver | Gap | Held | OfRecords
"""All outputs but messages to one peer, and timers."""
Listener = Callable[[NodeId, Heard, Time], None]
Tracer = Callable[[Time, NodeId, object], None]
"""Told of everything that happens to a node: an `Input`, a `Heard`, a `Dropped`, or a word such as "crashes"."""


class World:
    """Events ordered by (time, counter). Everything random comes from `seed`."""

    def __init__(self, seed: int, network: Network | None = None, tracer: Tracer | None = None) -> None:
        self.seed = seed
        self.network = network or Network()
        self.now: Time = 0
        self.places: dict[NodeId, Place] = {}
        self.listeners: list[Listener] = []
        self.processed = 0
        self.tracer = tracer
        self._random = generator_for(seed, "world")
        self._queue: list[tuple[Time, int, NodeId, int, Any]] = []
        self._counter = 0
        self._traffic: dict[type, list[int]] = {}
        self._sized: Any = None
        self._size = 0
        self._sides: dict[NodeId, int] = {}
        self._muted: set[tuple[NodeId, NodeId]] = set()

    @property
    def messages(self) -> Counter[str]:
        """How many messages of each kind were sent."""
        return Counter({kind.__name__: count for kind, (count, _) in self._traffic.items()})

    @property
    def bytes(self) -> Counter[str]:
        """How many bytes they had together."""
        return Counter({kind.__name__: size for kind, (_, size) in self._traffic.items()})

    def add(self, node: NodeId, core: Core, incarnation: int = 1) -> None:
        """Put a node in, or back in as a later incarnation, and start it now."""
        drift = self.network.drift
        rate = 1.0 + generator_for(self.seed, "drift", node).uniform(-drift, drift) if drift else 1.0
        self.places[node] = Place(core, incarnation, drift=rate)
        self._schedule(0, node, incarnation, START)

    def alive(self) -> list[NodeId]:
        return sorted(node for node, place in self.places.items() if place.alive)

    def tell(self, node: NodeId, event: Input, delay: Time = 0) -> None:
        """Hand a node an input, as a user or an operator would."""
        self._schedule(delay, node, self.places[node].incarnation, event)

    def call(self, delay: Time, action: Callable[[], None]) -> None:
        """Have something done from outside, at its time among everything else that happens."""
        self._schedule(delay, NO_NODE, 0, action)

    def crash(self, node: NodeId) -> None:
        """A node ends without a word; the peers connected to it are told after a while."""
        place = self.places[node]
        if not place.alive:
            return
        self._log(node, "crashes")
        self._end(node, place)

    def _end(self, node: NodeId, place: Place) -> None:
        place.alive = False
        refuses = place.refuses = self._draws_refusals()
        for other in sorted(self.places):
            if self.places[other].alive and node in self.places[other].connected:
                self._announce_loss(other, node, place.incarnation)
                if refuses:
                    self._attempt(other, node, place.incarnation)

    def _draws_refusals(self) -> bool:
        """Whether the host of a process that ends stays up."""
        network = self.network
        return network.refusal is not None and self._random.random() >= network.silent_crashes

    def _attempt(self, node: NodeId, lost: NodeId, incarnation: int) -> None:
        assert self.network.refusal is not None
        first = self.network.refusal(self._random, node, lost)
        if not self._is_cut(node, lost):
            self._schedule(first, node, self.places[node].incarnation, LinkBroken(lost))
        for delay in (first, first + REFUSAL_GAP):
            self._schedule(delay, node, self.places[node].incarnation, Attempt(lost, incarnation))

    def pause(self, node: NodeId) -> None:
        """The node stops where it is and keeps what reaches it."""
        self.places[node].paused = True
        self._log(node, "pauses")

    def resume(self, node: NodeId) -> None:
        place = self.places[node]
        if not place.paused:
            return
        place.paused = False
        self._log(node, "resumes")
        held, place.held = place.held, []
        for event in held:
            self._schedule(0, node, place.incarnation, event)

    def partition(self, groups: Sequence[Iterable[NodeId]]) -> None:
        """Cut the network: messages pass inside a group only (nodes in none form one); connections across are lost."""
        self._sides = {node: side for side, group in enumerate(groups) for node in group}
        for node in self.alive():
            for other in sorted(self.places[node].connected):
                if self._is_cut(node, other) and other in self.places:
                    self._announce_loss(node, other, self.places[other].incarnation)

    def mute(self, pairs: Iterable[tuple[NodeId, NodeId]]) -> None:
        """Let messages between these vanish, either way; no node is told."""
        for one, other in pairs:
            self._muted |= {(one, other), (other, one)}

    def heal(self) -> None:
        """All nodes reach each other again."""
        self._sides = {}
        self._muted = set()

    def run_until(self, time: Time) -> None:
        """Let everything happen up to and including this time."""
        queue, step = self._queue, self._step
        while queue and queue[0][0] <= time:
            step()
        self.now = max(self.now, time)

    def run_while(self, condition: Callable[[], bool], limit: Time) -> bool:
        """Let things happen while the condition holds, up to a time; whether it stopped holding."""
        while condition():
            if not self._queue or self._queue[0][0] > limit:
                self.now = limit
                return False
            self._step()
        return True

    def _step(self) -> None:
        self.now, _, node, incarnation, event = heappop(self._queue)
        place = self.places.get(node)
        if place is None or not place.alive or place.incarnation != incarnation:
            if node == NO_NODE:
                event()
            return
        if place.paused:
            place.held.append(event)
            return
        self.processed += 1
        clock = self.now if place.drift == 1.0 else int(self.now / place.drift)
        if type(event) is not Received:  # by far the most frequent
            if event is START:
                self._log(node, "starts")
                self._obey(node, place, place.core.start(clock))
                return
            event = self._input_of(node, place, event)
            if event is None:
                return
        if self.tracer is not None:
            self.tracer(self.now, node, event)
        outputs = place.core.handle(event, clock)
        if outputs:
            self._obey(node, place, outputs)

    def _input_of(self, node: NodeId, place: Place, event: Any) -> Input | None:
        """What a node is told of an event; None: it is void by now."""
        if type(event) is tuple:
            timer, token = event
            if place.timers.get(timer) != token:
                return None
            del place.timers[timer]
            return TimerFired(timer)
        if type(event) is Suspicion:
            is_void = self._is_reachable(node, event.lost, event.incarnation)
            return None if is_void else PeerLost(event.lost, event.incarnation)
        if type(event) is Attempt:
            return self._outcome_of(node, event)
        if type(event) is PeerUnreached:
            place.dialled.discard(event.peer)
        told: Input = event
        return told

    def _outcome_of(self, node: NodeId, attempt: Attempt) -> PeerRefused | None:
        """What comes of an attempt. None: its connection is up again, or the network is cut and nothing is heard."""
        lost = self.places[attempt.lost]
        if attempt.lost not in self.places[node].connected or self._is_cut(node, attempt.lost):
            return None
        if not lost.alive:
            return PeerRefused(attempt.lost)
        return PeerRefused(attempt.lost, lost.incarnation) if lost.incarnation > attempt.incarnation else None

    def _obey(self, node: NodeId, place: Place, outputs: Sequence[Output]) -> None:
        """By the type of each output, the frequent ones first: this is done several times per step."""
        for output in outputs:
            if isinstance(output, Send):
                self._send(node, output.to, output.message)
            elif isinstance(output, SetTimer):
                self._set_timer(node, place, output.timer, output.delay)
            else:
                self._obey_rarer(node, place, output)
                if not place.alive:
                    return

    def _obey_rarer(self, node: NodeId, place: Place, output: RarerOutput) -> None:
        match output:
            case Multicast(to, message):
                for peer in to:
                    self._send(node, peer, message)
            case Connect(peer, _):
                self._connect(node, place, peer)
            case Disconnect(peer):
                place.connected.discard(peer)
            case Notify(notification):
                self._pass_on(node, place, notification)
            case Deliver() | Gap() | Held() | Stored() | Fetched() | RecordKept() | RecordDropped():
                self._pass_on(node, place, output)
            case _:
                assert_never(output)

    def _set_timer(self, node: NodeId, place: Place, timer: Timer, delay: Time) -> None:
        self._counter += 1
        place.timers[timer] = self._counter
        self._schedule(int(delay * place.drift), node, place.incarnation, (timer, self._counter))

    def _pass_on(self, node: NodeId, place: Place, heard: Heard) -> None:
        """A listener may crash the node there and then; one that has left closes its connections."""
        if self.tracer is not None:
            self.tracer(self.now, node, heard)
        if isinstance(heard, Left):
            self._end(node, place)
        elif isinstance(heard, Rejoined):
            place.incarnation = heard.incarnation
            place.timers.clear()
            place.dialled.clear()
            place.connected.clear()
        for listener in self.listeners:
            listener(node, heard, self.now)

    def _send(self, node: NodeId, to: NodeId, message: Any) -> None:
        self._count(message)
        target = self.places.get(to)
        if target is None or not target.alive:
            self._drop(node, to, message, UNREACHABLE)
            if target is not None and target.refuses:
                self._dial(node, to)
            return
        if (self._sides and self._is_cut(node, to)) or (self._muted and (node, to) in self._muted):
            self._drop(node, to, message, CUT)
            return
        network, draw = self.network, self._random
        if network.loss and draw.random() < network.loss:
            self._drop(node, to, message, LOST)
            return
        event = Received(node, message)
        self._schedule(network.latency(draw, node, to), to, target.incarnation, event)
        if network.duplication and draw.random() < network.duplication:
            self._schedule(network.latency(draw, node, to), to, target.incarnation, event)

    def _dial(self, node: NodeId, to: NodeId) -> None:
        """Where no connection is kept one is made for the message, and refused; those kept are `Attempt`s."""
        place, refusal = self.places[node], self.network.refusal
        if refusal is None or to in place.connected or to in place.dialled or self._is_cut(node, to):
            return
        place.dialled.add(to)
        self._schedule(refusal(self._random, node, to), node, place.incarnation, PeerUnreached(to))

    def _count(self, message: Any, more: int = 0) -> int:
        """Count a message in, with so many bytes more than it has by itself; its size. The same one goes to many."""
        if message is not self._sized:
            self._sized, self._size = message, size_of(message)
        size = self._size + more
        sent = self._traffic.get(type(message))
        if sent is None:
            sent = self._traffic[type(message)] = [0, 0]
        sent[0] += 1
        sent[1] += size
        return size

    def _connect(self, node: NodeId, place: Place, peer: NodeId) -> None:
        place.connected.add(peer)
        other = self.places.get(peer)
        if other is None or not other.alive or self._is_cut(node, peer):
            self._announce_loss(node, peer, other.incarnation if other is not None else None)

    def _announce_loss(self, node: NodeId, lost: NodeId, incarnation: int | None) -> None:
        if self.network.detection is None:
            return
        delay = self.network.detection(self._random, node, lost)
        self._schedule(delay, node, self.places[node].incarnation, Suspicion(lost, incarnation))

    def _is_reachable(self, node: NodeId, peer: NodeId, incarnation: int | None) -> bool:
        other = self.places.get(peer)
        if other is None or not other.alive or (incarnation is not None and other.incarnation != incarnation):
            return False
        return not self._is_cut(node, peer)

    def _is_cut(self, one: NodeId, other: NodeId) -> bool:
        return bool(self._sides) and self._sides.get(one, -1) != self._sides.get(other, -1)

    def _schedule(self, delay: Time, node: NodeId, incarnation: int, event: Any) -> None:
        self._counter += 1
        heappush(self._queue, (self.now + delay if delay > 0 else self.now, self._counter, node, incarnation, event))

    def _drop(self, node: NodeId, to: NodeId, message: Any, why: str) -> None:
        if self.tracer is not None:
            self.tracer(self.now, node, Dropped(to, message, why))

    def _log(self, node: NodeId, what: str) -> None:
        if self.tracer is not None:
            self.tracer(self.now, node, what)

"""A world of protocol cores in virtual time: latency, loss, crashes, pauses, partitions, all drawn from one seed."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, assert_never

from omen.protocol.events import (
    Connect,
    Core,
    Disconnect,
    Input,
    NodeId,
    Notify,
    Output,
    PeerLost,
    Received,
    Send,
    SetTimer,
    Time,
    TimerFired,
    TimerKey,
)
from omen.protocol.messages import encode
from omen.sim.latency import Latency, constant

START = "start"


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
    detection: Latency = field(default_factory=lambda: constant(50_000))


@dataclass(slots=True)
class Place:
    """A node in the world."""

    core: Core
    incarnation: int
    alive: bool = True
    paused: bool = False
    drift: float = 1.0
    timers: dict[TimerKey, int] = field(default_factory=dict)
    connected: set[NodeId] = field(default_factory=set)
    held: list[Input] = field(default_factory=list)


Listener = Callable[[NodeId, Notify, Time], None]


class World:
    """Events ordered by (time, counter). Everything random comes from `seed`."""

    def __init__(self, seed: int, network: Network | None = None, trace: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.network = network or Network()
        self.now: Time = 0
        self.places: dict[NodeId, Place] = {}
        self.messages: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.sent_by: Counter[NodeId] = Counter()
        self.listeners: list[Listener] = []
        self.processed = 0
        self._trace = trace
        self._random = generator_for(seed, "world")
        self._queue: list[tuple[Time, int, NodeId, int, Any]] = []
        self._counter = 0
        self._sides: dict[NodeId, int] = {}

    def add(self, node: NodeId, core: Core, incarnation: int = 1, drift: float = 1.0) -> None:
        """Put a node in, or back in as another life, and start it now."""
        self.places[node] = Place(core, incarnation, drift=drift)
        self._schedule(0, node, incarnation, START)

    def alive(self) -> list[NodeId]:
        return sorted(node for node, place in self.places.items() if place.alive)

    def tell(self, node: NodeId, event: Input, delay: Time = 0) -> None:
        """Hand a node an input, as a user or an operator would."""
        self._schedule(delay, node, self.places[node].incarnation, event)

    def crash(self, node: NodeId) -> None:
        """A node goes without a word; those connected to it find out after a while."""
        place = self.places[node]
        if not place.alive:
            return
        place.alive = False
        self._log(node, "crashes")
        for other in sorted(self.places):
            if self.places[other].alive and node in self.places[other].connected:
                self._announce_loss(other, node, place.incarnation)

    def pause(self, node: NodeId) -> None:
        """The node stops where it is and keeps what reaches it."""
        self.places[node].paused = True
        self._log(node, "pauses")

    def resume(self, node: NodeId) -> None:
        place = self.places[node]
        place.paused = False
        self._log(node, "resumes")
        held, place.held = place.held, []
        for event in held:
            self._schedule(0, node, place.incarnation, event)

    def partition(self, groups: Sequence[Iterable[NodeId]]) -> None:
        """Cut the network: messages pass inside a group only; connections across are lost."""
        self._sides = {node: side for side, group in enumerate(groups) for node in group}
        for node in self.alive():
            for other in sorted(self.places[node].connected):
                if self._is_cut(node, other) and other in self.places:
                    self._announce_loss(node, other, self.places[other].incarnation)

    def heal(self) -> None:
        self._sides = {}

    def run_until(self, time: Time) -> None:
        """Let everything happen up to and including this time."""
        while self._queue and self._queue[0][0] <= time:
            self._step()
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
        self.now, _, node, incarnation, event = heapq.heappop(self._queue)
        place = self.places.get(node)
        if place is None or not place.alive or place.incarnation != incarnation:
            return
        if place.paused:
            if event is not START:
                place.held.append(event)
            return
        self.processed += 1
        if event is START:
            self._obey(node, place, place.core.start(self.now))
            return
        if type(event) is tuple:
            key, token = event
            if place.timers.get(key) != token:
                return
            del place.timers[key]
            event = TimerFired(key)
        elif self._trace is not None:
            self._log(node, describe(event))
        self._obey(node, place, place.core.handle(event, self.now))

    def _obey(self, node: NodeId, place: Place, outputs: Sequence[Output]) -> None:
        for output in outputs:
            match output:
                case Send(to, _, message):
                    self._send(node, to, message)
                case SetTimer(key, delay):
                    self._counter += 1
                    place.timers[key] = self._counter
                    self._schedule(int(delay * place.drift), node, place.incarnation, (key, self._counter))
                case Connect(peer, _):
                    self._connect(node, place, peer)
                case Disconnect(peer):
                    place.connected.discard(peer)
                case Notify():
                    for listener in self.listeners:
                        listener(node, output, self.now)
                case _:
                    assert_never(output)

    def _send(self, node: NodeId, to: NodeId, message: Any) -> None:
        kind = type(message).__name__
        self.messages[kind] += 1
        self.bytes[kind] += len(encode(message))
        self.sent_by[node] += 1
        target = self.places.get(to)
        if target is None or not target.alive or self._is_cut(node, to):
            return
        network = self.network
        if network.loss and self._random.random() < network.loss:
            return
        event = Received(node, message)
        self._schedule(network.latency(self._random, node, to), to, target.incarnation, event)
        if network.duplication and self._random.random() < network.duplication:
            self._schedule(network.latency(self._random, node, to), to, target.incarnation, event)

    def _connect(self, node: NodeId, place: Place, peer: NodeId) -> None:
        place.connected.add(peer)
        other = self.places.get(peer)
        if other is None or not other.alive or self._is_cut(node, peer):
            self._announce_loss(node, peer, other.incarnation if other is not None else None)

    def _announce_loss(self, node: NodeId, lost: NodeId, incarnation: int | None) -> None:
        delay = self.network.detection(self._random, node, lost)
        self._schedule(delay, node, self.places[node].incarnation, PeerLost(lost, incarnation))

    def _is_cut(self, one: NodeId, other: NodeId) -> bool:
        return bool(self._sides) and self._sides.get(one, -1) != self._sides.get(other, -1)

    def _schedule(self, delay: Time, node: NodeId, incarnation: int, event: Any) -> None:
        self._counter += 1
        heapq.heappush(self._queue, (self.now + max(delay, 0), self._counter, node, incarnation, event))

    def _log(self, node: NodeId, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now / 1e6:.6f} {node} {what}")


def describe(event: Input) -> str:
    """An input in one readable line."""
    match event:
        case Received(sender, message):
            return f"<- {sender} {message}"
        case _:
            return repr(event)

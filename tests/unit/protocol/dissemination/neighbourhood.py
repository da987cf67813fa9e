"""A few nodes that only pass publications on, over links that keep order: for tests of single rules."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from omen.protocol.config import Config
from omen.protocol.config import Dissemination as Settings
from omen.protocol.context import Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import (
    MILLISECOND,
    Deliver,
    Gap,
    Held,
    Multicast,
    NodeId,
    Notify,
    Output,
    Send,
    SetTimer,
    Topic,
    WindowCut,
)
from omen.protocol.messages.overlay import Ref
from omen.protocol.messages.publications import Publication
from omen.protocol.messages.wire import decode, encode

TOPIC = 7


class Neighbourhood:
    """`links`: pairs of nodes. All want `TOPIC` unless told otherwise. `drops` decides which messages vanish."""

    def __init__(self, links: Iterable[tuple[NodeId, NodeId]], **settings: Any) -> None:
        self.config = replace(Config(), dissemination=Settings(**settings))
        self.now = 0
        self.parts: dict[NodeId, Dissemination] = {}
        self.outs: dict[NodeId, Outbox] = {}
        self.incarnations: dict[NodeId, int] = {}
        self.topics: dict[NodeId, frozenset[Topic]] = {}
        self.wanted: dict[NodeId, frozenset[Topic]] = {}
        self.links: set[frozenset[NodeId]] = set()
        self.waiting: set[NodeId] = set()
        self.given: dict[NodeId, list[Deliver | Gap]] = {}
        self.held: dict[NodeId, list[Held]] = {}
        self.had: dict[NodeId, set[tuple[NodeId, int]]] = {}
        self.false_held: list[str] = []
        self.cuts: dict[NodeId, list[WindowCut]] = {}
        self.sent: Counter[type] = Counter()
        self.over: Counter[tuple[NodeId, NodeId]] = Counter()
        self.drops: Callable[[NodeId, NodeId, Any], bool] = lambda sender, to, message: False
        self.latency: Callable[[NodeId, NodeId], int] = lambda sender, to: MILLISECOND
        self._queue: list[tuple[int, int, NodeId, Dissemination, Any]] = []
        self._timers: dict[tuple[NodeId, Any], int] = {}
        self._count = 0
        for one, other in links:
            self.links.add(frozenset({one, other}))
        for node in sorted({node for link in self.links for node in link}):
            self.add(node, refresh=False)
        self.refresh()

    def add(self, node: NodeId, incarnation: int = 1, topics: Iterable[Topic] = (TOPIC,), refresh: bool = True) -> None:
        """A node comes, or comes back."""
        self.incarnations[node] = incarnation
        self.topics[node] = self.wanted[node] = frozenset(topics)
        self.outs[node] = Outbox(node)
        self.parts[node] = Dissemination(self.ref(node), self.config, self.outs[node])
        self.given.setdefault(node, [])
        self.held.setdefault(node, [])
        self.had[node] = set()
        if refresh:
            self.refresh()

    def ref(self, node: NodeId) -> Ref:
        return Ref(node, self.incarnations[node], "")

    def refresh(self) -> None:
        """Everybody hears who is linked to it and wants what."""
        for node in sorted(self.parts):
            others = sorted(other for link in self.links if node in link for other in link - {node})
            neighbours = {other: (self.ref(other), self.topics[other]) for other in others if other in self.parts}
            part = self.parts[node]
            waiting = self.topics[node] if node in self.waiting else frozenset()
            part.refresh(self.topics[node], self.wanted[node], waiting, neighbours, self.now)
            self._obey(node, part, self.outs[node].take())

    def link(self, one: NodeId, other: NodeId) -> None:
        self.links.add(frozenset({one, other}))
        self.refresh()

    def unlink(self, one: NodeId, other: NodeId) -> None:
        self.links.discard(frozenset({one, other}))
        self.refresh()

    def crash(self, node: NodeId) -> None:
        """Gone without a word; its neighbours are told when `refresh` is called."""
        del self.parts[node]
        self.links = {link for link in self.links if node not in link}

    def want(self, node: NodeId, carried: Iterable[Topic], wanted: Iterable[Topic] | None = None) -> None:
        self.topics[node] = frozenset(carried)
        self.wanted[node] = frozenset(carried if wanted is None else wanted)
        self.refresh()

    def publish(self, node: NodeId, payload: bytes = b"x", topic: Topic = TOPIC) -> int:
        part = self.parts[node]
        sequence, outputs = part.publish(topic, payload, self.now)
        self._obey(node, part, outputs)
        return sequence

    def broken(self, node: NodeId, peer: NodeId) -> None:
        """A node sees its connection to another break."""
        self.parts[node].on_broken(peer, self.now)
        self._obey(node, self.parts[node], self.outs[node].take())

    def behind(self, node: NodeId, peer: NodeId) -> None:
        self.parts[node].on_slow(peer)

    def ready(self, node: NodeId, peer: NodeId) -> None:
        self.parts[node].on_ready(peer, self.now)
        self._obey(node, self.parts[node], self.outs[node].take())

    def room(self, node: NodeId, peer: NodeId, room: int) -> None:
        """The queue of a node for a peer can take so many bytes more."""
        self.parts[node].on_room(peer, room, self.now)
        self._obey(node, self.parts[node], self.outs[node].take())

    def replay(self, node: NodeId, topic: Topic = TOPIC) -> None:
        self.parts[node].replay(topic, self.now)
        self._obey(node, self.parts[node], self.outs[node].take())

    def run(self, milliseconds: float) -> None:
        end = self.now + int(milliseconds * MILLISECOND)
        while self._queue and self._queue[0][0] <= end:
            self.now, _, node, part, event = heapq.heappop(self._queue)
            if self.parts.get(node) is part:
                self._happen(node, part, event)
        self.now = end

    def _happen(self, node: NodeId, part: Dissemination, event: Any) -> None:
        kind, detail, token = event
        if kind == "timer":
            if self._timers.get((node, detail)) == token:
                part.on_timer(detail, self.now)
        elif type(detail) is Publication:
            outputs = part.receive(token, detail, self.now)
            stream = part.topics[detail.topic].streams.get(detail.key) if detail.topic in part.topics else None
            if stream is not None and (detail.sequence in stream.recent or detail.sequence in stream.backlog):
                self.had[node].add((detail.publisher, detail.sequence))
            self._obey(node, part, outputs)
        else:
            part.on_control(token, detail, self.now)
        self._obey(node, part, self.outs[node].take())

    def _obey(self, node: NodeId, part: Dissemination, outputs: Iterable[Output]) -> None:
        for output in outputs:
            match output:
                case Multicast(to, message):
                    for peer in to:
                        self._send(node, peer, message)
                case Send(to, _, message):
                    self._send(node, to, message)
                case SetTimer(key, delay):
                    self._count += 1
                    self._timers[node, key] = self._count
                    self._later(delay, node, part, ("timer", key, self._count))
                case Deliver() | Gap():
                    self.given[node].append(output)
                case Notify(WindowCut() as cut):
                    self.cuts.setdefault(node, []).append(cut)
                case Held():
                    self._check_held(node, part, output)
                    self.held[node].append(output)
                case _:
                    raise AssertionError(output)

    def _check_held(self, node: NodeId, part: Dissemination, held: Held) -> None:
        """All neighbours on the tree must have had all that was not held before, but what is said to be passed over."""
        carried = part.topics[held.topic]
        before = self.held[node][-1].sequence if self.held[node] else 0
        for peer in sorted(carried.eager or carried.peers):
            lacking = [
                number
                for number in range(max(before, held.passed) + 1, held.sequence + 1)
                if (node, number) not in self.had[peer] and peer in self.parts
            ]
            if lacking:
                self.false_held.append(f"node {node} at {self.now}: {held}, but {peer} never had {lacking[:5]}")

    def _send(self, node: NodeId, to: NodeId, message: Any) -> None:
        self.sent[type(message)] += 1
        if type(message) is Publication:
            self.over[node, to] += 1
        if frozenset({node, to}) in self.links and to in self.parts and not self.drops(node, to, message):
            self._later(self.latency(node, to), to, self.parts[to], ("message", decode(encode(message)), node))

    def _later(self, delay: int, node: NodeId, part: Dissemination, event: Any) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, node, part, event))

    def sequences(self, node: NodeId, publisher: NodeId, incarnation: int = 1, topic: Topic = TOPIC) -> list[int]:
        """What the application of a node was given of a stream; gaps as negative numbers."""
        found: list[int] = []
        for item in self.given[node]:
            if (item.topic, item.publisher, item.incarnation) == (topic, publisher, incarnation):
                if isinstance(item, Deliver):
                    found.append(item.sequence)
                else:
                    found += [-sequence for sequence in range(item.first, item.last + 1)]
        return found

    @property
    def duplicates(self) -> int:
        return sum(part.duplicates for part in self.parts.values())

    def tree(self, topic: Topic = TOPIC) -> set[tuple[NodeId, NodeId]]:
        """The links on which both ends send at once."""
        eager = {node: part.topics[topic].eager for node, part in self.parts.items() if topic in part.topics}
        return {(one, other) for one in eager for other in eager[one] if one < other and one in eager[other]}


def kept(nodes: Neighbourhood, node: int, topic: int = TOPIC) -> int:
    return len(nodes.parts[node].topics[topic].times)


def publish_many(nodes: Neighbourhood, node: int, count: int, payload: bytes = b"x") -> None:
    for _ in range(count):
        nodes.publish(node, payload)
        nodes.run(2)

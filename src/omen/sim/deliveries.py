"""Counts what publications came to, from what applications were given alone: what was lost, what came twice.

Independent of the protocol: it knows who said what when, and who was subscribed from before that to the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omen.protocol.events import Deliver, Gap, Held, NodeId, RequestHandled, Time, Topic
from omen.protocol.node import OmenNode
from omen.sim.population import Population
from omen.sim.world import Heard

StreamName = tuple[Topic, NodeId, int]


@dataclass(slots=True)
class Tally:
    """What came of all publications. `lost` and `duplicated` say which; `gaps` counts those told, to any node.

    `expected`: deliveries that a surviving publisher owes to those subscribed throughout.
    """

    published: int = 0
    expected: int = 0
    delivered: int = 0
    gaps: int = 0
    held: int = 0
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @property
    def duplicates_per_delivery(self) -> float:
        """Copies of publications that links carried for nothing, for each delivery to another node."""
        remote = self.delivered - self.published
        return self.duplicates / remote if remote > 0 else 0.0

    def complaints(self) -> list[str]:
        return [
            *(f"lost: {what}" for what in self.lost),
            *(f"duplicated: {what}" for what in self.duplicated),
            *(f"out of order: {what}" for what in self.disordered),
            *(f"passed over in silence: {what}" for what in self.silent),
        ]


@dataclass(slots=True)
class Reader:
    """What one application was given. `spans`: for each stream the sequences in order; a gap is a span marked so."""

    label: str
    core: OmenNode
    is_linked: bool = False
    spans: dict[StreamName, list[tuple[int, int, bool]]] = field(default_factory=dict)
    given: dict[StreamName, set[int]] = field(default_factory=dict)
    dropped: dict[Topic, Time] = field(default_factory=dict)


class Deliveries:
    """Listens to a world. A publication is accepted when its own publisher is given it back."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.world = population.world
        self.tally = Tally()
        self._readers: dict[int, Reader] = {}
        self._said: dict[tuple[StreamName, int], tuple[Time, Reader, tuple[Reader, ...]]] = {}
        self.world.listeners.append(self._hear)

    def begin(self) -> None:
        """All members are linked already."""
        for node in self.population.members():
            self._reader(node).is_linked = True

    def note_topics(self, node: NodeId, wanted: set[Topic]) -> None:
        """A node is about to be told to want these and no others."""
        for topic in self.population.wanted(node) - wanted:
            self._reader(node).dropped[topic] = self.world.now

    def _reader(self, node: NodeId) -> Reader:
        core = self.population.cores[node]
        reader = self._readers.get(id(core))
        if reader is None:
            reader = self._readers[id(core)] = Reader(f"{self.population.labels[node]}", core)
        return reader

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, Deliver):
            self._on_deliver(self._reader(node), node, heard, time)
        elif isinstance(heard, Gap):
            gap = heard
            self.tally.gaps += 1
            stream = (gap.topic, gap.publisher, gap.incarnation)
            self._reader(node).spans.setdefault(stream, []).append((gap.first, gap.last, True))
        elif isinstance(heard, Held):
            self.tally.held += 1
        elif isinstance(heard, RequestHandled) and heard.event.kind == "join":
            self._reader(node).is_linked = True

    def _on_deliver(self, reader: Reader, node: NodeId, message: Deliver, time: Time) -> None:
        self.tally.delivered += 1
        sequence = message.sequence
        stream = (message.topic, message.publisher, message.incarnation)
        what = self._name(reader, stream, sequence)
        if node == message.publisher and reader.core.ref.incarnation == message.incarnation:
            self.tally.published += 1
            self._said[stream, sequence] = (time, reader, self._subscribers(message.topic))
        elif (stream, sequence) not in self._said:
            self.tally.disordered.append(f"{what}, which no node published")
        spans, given = reader.spans.setdefault(stream, []), reader.given.setdefault(stream, set())
        if spans:
            last = spans[-1][1]
            if sequence in given:
                self.tally.duplicated.append(f"{what} after {last}")
            elif sequence <= last:
                self.tally.disordered.append(f"{what} after {last}")
            elif sequence > last + 1 and message.topic not in reader.dropped:
                self.tally.silent.append(f"{what} after {last}")
        spans.append((sequence, sequence, False))
        given.add(sequence)

    def _name(self, reader: Reader, stream: StreamName, sequence: int) -> str:
        topic, publisher, incarnation = stream
        labels, topics = self.population.labels, self.population.topic_labels
        return f"{labels[publisher]}/{incarnation} on {topics[topic]}, {sequence} at {reader.label}"

    def _subscribers(self, topic: Topic) -> tuple[Reader, ...]:
        """The readers that want a topic now, whose node knows it, and that are linked in it."""
        found = []
        for node in self.population.members():
            core = self.population.cores[node]
            if (
                topic in core.wanted
                and topic in self.population.wanted(node)
                and topic not in core.status().waiting
                and self._reader(node).is_linked
            ):
                found.append(self._reader(node))
        return tuple(found)

    def conclude(self) -> Tally:
        """Everything that could still arrive has: judge."""
        tally = self.tally
        alive = {id(self.population.cores[node]) for node in self.population.members()}
        for (stream, sequence), (time, publisher, expected) in self._said.items():
            if id(publisher.core) not in alive:
                continue
            for reader in expected:
                dropped = reader.dropped.get(stream[0], -1)
                if id(reader.core) not in alive or dropped >= time:
                    continue
                tally.expected += 1
                if sequence not in reader.given.get(stream, ()):
                    spans = reader.spans.get(stream, ())
                    told = any(first <= sequence <= last for first, last, gap in spans if gap)
                    said = f"{self._name(reader, stream, sequence)}, said at {time / 1e6:.3f} s"
                    tally.lost.append(said + (", told as a gap" if told else ""))
        tally.duplicates = sum(reader.core.status().dissemination.duplicates for reader in self._readers.values())
        return tally

"""The promise itself, judged whenever an event is said to be handled: what is split then must be explained.

A lost node is kept here, with the links it had at its end. It counts as if it were there until its loss is
handled, and as long as a former neighbour that was not heard is still to act: it has not noticed the loss, or its
report is open. A node that waits to be linked, or is about to leave or to give the topic up, makes no piece of its own.
With that, every topic is one piece at every moment if each repair does what it says. Where it is not, the repair that
has just ended was wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.node import OmenNode
from omen.sim.population import Population

Incarnation = tuple[NodeId, int]
"""A node, and which of its incarnations."""
Member = tuple[Topic, Incarnation]
Forest = dict[Member, Member]
Here = dict[Incarnation, OmenNode]


@dataclass(slots=True)
class LostNode:
    """A node that has failed or left, or that a neighbour has declared failed: its topics, and its neighbours."""

    topics: frozenset[Topic]
    neighbours: set[Incarnation] = field(default_factory=set)


class Promise:
    """Told of ends, newcomers and handled events; `split_topics` says what nothing explains."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._lost: dict[Incarnation, LostNode] = {}
        self._heard: dict[Incarnation, set[NodeId]] = {}
        self._handled: set[EventId] = set()
        self._newcomers: set[Incarnation] = set()
        self._declared: dict[Incarnation, set[NodeId]] = {}

    def note_newcomer(self, node: NodeId, incarnation: int) -> None:
        self._newcomers.add((node, incarnation))

    def note_end(self, node: NodeId, incarnation: int) -> None:
        """A node has failed or left, or a neighbour has given its link to it up: keep the links of this moment."""
        core = self._population.cores[node]
        lost_node = self._lost.setdefault((node, incarnation), LostNode(frozenset(core.topics)))
        if core.ref.incarnation == incarnation:
            lost_node.neighbours.update(
                (other, link.ref.incarnation) for other, link in core.links().items() if link.is_up
            )
        for other in self._population.members():
            far = self._population.cores[other]
            link = far.links().get(node)
            if link is not None and link.is_up and link.ref.incarnation == incarnation:
                lost_node.neighbours.add((other, far.ref.incarnation))

    def note_declared(self, node: NodeId, incarnation: int, by: NodeId) -> None:
        """A node that is there was declared failed: as long as it is, it makes no piece of its own, for it rejoins."""
        self.note_end(node, incarnation)
        self._declared.setdefault((node, incarnation), set()).add(by)

    def note_handled(self, events: Iterable[EventId], heard: Iterable[NodeId]) -> None:
        """A coordinator says so; `heard`: the former neighbours that answered."""
        heard = set(heard)
        for event in events:
            self._handled.add(event)
            if event.kind == EventKind.LEAVE:
                if (event.node, event.incarnation) in self._lost:
                    self.note_end(event.node, event.incarnation)  # it may be there, and linked since to others
                self._heard.setdefault((event.node, event.incarnation), set()).update(heard)
            elif event.kind == EventKind.JOIN:
                self._newcomers.discard((event.node, event.incarnation))

    def split_topics(self, judged: Iterable[EventId] = ()) -> dict[Topic, list[list[NodeId]]]:
        """The topics in more pieces than open events explain, each with its pieces.

        `judged`: events that are said to be handled just now. Their repair must do without the nodes that were lost,
        which may be there: declared failed wrongly, and not told yet. Later repairs may count on those, as long as both
        ends have the link: when such a node rejoins, that is an event.
        """
        cores = self._population.cores
        without = {(event.node, event.incarnation) for event in judged if event.kind == EventKind.LEAVE}
        here: Here = {}
        for node in self._population.members():
            core = cores[node]
            one = (node, core.ref.incarnation)
            if one not in without or core.is_leaving:
                here[one] = core
        parents: Forest = {}
        topics = {one: frozenset(core.topics) for one, core in here.items()}
        for one, core in here.items():
            for other, link in core.links().items():
                far = (other, link.ref.incarnation)
                if one < far and link.is_up and far in here and _is_up(here[far], one[0]):
                    for topic in topics[one] & topics[far]:
                        _unite(parents, (topic, one), (topic, far))
        for one, lost_node in self._still_open(here).items():
            for far in lost_node.neighbours:
                if far in here:
                    shared = lost_node.topics & topics[far]
                else:
                    shared = lost_node.topics & self._lost[far].topics if far in self._lost else frozenset()
                for topic in shared:
                    _unite(parents, (topic, one), (topic, far))
        return self._more_than_one({one: core for one, core in here.items() if not self._is_out(one, core)}, parents)

    def _is_out(self, one: Incarnation, core: OmenNode) -> bool:
        """Whether a node that is there counts as lost: its loss was handled, or one has declared it failed."""
        if one in self._heard and not core.is_leaving:
            return True
        cores, members = self._population.cores, self._population.members()
        return any(by in members and cores[by].has_declared_failed(core.ref) for by in self._declared.get(one, ()))

    def _more_than_one(self, here: Here, parents: Forest) -> dict[Topic, list[list[NodeId]]]:
        pieces: dict[Topic, dict[Incarnation, list[NodeId]]] = {}
        for one, core in here.items():
            for topic in frozenset(core.topics) - self._unsettled(one, core):
                _, root = _find(parents, (topic, one))
                pieces.setdefault(topic, {}).setdefault(root, []).append(one[0])
        return {topic: list(found.values()) for topic, found in pieces.items() if len(found) > 1}

    def _unsettled(self, one: Incarnation, core: OmenNode) -> Set[Topic]:
        """The topics in which a node waits to be linked, or which it is about to leave or to give up."""
        if one in self._newcomers or core.is_leaving:
            return frozenset(core.topics)
        requests = core.requests.items()
        given_up = {topic for _, ask in requests for topic in ask.dropped}
        return given_up.union(topic for event, ask in requests if event not in self._handled for topic in ask.added)

    def _still_open(self, here: Here) -> dict[Incarnation, LostNode]:
        """Those whose loss is not handled, or not for all: a former neighbour is still to act."""
        return {
            one: lost_node
            for one, lost_node in self._lost.items()
            if one not in self._heard or any(self._is_to_act(one, far, here) for far in lost_node.neighbours)
        }

    def _is_to_act(self, lost: Incarnation, former: Incarnation, here: Here) -> bool:
        node, incarnation = lost
        if former[0] in self._heard[lost]:
            return False
        core = here.get(former)
        if former in self._heard and (core is None or not core.is_leaving):
            return False
        if core is None:
            return former in self._lost
        link = core.links().get(node)
        if link is not None and link.ref.incarnation == incarnation:
            return True
        return any(event.node == node and event.incarnation == incarnation for event in core.loss_reports)


def _is_up(core: OmenNode, node: NodeId) -> bool:
    link = core.links().get(node)
    return link is not None and link.is_up


def _find(parents: Forest, one: Member) -> Member:
    while (parent := parents.get(one, one)) != one:
        parents[one] = parents.get(parent, parent)
        one = parents[one]
    return one


def _unite(parents: Forest, one: Member, other: Member) -> None:
    one, other = _find(parents, one), _find(parents, other)
    if one != other:
        parents[max(one, other)] = min(one, other)

"""The steps of a small world, on states that are values: the nodes by number, what each is about to be given, the time.

The same world as that of `explore_world`, which runs live nodes; tests/simulation/test_explore.py holds the two
against each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from omen.protocol.events import Depart, NodeId, Received, Subscribe, Time, TimerFired, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.node import OmenNode
from omen.sim.explore_cores import CONNECT, DISCONNECT, LEFT, REJOINED, SEND, TIMER, Cores, Effect
from omen.sim.explore_world import Entry, OrderedPopulation, OrderedRun, OrderedWorld
from omen.sim.scenario import EventSpec, OrderSpec, Scenario
from omen.sim.world import START, Suspicion

DELAY, LOSE = -1, -2
"""Choices: the input that is next is delayed, or lost. Any other number: that event happens."""


class Record(NamedTuple):
    """A node: its state (0: it is not there), what it is given in this round, in the next, later, and out of turn."""

    core: int
    incarnation: int
    now: tuple[int, ...] = ()
    next: tuple[int, ...] = ()
    later: tuple[tuple[Time, int], ...] = ()
    late: tuple[int, ...] = ()
    connected: frozenset[NodeId] = frozenset()


class State(NamedTuple):
    """`fresh`: no input of this round was taken yet. `left`: the events still to come."""

    clock: Time
    fresh: bool
    nodes: tuple[Record, ...]
    left: tuple[int, ...]


class Budget(NamedTuple):
    """How many inputs may still be delayed, and how many messages lost."""

    delays: int
    losses: int = 0


class Model:
    """The steps of one small world."""

    def __init__(self, scenario: Scenario) -> None:
        bare = msgspec.structs.replace(scenario, order=OrderSpec(), events=with_steps(scenario.events))
        run = OrderedRun(bare, 0)
        run.prepare()
        assert isinstance(run.population, OrderedPopulation) and isinstance(run.world, OrderedWorld)
        self.scenario = scenario
        self.cores = Cores()
        self._population = run.population
        self._detection = run.world.detection_time
        joining = [run.population.place(event.join) for event in scenario.events if event.join is not None]
        self.ids = sorted({*run.world.places, *joining})
        self._index = {node: position for position, node in enumerate(self.ids)}
        self._concerned = [self._index[self._place(event)] for event in scenario.events]
        self._start = self.cores.items.number(START)
        self._commands = [self._command(event) for event in scenario.events]
        self._born: dict[tuple[int, int, Ref], int] = {}
        self.first = self._begin(run.world)

    def _place(self, event: EventSpec) -> NodeId:
        return self._population.place(getattr(event, event.action))

    def _command(self, event: EventSpec) -> int:
        """What the node of an event is told; 0 where it is not told but made or ended."""
        number = self.cores.items.number
        if event.leave is not None:
            return number(Depart())
        if event.resubscribe is not None:
            wanted = set(self._population.topic_keys(event.topics or ()))
            had = set(self._population.cores[self._place(event)].topics)
            return number(Subscribe(tuple(sorted(wanted - had)), tuple(sorted(had - wanted))))
        return self._start

    def _begin(self, world: OrderedWorld) -> State:
        records = []
        for node in self.ids:
            place = world.places.get(node)
            if place is None:
                records.append(Record(0, 0))
                continue
            assert isinstance(place.core, OmenNode)
            due = [(when, count, entry) for when, count, at, entry in world.later if at == node]
            later = tuple((when, self._item(entry)) for when, _, entry in sorted(due))
            core = self.cores.adopt(place.core) + 1
            records.append(Record(core, place.incarnation, later=later, connected=frozenset(place.connected)))
        return self._next_round(world.now, True, records, tuple(range(len(self.scenario.events))))

    def _item(self, entry: Entry) -> int:
        event = entry[2]
        return self.cores.items.number(TimerFired(event[0]) if type(event) is tuple else event)

    # One step

    def head(self, state: State) -> int:
        """Whose turn it is."""
        return next(position for position, record in enumerate(state.nodes) if record.now)

    def choices(self, state: State, budget: Budget, passed: bool) -> Iterator[int]:
        """What may be done instead of taking the next input; `passed`: one was passed over just now."""
        head = self.head(state)
        if not passed:
            for event in state.left:
                if (state.fresh or self._concerned[event] == head) and self.makes_sense(state, event):
                    yield event
        if budget.losses and type(self.cores.items.all[state.nodes[head].now[0]]) is Received:
            yield LOSE
        if budget.delays and self.can_wait(state.nodes[head]):
            yield DELAY

    def can_wait(self, record: Record) -> bool:
        """Whether the next input of a node may be delayed: another has to come, and the first of all is its start."""
        return bool(record.now[1:] or record.next or record.later) and record.now[0] != self._start

    def makes_sense(self, state: State, event: int) -> bool:
        there = state.nodes[self._concerned[event]].core != 0
        return there != (self.scenario.events[event].join is not None)

    def take(self, state: State, position: int | None = None) -> State:
        """The next input is taken: of the node whose turn it is, or of another one that has any."""
        position = self.head(state) if position is None else position
        record = state.nodes[position]
        item, now = record.now[0], record.late + record.now[1:]
        nodes = list(state.nodes)
        nodes[position] = record._replace(now=now, late=())
        event = self.cores.items.all[item]
        if type(event) is Suspicion and self._is_there(nodes, event):
            return self._next_round(state.clock, False, nodes, state.left)
        self._feed(nodes, position, item, state.clock)
        return self._next_round(state.clock, False, nodes, state.left)

    def pass_over(self, state: State, lost: bool, position: int | None = None) -> State:
        """The next input waits, or is lost."""
        position = self.head(state) if position is None else position
        record = state.nodes[position]
        nodes = list(state.nodes)
        late = record.late if lost else (*record.late, record.now[0])
        nodes[position] = record._replace(now=record.now[1:], late=late)
        return self._next_round(state.clock, False, nodes, state.left)

    def happen(self, state: State, event: int) -> State:
        """An event of the scenario."""
        spec, position = self.scenario.events[event], self._concerned[event]
        nodes = list(state.nodes)
        if spec.crash is not None:
            self._end(nodes, position, state.clock)
        elif spec.join is not None:
            self._join(nodes, position, spec)
        else:
            self._feed(nodes, position, self._commands[event], state.clock)
        left = tuple(other for other in state.left if other != event)
        return self._next_round(state.clock, state.fresh, nodes, left)

    def _join(self, nodes: list[Record], position: int, spec: EventSpec) -> None:
        node, incarnation = self.ids[position], nodes[position].incarnation + 1
        contact = self._index[self._population.place(spec.through or "")]
        ref = Ref(self.ids[contact], nodes[contact].incarnation, "")
        core = self._born.get((position, incarnation, ref))
        if core is None:
            made = self._population.make_core(node, incarnation, self._population.topic_keys(spec.topics or ()), [ref])
            core = self._born[position, incarnation, ref] = self.cores.adopt(made) + 1
        nodes[position] = Record(core, incarnation, next=(self._start,))

    def _feed(self, nodes: list[Record], position: int, item: int, clock: Time) -> None:
        record = nodes[position]
        core, effects = self.cores.step(record.core - 1, item, clock)
        nodes[position] = record._replace(core=core + 1)
        for effect in effects:
            self._apply(nodes, position, effect, clock)
            if not nodes[position].core:
                return

    def _apply(self, nodes: list[Record], position: int, effect: Effect, clock: Time) -> None:
        kind, one, other = effect
        record = nodes[position]
        if kind == SEND:
            target = self._index.get(one)
            if target is not None and nodes[target].core:
                nodes[target] = nodes[target]._replace(next=(*nodes[target].next, other))
        elif kind == TIMER:
            nodes[position] = _with_timer(record, one, clock, other)
        elif kind == CONNECT:
            nodes[position] = record._replace(connected=record.connected | {one})
            peer = self._index.get(one)
            if peer is None or not nodes[peer].core:
                known = nodes[peer].incarnation if peer is not None else 0
                self._tell_loss(nodes, position, one, known or None, clock)
        elif kind == DISCONNECT:
            nodes[position] = record._replace(connected=record.connected - {one})
        elif kind == LEFT:
            self._end(nodes, position, clock)
        elif kind == REJOINED:
            nodes[position] = Record(record.core, one)

    def _end(self, nodes: list[Record], position: int, clock: Time) -> None:
        gone = nodes[position]
        nodes[position] = Record(0, gone.incarnation)
        for other, record in enumerate(nodes):
            if record.core and self.ids[position] in record.connected:
                self._tell_loss(nodes, other, self.ids[position], gone.incarnation, clock)

    def _tell_loss(self, nodes: list[Record], told: int, lost: NodeId, incarnation: int | None, clock: Time) -> None:
        item = self.cores.items.number(Suspicion(lost, incarnation))
        record = nodes[told]
        nodes[told] = record._replace(later=(*record.later, (clock + self._detection, item)))

    def _is_there(self, nodes: list[Record], suspicion: Suspicion) -> bool:
        peer = self._index.get(suspicion.lost)
        if peer is None or not nodes[peer].core:
            return False
        return suspicion.incarnation is None or nodes[peer].incarnation == suspicion.incarnation

    def _next_round(self, clock: Time, fresh: bool, nodes: list[Record], left: tuple[int, ...]) -> State:
        """On to the next input: of this round, of the next one, or of the next moment at which there is any."""
        if not any(record.now for record in nodes):
            fresh = True
            if any(record.next for record in nodes):
                for position, record in enumerate(nodes):
                    if record.next:
                        nodes[position] = record._replace(now=tuple(sorted(record.next, key=self._rank)), next=())
            else:
                clock = min((due for record in nodes for due, _ in record.later), default=clock)
                for position, record in enumerate(nodes):
                    due = tuple(item for when, item in record.later if when == clock)
                    if due:
                        rest = tuple(entry for entry in record.later if entry[0] != clock)
                        nodes[position] = record._replace(now=due, later=rest)
        return State(clock, fresh, tuple(nodes), left)

    def _rank(self, item: int) -> int:
        event = self.cores.items.all[item]
        return event.sender if type(event) is Received else 1 << 65

    # What must hold

    def is_at_rest(self, state: State) -> bool:
        """Nothing is under way, and no node has anything to do."""
        if not state.fresh:
            return False
        states, items = self.cores.states, self.cores.items.all
        for record in state.nodes:
            if not record.core:
                continue
            if record.late or record.next or states[record.core - 1].busy:
                return False
            if any(type(items[item]) is not TimerFired for item in record.now):
                return False
            if any(type(items[item]) is Suspicion for _, item in record.later):
                return False
        return True

    def complaint(self, state: State) -> str | None:
        """What is not as it should be in a world at rest."""
        here = {self.ids[position]: record for position, record in enumerate(state.nodes) if record.core}
        facts = {node: self.cores.states[record.core - 1] for node, record in here.items()}
        agreed: set[tuple[NodeId, NodeId]] = set()
        one_sided = []
        for node, state_of in facts.items():
            for other, incarnation, up in state_of.links:
                back = next((link for link in facts[other].links if link[0] == node), None) if other in facts else None
                if back is None or not up or not back[2] or incarnation != here[other].incarnation:
                    one_sided.append(f"{self._name(node)} alone has a link to {self._name(other)}")
                else:
                    agreed.add((node, other))
        split = _split_topics({node: set(fact.topics) for node, fact in facts.items()}, agreed)
        if split:
            labels = self._population.topic_labels
            return f"at rest, and split: {', '.join(sorted(str(labels.get(topic, topic)) for topic in split))}"
        return "; ".join(one_sided) or None

    def _name(self, node: NodeId) -> str:
        return str(self._population.labels.get(node, node))


def _with_timer(record: Record, item: int, clock: Time, delay: Time) -> Record:
    """A timer that is set again replaces the one before."""
    now, following, late, later = record.now, record.next, record.late, record.later
    if item in now:
        now = tuple(other for other in now if other != item)
    if item in following:
        following = tuple(other for other in following if other != item)
    if item in late:
        late = tuple(other for other in late if other != item)
    rest = tuple(entry for entry in later if entry[1] != item)
    if delay > 0:
        return record._replace(now=now, next=following, late=late, later=(*rest, (clock + delay, item)))
    return record._replace(now=now, next=(*following, item), late=late, later=rest)


def _split_topics(topics: dict[NodeId, set[Topic]], links: set[tuple[NodeId, NodeId]]) -> list[Topic]:
    split = []
    for topic in set().union(*topics.values()) if topics else ():
        members = {node for node, had in topics.items() if topic in had}
        reached, edge = set(), [min(members)]
        while edge:
            node = edge.pop()
            if node not in reached:
                reached.add(node)
                edge += [other for one, other in links if one == node and other in members]
        if reached != members:
            split.append(topic)
    return split


def with_steps(events: tuple[EventSpec, ...]) -> tuple[EventSpec, ...]:
    return tuple(msgspec.structs.replace(event, at=None, on=None, of=None, step=0, burst=0) for event in events)

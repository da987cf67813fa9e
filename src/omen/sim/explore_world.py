"""A world in rounds: no latency, no chance. Which input a node gets next is given, but for delays that are asked for.

What is sent in one round arrives in the next; within a round each node takes its inputs by sender, then its timers.
Time passes only while nothing is under way, up to the next timer. A *delay* lets the input that is next at a node wait
until the node has taken another one. So any order in which a node can take its inputs is that order plus some delays,
as many as there are pairs the wrong way round (delay-bounded scheduling: Emmi, Qadeer, Rakamaric). Inputs of different
nodes in one round do not depend on each other: only one order of nodes is ever needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omen.interests import Label
from omen.maintain.choosing import choose_links
from omen.protocol.events import NodeId, Received, Time, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.node import OmenNode
from omen.sim.kinds import Kind
from omen.sim.latency import constant
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.running import Outcome, Run
from omen.sim.scenario import EventSpec, Name, Scenario, to_time
from omen.sim.world import NO_NODE, Network, Tracer, World

MASK = (1 << 64) - 1
SETTLING_S = 12.0
"""How long a world runs before anything happens in it: gossip has gone round, and backup sets are ready."""

Entry = tuple[NodeId, int, Any]
"""An input on its way: from which node (or none), for which incarnation, and what."""


class SmallRandom:
    """What a node draws from, with a state of one number: a generator like SplitMix."""

    def __init__(self, state: int) -> None:
        self.state = state & MASK

    def _draw(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        return mixed ^ mixed >> 31

    def randrange(self, stop: int, /) -> int:
        return self._draw() % stop

    def random(self) -> float:
        return self._draw() / (MASK + 1)

    def shuffle(self, x: list[Any], /) -> None:
        for last in range(len(x) - 1, 0, -1):
            other = self._draw() % (last + 1)
            x[last], x[other] = x[other], x[last]

    def sample(self, population: Any, k: int, /) -> list[Any]:
        mixed = list(population)
        self.shuffle(mixed)
        return mixed[:k]


class OrderedPopulation(Population):
    """The same population, of nodes that draw from a `SmallRandom`."""

    def make_core(self, node: NodeId, incarnation: int, topics: Iterable[Topic], contacts: Iterable[Ref]) -> OmenNode:
        """A node that is not in the world yet."""
        return self._core(node, incarnation, topics, tuple(contacts))

    def _core(self, node: NodeId, incarnation: int, topics: Iterable[Topic], contacts: Any) -> OmenNode:
        drawn = SmallRandom(node * 31 + incarnation)
        core = OmenNode(Ref(node, incarnation, ""), topics, self.config, drawn, self.engine, contacts, self.registry)
        self.cores[node] = core
        self._wanted.pop(node, None)
        return core

    def topic_keys(self, topics: Iterable[Label]) -> list[Topic]:
        return self._keys(list(topics))


class OrderedWorld(World):
    """`steps`: inputs taken since the order was given; `now_due`: of the present round, by node."""

    def __init__(self, seed: int, network: Network, tracer: Tracer | None = None) -> None:
        super().__init__(seed, network, tracer)
        self.steps = 0
        self.now_due: dict[NodeId, list[Entry]] = {}
        self.next_due: dict[NodeId, list[Entry]] = {}
        self.later: list[tuple[Time, int, NodeId, Entry]] = []
        self.late: dict[NodeId, list[Entry]] = {}
        self._calls: list[tuple[Time, int, Callable[[], None]]] = []
        self._at_step: dict[int, list[Callable[[], None]]] = {}
        self._choices: list[tuple[int, str]] = []

    @property
    def detection_time(self) -> Time:
        """How long until a peer is told of a loss: always the same here."""
        detection = self.network.detection
        return detection(self._random, NO_NODE, NO_NODE) if detection is not None else 0

    def order(self, choices: Iterable[tuple[int, str]], actions: Iterable[tuple[int, Callable[[], None]]]) -> None:
        """From now on steps are counted: before which ones the next input is passed over, and something else done."""
        self.steps = 0
        self._choices = list(choices)
        for step, action in actions:
            self._at_step.setdefault(step, []).append(action)

    def run_until(self, time: Time) -> None:
        while True:
            self._do_calls()
            head = self._find_head(time)
            if head is None:
                break
            for action in self._at_step.pop(self.steps, ()):
                action()
            head = self._find_head(time)
            if head is None:
                continue
            if self._choices and self._choices[0][0] == self.steps:
                entry = self.now_due[head].pop(0)
                if self._choices.pop(0)[1] == "delay":
                    self.late.setdefault(head, []).append(entry)
            else:
                self._take(head)
        self.now = max(self.now, time)
        self._do_calls()

    def _find_head(self, until: Time) -> NodeId | None:
        """The node whose turn it is: of the present round, of the next, or when the next timer is due."""
        while True:
            self._drop_void()
            found = min((node for node, entries in self.now_due.items() if entries), default=None)
            if found is not None:
                return found
            if any(self.next_due.values()):
                self.now_due = {node: sorted(due, key=_sender) for node, due in self.next_due.items() if due}
                self.next_due = {}
                continue
            due = min((entry[0] for entry in self.later), default=None)
            if due is None or due > until:
                return None
            self.now = max(self.now, due)
            for _, _, node, entry in sorted(entry for entry in self.later if entry[0] == due):
                self.now_due.setdefault(node, []).append(entry)
            self.later = [entry for entry in self.later if entry[0] != due]

    def _drop_void(self) -> None:
        """What is for a node that has ended, or for its former incarnation, is no input."""
        for due in (self.now_due, self.late):
            for node, entries in due.items():
                place = self.places[node]
                entries[:] = [entry for entry in entries if place.alive and place.incarnation == entry[1]]

    def _take(self, node: NodeId) -> None:
        self.steps += 1
        _, incarnation, event = self.now_due[node].pop(0)
        self._hand_over(node, incarnation, event)
        self.now_due[node][:0] = self.late.pop(node, [])

    def _hand_over(self, node: NodeId, incarnation: int, event: Any) -> None:
        self._counter += 1
        self._queue.append((self.now, self._counter, node, incarnation, event))
        self._step()

    def tell(self, node: NodeId, event: Any, delay: Time = 0) -> None:
        """At once: what is done to a node is no message on its way."""
        self._hand_over(node, self.places[node].incarnation, event)

    def _schedule(self, delay: Time, node: NodeId, incarnation: int, event: Any) -> None:
        self._counter += 1
        if node == NO_NODE:
            self._calls.append((self.now + delay, self._counter, event))
            return
        sender = event.sender if isinstance(event, Received) else NO_NODE
        entry = (sender, incarnation, event)
        if type(event) is tuple:
            self._drop_timer(node, event[0])
        if delay > 0:
            self.later.append((self.now + delay, self._counter, node, entry))
        else:
            self.next_due.setdefault(node, []).append(entry)

    def _drop_timer(self, node: NodeId, timer: Any) -> None:
        """It was set again: the one before is none any more."""

        def is_other(entry: Entry) -> bool:
            return type(entry[2]) is not tuple or entry[2][0] != timer

        for due in (self.now_due, self.next_due, self.late):
            if node in due:
                due[node] = [entry for entry in due[node] if is_other(entry)]
        self.later = [entry for entry in self.later if entry[2] != node or is_other(entry[3])]

    def _do_calls(self) -> None:
        while due := sorted(call[:2] for call in self._calls if call[0] <= self.now):
            first = next(call for call in self._calls if call[:2] == due[0])
            self._calls.remove(first)
            first[2]()


def _sender(entry: Entry) -> tuple[bool, NodeId]:
    """Messages by sender, then what comes from the node itself."""
    return entry[0] == NO_NODE, entry[0]


def _build_ordered(world: World, scenario: Scenario, places: Mapping[Label, NodeId]) -> OrderedPopulation:
    return OrderedPopulation(world, scenario.protocol_config(), choose_links, places, contacts=1)


ORDERED = Kind("ordered", _build_ordered, Monitors)


class OrderedRun(Run):
    """A scenario whose order is given: events happen before a step, and delays are named."""

    def __init__(
        self, scenario: Scenario, seed: int = 0, write: Callable[[str], None] | None = None, **rest: Any
    ) -> None:
        super().__init__(scenario, seed, write, **{**rest, "kind": ORDERED})

    def _make_world(self, scenario: Scenario, places: dict[Name, NodeId]) -> World:
        network = scenario.network_model(places)
        return OrderedWorld(self.outcome.seed, Network(constant(0), detection=network.detection), self._writer)

    def prepare(self) -> None:
        """The world as it is before anything happens."""
        self.set_up()
        self._run_to(to_time(SETTLING_S, 1_000_000))

    def go(self) -> Outcome:
        self.prepare()
        world, order = self.world, self.scenario.order
        assert isinstance(world, OrderedWorld)
        world.order(order.choices if order is not None else (), map(self._action, self.scenario.events))
        self._run_until_settled()
        return self._conclude()

    def _action(self, event: EventSpec) -> tuple[int, Callable[[], None]]:
        self._left += 1

        def happen() -> None:
            self._left -= 1
            self._do(event, None)

        return event.step or 0, happen

"""Runs a scenario: sets the world up, lets things happen at their time or stage, watches, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from omen.design import ALGORITHMS, resolve_options
from omen.errors import InvalidInput
from omen.interests import Interests, Label
from omen.overlay import Overlay
from omen.protocol.events import (
    MILLISECOND,
    SECOND,
    NodeId,
    PeerLost,
    RepairFinished,
    RepairStage,
    RepairStageEntered,
    Time,
)
from omen.protocol.membership.ring import SPACE, place_of
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId
from omen.sim.expectations import Repair, examine
from omen.sim.kinds import OMEN, Kind
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.roles import find_role
from omen.sim.scenario import COORDINATOR, Action, EventSpec, Expectation, Name, Scenario, drawn_names, to_time
from omen.sim.trace import TraceWriter
from omen.sim.watch import JOINED, Violation
from omen.sim.world import Heard, World, generator_for
from omen.workloads import generate_interests

CHECK_EVERY = 100 * MILLISECOND
ToMember = Literal[Action.CRASH, Action.LEAVE, Action.RESUBSCRIBE, Action.SUSPECT, Action.PAUSE, Action.RESUME]
"""What happens to one node that is a member."""


@dataclass(slots=True)
class Outcome:
    """What came of a run. It went well if nothing was violated and every expectation met."""

    seed: int
    end: Time = 0
    settled: bool = False
    split: list[Label] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    restored: list[Time] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    processed: int = 0
    rejoins: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    fingerprint: str | None = None

    @property
    def went_well(self) -> bool:
        return not self.violations and not self.failures and not self.split

    def complaints(self) -> list[str]:
        """Everything that went wrong, a line each."""
        lines = [*map(str, self.violations), *self.failures]
        if self.split and not lines:
            lines.append(f"split at the end: {', '.join(map(str, self.split))}")
        return lines


class Run:
    """A scenario under way. `write` gets the trace line by line; `fingerprint` also without it.

    `hasty`: over as soon as something does not hold.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        write: Callable[[str], None] | None = None,
        everything: bool = False,
        fingerprint: bool = False,
        kind: Kind = OMEN,
        hasty: bool = False,
    ) -> None:
        self.scenario = scenario
        self._hasty = hasty
        self.outcome = Outcome(seed)
        places = _places(scenario)
        names: dict[NodeId, Label] = {node: name for name, node in places.items()}
        topics: dict[int, Label] = {}
        self._writer = TraceWriter(names, topics, write, everything) if write is not None or fingerprint else None
        self.world = self._make_world(scenario, places)
        self.population: Population = kind.build(self.world, scenario, dict(places.items()))
        self.population.topic_labels = topics
        self.monitors: Monitors = kind.watch(self.population, scenario.monitor_bounds())
        self.world.listeners.append(self._hear)
        self._shadows: dict[EventId, tuple[NodeId, ...]] = {}
        self._triggers: list[EventSpec] = []
        self._left = 0
        self._prepare()

    def _prepare(self) -> None:
        """For runs that add to this one: everything is made, and nothing has begun."""

    def _make_world(self, scenario: Scenario, places: dict[Name, NodeId]) -> World:
        return World(self.outcome.seed, scenario.network_model(places), self._writer)

    def go(self) -> Outcome:
        """Everything, to the end."""
        self.set_up()
        for expectation in self.scenario.expect:
            self._left += 1
            self.world.call(to_time(expectation.by, SECOND), self._examination(expectation))
        for burst in sorted({0, *(event.burst for event in self.scenario.events)}):
            for event in self.scenario.events:
                if event.burst == burst and event.at is not None:
                    self._do_later(event, to_time(event.at, SECOND))
            self._triggers = [event for event in self.scenario.events if event.burst == burst and event.on is not None]
            if self.scenario.until_s is None and not self._is_enough:
                self._run_until_settled()
        if self.scenario.until_s is not None:
            self._run_to(to_time(self.scenario.until_s, SECOND))
        return self._conclude()

    def set_up(self) -> None:
        """All nodes are there, and linked."""
        interests = _interests(self.scenario, self.world.seed)
        self.population.set_up(interests, _overlay(self.scenario, interests))

    def _run_to(self, end: Time) -> None:
        while self.world.now < end:
            self.world.run_until(min(end, self.world.now + CHECK_EVERY))
            self.monitors.check()

    @property
    def pending(self) -> tuple[EventSpec, ...]:
        """What waits for a stage of a repair that none has entered."""
        return tuple(self._triggers)

    @property
    def _is_enough(self) -> bool:
        """What is in pieces that nothing explains may still be joined by chance: that alone is not the end."""
        return self._hasty and any(violation.monitor != JOINED for violation in self.monitors.violations)

    def _run_until_settled(self) -> None:
        bounds = self.monitors.bounds
        patience = max(bounds.connected, bounds.handled, bounds.idle) + SECOND
        while self._left or not self.monitors.is_settled:
            waited = max(self.world.now - self.monitors.last_event, (self.world.now - self.monitors.last_cause) // 3)
            if (not self._left and waited > patience) or self._is_enough:
                return
            self._run_to(self.world.now + CHECK_EVERY)

    def _conclude(self) -> Outcome:
        outcome, world = self.outcome, self.world
        outcome.end = world.now
        outcome.settled = self.monitors.is_settled
        outcome.split = self.monitors.split_topics()
        outcome.violations = self.monitors.violations
        outcome.restored = self.monitors.restored
        outcome.messages = dict(sorted(world.messages.items()))
        outcome.bytes = dict(sorted(world.bytes.items()))
        outcome.processed = world.processed
        outcome.rejoins = self.monitors.rejoins
        outcome.refused = self.monitors.refused()
        outcome.fingerprint = self._writer.fingerprint() if self._writer is not None else None
        return outcome

    def hold_open(self, delay: Time) -> None:
        """Do not end before this time has passed: something will be done from outside."""
        self._left += 1
        self.world.call(delay, self._let_go)

    def _let_go(self) -> None:
        self._left -= 1

    def _do_later(self, event: EventSpec, delay: Time, coordinator: NodeId | None = None) -> None:
        self._left += 1

        def happen() -> None:
            self._left -= 1
            self._do(event, coordinator)

        self.world.call(delay, happen)

    def _do(self, event: EventSpec, coordinator: NodeId | None) -> None:
        """One event of the scenario, now."""
        population, monitors, action = self.population, self.monitors, event.action
        name = getattr(event, action)
        if name == COORDINATOR and coordinator is not None:
            name = str(population.labels[coordinator])
        elif event.topic is not None:
            name = find_role(population, event.crash or "", event.topic)
            if name is None:
                return
        match action:
            case Action.JOIN:
                self._join(event, name)
            case Action.SCRAMBLE:
                monitors.note_scramble()
                self._scramble(name)
            case Action.PARTITION:
                sides = [[population.place(member) for member in group] for group in name]
                monitors.note_cut(sides)
                self.world.partition(sides)
            case Action.MUTE:
                self.world.mute((population.place(one), population.place(other)) for one, other in name)
            case Action.HEAL:
                monitors.note_cut(())
                self.world.heal()
            case Action.MEET:
                monitors.note_burst()
                population.meet(*name)
            case _:
                if population.place(name) in population.members():
                    self._do_to_member(action, name, event)

    def _do_to_member(self, action: ToMember, name: Name, event: EventSpec) -> None:
        population, monitors = self.population, self.monitors
        node = population.place(name)
        incarnation = population.cores[node].ref.incarnation
        match action:
            case Action.CRASH:
                monitors.note_end(node, incarnation)
                population.crash(name)
            case Action.LEAVE:
                monitors.expect(EventId(node, incarnation, EventKind.LEAVE))
                population.leave(name)
            case Action.RESUBSCRIBE:
                monitors.note_burst()
                population.resubscribe(name, event.topics or ())
                self.world.call(0, lambda: monitors.expect_requests(node))
            case Action.SUSPECT:
                monitors.note_burst()
                if population.place(event.by or "") in population.members():
                    self.world.tell(population.place(event.by or ""), PeerLost(node, incarnation))
            case Action.PAUSE:
                monitors.note_burst()
                self.world.pause(node)
            case Action.RESUME:
                monitors.note_burst()
                self.world.resume(node)
            case _:
                assert_never(action)

    def _join(self, event: EventSpec, name: Name) -> None:
        if self.population.place(name) in self.population.members():
            return
        if event.alone:
            self.monitors.note_scramble()  # until the clusters meet, topics are split and no event explains it
            self.population.begin_alone(name, event.topics or ())
            return
        node = self.population.join(name, event.topics or (), event.through)
        self.monitors.expect(EventId(node, self.population.cores[node].ref.incarnation, EventKind.JOIN))

    def _scramble(self, share: float) -> None:
        """Take a share of the links away at both ends without a word, as no protocol would."""
        links = sorted(self.population.links())
        for one, other in generator_for(self.world.seed, "scramble", self.world.now).sample(
            links, round(share * len(links))
        ):
            self.population.cores[one].drop_link(other)
            self.population.cores[other].drop_link(one)

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, RepairStageEntered):
            if heard.stage is RepairStage.LINKING:
                self._shadows[heard.event] = heard.members
            self._pull_triggers(node, heard.event, heard.stage)
        elif isinstance(heard, RepairFinished):
            self._note_repair(node, heard.event, heard.links, time)

    def _note_repair(self, node: NodeId, event: EventId, made: tuple[tuple[NodeId, NodeId], ...], time: Time) -> None:
        def name(member: NodeId) -> Label:
            return self.population.labels.get(member, str(member))

        shadow = tuple(name(member) for member in self._shadows.pop(event, ()))
        links = tuple((name(one), name(other)) for one, other in made)
        self.outcome.repairs.append(Repair(time, event, name(event.node), name(node), shadow, links))

    def _pull_triggers(self, node: NodeId, event: EventId, stage: RepairStage) -> None:
        pulled: list[EventSpec] = []
        for trigger in list(self._triggers):
            # The same trigger twice is for the next coordinator that gets as far.
            if trigger.on == stage and trigger not in pulled and self.population.place(trigger.of or "") == event.node:
                pulled.append(trigger)
                self._triggers.remove(trigger)
                if trigger.after_ms:
                    self._do_later(trigger, to_time(trigger.after_ms, MILLISECOND), node)
                else:
                    self._do(trigger, node)

    def _examination(self, expectation: Expectation) -> Callable[[], None]:
        def look() -> None:
            self._left -= 1
            for complaint in examine(self.population, self.monitors, self.outcome.repairs, expectation):
                self.outcome.failures.append(f"{expectation.by:.3f} s: {complaint}")

        return look


def run_scenario(scenario: Scenario, seed: int = 0) -> Outcome:
    """Run a scenario without a trace."""
    return Run(scenario, seed).go()


def _places(scenario: Scenario) -> dict[Name, NodeId]:
    """Where all nodes stand that are named: as given, else by the hash of the name."""
    given = {name: spec.place for name, spec in scenario.nodes.items()}
    given |= dict.fromkeys(drawn_names(scenario.drawn)) if scenario.drawn is not None else {}
    for event in scenario.events:
        if event.join is not None and (event.place is not None or event.join not in given):
            given[event.join] = event.place
    places: dict[NodeId, Name] = {}
    for name, place in given.items():
        node = place_of(name) if place is None else place % SPACE
        if node in places:
            raise InvalidInput(f"{name!r} stands on the ring where {places[node]!r} does")
        places[node] = name
    return {name: node for node, name in places.items()}


def _interests(scenario: Scenario, seed: int) -> Interests:
    drawn = scenario.drawn
    if drawn is None:
        pairs = [(name, topic) for name, spec in scenario.nodes.items() for topic in spec.topics]
        return Interests.from_pairs(pairs, nodes=list(scenario.nodes))
    sizes = drawn.sizes or f"uniform:1:{min(6, drawn.topics)}"
    interests = generate_interests(drawn.nodes, drawn.topics, drawn.popularity, sizes, seed)
    names = drawn_names(drawn)
    return Interests.from_pairs([(names[int(node)], f"t{topic}") for node, topic in interests.pairs()], nodes=names)


def _overlay(scenario: Scenario, interests: Interests) -> Overlay:
    spec = scenario.overlay
    if spec.links is not None:
        return Overlay.from_links(interests.nodes, spec.links)
    algorithm = ALGORITHMS.get(spec.algorithm)
    if algorithm is None:
        raise InvalidInput(f"there is no algorithm {spec.algorithm!r} (known: {', '.join(ALGORITHMS)})")
    return algorithm.build(interests, **resolve_options(algorithm, {}))

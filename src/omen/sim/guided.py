"""Search that is guided by coverage: worlds that reach what is rarely reached are changed a little, and run again.

What counts is a *combination*: a message is taken while a repair of some kind of event is at some stage, at the node
that takes the message or at the one that sent it. A world that reaches a combination few others did is kept, and the
rarer its combinations the more often it is changed: another seed, another moment or node for an event, a crash for a
leave, a crash at another stage, another network. A change never adds to how much happens at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import get_args

from omen.protocol.events import NodeId, Received, RepairFinished, RepairStage, RepairStageEntered, Time
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import AUDIT, FAILURE_DETECTION, AnyMessage
from omen.sim.guided_changes import change_scenario
from omen.sim.running import Outcome, Run
from omen.sim.scenario import Name, Scenario
from omen.sim.search import Search, is_split, time_limit
from omen.sim.shrinking import Shrunk, shrink
from omen.sim.world import Heard, World, generator_for

Combination = tuple[str, str, str]
"""(stage of a repair, message, kind of the event that is repaired)."""

KEPT_AT_MOST = 200
FRESH = 3
"""Of so many worlds one is drawn from a seed of its own; the others are changes of kept ones."""
PATIENCE_S = 90.0
COUNTED = frozenset({kind.__name__ for kind in get_args(AnyMessage)} - {*AUDIT, *FAILURE_DETECTION})
REPAIRED = (EventKind.JOIN, EventKind.LEAVE, EventKind.ADD, EventKind.DROP)


def all_combinations() -> list[Combination]:
    """What could be reached, if every message came at every stage of the repair of every kind of event."""
    return [
        (str(stage), message, str(kind)) for stage in RepairStage for message in sorted(COUNTED) for kind in REPAIRED
    ]


class Coverage:
    """The combinations of one run."""

    def __init__(self) -> None:
        self.reached: set[Combination] = set()
        self._under_way: dict[NodeId, tuple[str, str]] = {}

    def note_input(self, _: Time, node: NodeId, what: object) -> None:
        """As the tracer of a world."""
        if type(what) is Received and self._under_way:
            repair = self._under_way.get(node) or self._under_way.get(what.sender)
            message = type(what.message).__name__
            if repair is not None and message in COUNTED:
                self.reached.add((repair[0], message, repair[1]))

    def hear(self, node: NodeId, heard: Heard, _: Time) -> None:
        """As a listener of a world."""
        if isinstance(heard, RepairStageEntered):
            self._under_way[node] = (str(heard.stage), str(heard.event.kind))
        elif isinstance(heard, RepairFinished):
            self._under_way.pop(node, None)


class CoveredRun(Run):
    """A run that also says which combinations it reached."""

    coverage: Coverage

    def _make_world(self, scenario: Scenario, places: dict[Name, NodeId]) -> World:
        self.coverage = Coverage()
        world = World(self.outcome.seed, scenario.network_model(places), self.coverage.note_input)
        world.listeners.append(self.coverage.hear)
        return world


@dataclass(slots=True)
class KeptWorld:
    """A world that reached something rare."""

    scenario: Scenario
    seed: int
    reached: frozenset[Combination]


@dataclass(frozen=True, slots=True)
class GuidedWorld:
    """What came of one world. `fresh`: it was drawn, not changed from another."""

    scenario: Scenario
    seed: int
    fresh: bool
    went_well: bool
    split: bool
    steps: int
    new: int
    complaints: tuple[str, ...] = ()
    raised: str = ""


@dataclass(slots=True)
class GuidedSearch:
    """`reached`: in how many worlds each combination was. The same seeds give the same worlds."""

    search: Search
    seeds: Sequence[int]
    reached: Counter[Combination] = field(default_factory=Counter)
    kept: list[KeptWorld] = field(default_factory=list)

    def worlds(self, seconds: float = float("inf")) -> Iterator[GuidedWorld]:
        """As many worlds as there are seeds, unless the processor time is over."""
        random = generator_for(self.seeds[0], "guided", *self.search.without)
        until = time.process_time() + seconds
        fresh = iter(self.seeds)
        for number in range(len(self.seeds)):
            if time.process_time() > until:
                return
            drawn = number % FRESH == 0 or not self.kept
            seed = next(fresh) if drawn else random.randrange(1 << 32)
            scenario = self.search.scenario(seed) if drawn else self._changed(random)
            yield self._run(scenario, seed, drawn)

    def never_reached(self) -> list[Combination]:
        return [combination for combination in all_combinations() if combination not in self.reached]

    def _changed(self, random: Random) -> Scenario:
        weights = [max(1 / self.reached[one] for one in world.reached) for world in self.kept]
        one, other = random.choices(self.kept, weights, k=2)
        return change_scenario(one.scenario, other.scenario, random)

    def _run(self, scenario: Scenario, seed: int, fresh: bool) -> GuidedWorld:
        run = CoveredRun(scenario, seed)
        try:
            with time_limit(PATIENCE_S):
                outcome = run.go()
        except Exception as error:
            raised = type(error).__name__
            return GuidedWorld(scenario, seed, fresh, False, False, 0, 0, (f"{raised}: {error}",), raised)
        reached = run.coverage.reached
        new = sum(one not in self.reached for one in reached)
        self.reached.update(reached)
        if reached and (new or min(self.reached[one] for one in reached) <= 2):
            self._keep(KeptWorld(scenario, seed, frozenset(reached)))
        return _summary(scenario, seed, fresh, new, outcome)

    def _keep(self, world: KeptWorld) -> None:
        self.kept.append(world)
        if len(self.kept) > KEPT_AT_MOST:
            commonest = max(self.kept, key=lambda one: min(self.reached[reached] for reached in one.reached))
            self.kept.remove(commonest)


def _summary(scenario: Scenario, seed: int, fresh: bool, new: int, outcome: Outcome) -> GuidedWorld:
    complaints = tuple(outcome.complaints()[:6]) or (() if outcome.settled else ("never came to rest",))
    went_well = outcome.went_well and outcome.settled
    return GuidedWorld(scenario, seed, fresh, went_well, is_split(outcome), outcome.processed, new, complaints)


def shrink_guided(world: GuidedWorld) -> Shrunk:
    """The smallest world found that fails in the same way."""

    def fails(scenario: Scenario, seed: int) -> bool:
        try:
            with time_limit(PATIENCE_S):
                outcome = Run(scenario, seed, hasty=True).go()
        except Exception as error:
            return type(error).__name__ == world.raised
        if world.raised:
            return False
        return is_split(outcome) if world.split else not outcome.went_well or not outcome.settled

    return shrink(world.scenario, world.seed, fails)


def by_stage(combinations: Sequence[Combination]) -> dict[str, list[str]]:
    """Combinations by stage and event: the messages of each."""
    rows: dict[str, list[str]] = {}
    for stage, message, kind in combinations:
        rows.setdefault(f"{stage}, {kind}", []).append(message)
    return {name: sorted(messages) for name, messages in sorted(rows.items())}

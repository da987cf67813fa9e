"""Explores a small world: every order of deliveries and timers up to a number of delays, every moment for each event.

The same nodes as everywhere, in the world of `explore_world`. At each step the input that is next is taken, or delayed,
or an event of the scenario happens. A state is what all nodes are, hold and are about to be given, the time, and the
events to come; it is kept as a number of 64 bits, as TLC does, with the delays that were left. One that was met with as
many delays left, or more, is not gone into again.

What need not be tried (partial-order reduction): nodes in another order within a round, for what they are given does
not change by that; an event in the middle of a round, unless its own node is about to take an input; an event just
after a delay, which is as if it had come just before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgspec

from omen.protocol.events import SECOND, RepairStage
from omen.protocol.messages.overlay import AUDIT, FAILURE_DETECTION, AnyMessage
from omen.sim.explore_model import DELAY, LOSE, Budget, Model, State, with_steps
from omen.sim.scenario import OrderSpec, Scenario

PATIENCE = 15 * SECOND
"""A world at rest in which something is not as it should be has so long to become so."""
LIMIT = 60 * SECOND
"""A world comes to rest within this, from its first event on."""


REPAIR_MESSAGES = {kind.__name__ for kind in get_args(AnyMessage)} - {*AUDIT, *FAILURE_DETECTION}
"""The messages of membership and repair, which are there whether heartbeats and the audit are on or not."""
WORDS: dict[int, Literal["delay", "lose"]] = {DELAY: "delay", LOSE: "lose"}

Trail = tuple["Trail | None", int, int]
"""How a state was reached: (the trail before, at which step, which choice)."""


@dataclass(slots=True)
class Found:
    """What an exploration came to. `complete`: nothing within the bound was left out."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    depth: int = 0
    core_states: int = 0
    core_steps: int = 0
    complete: bool = True
    seconds: float = 0.0
    stages: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    complaint: str | None = None
    failure: Scenario | None = None


class Exploration:
    """Goes into all that can happen, depth first."""

    def __init__(
        self, scenario: Scenario, budget: Budget, seconds: float = float("inf"), model: Model | None = None
    ) -> None:
        self.model = model or Model(scenario)
        self._scenario = scenario
        self._budget = budget
        self._until = time.process_time() + seconds
        self._met: dict[int, int] = {}
        self._fine: set[int] = set()

    def go(self) -> Found:
        """Until all is seen, something fails, or the time is over."""
        started = time.process_time()
        found, model = Found(), self.model
        stack: list[tuple[State, Budget, bool, int, Trail | None]] = [(model.first, self._budget, False, 0, None)]
        limit = model.first.clock + LIMIT
        while stack:
            state, budget, passed, step, trail = stack.pop()
            number = hash((state, passed, budget.losses))
            if self._met.get(number, -1) >= budget.delays:
                continue
            self._met[number] = budget.delays
            found.depth = max(found.depth, step)
            if found.transitions & 1023 == 0 and time.process_time() > self._until:
                found.complete = False
                break
            at_rest = model.is_at_rest(state)
            choices = list(model.choices(state, Budget(0) if at_rest else budget, passed))
            for choice in choices:
                found.transitions += 1
                before = (trail, step, choice)
                if choice == DELAY:
                    less = Budget(budget.delays - 1, budget.losses)
                    stack.append((model.pass_over(state, lost=False), less, True, step, before))
                elif choice == LOSE:
                    less = Budget(budget.delays, budget.losses - 1)
                    stack.append((model.pass_over(state, lost=True), less, True, step, before))
                else:
                    stack.append((model.happen(state, choice), budget, False, step, before))
            if at_rest and not choices:
                found.ends += 1
                found.complaint = self._judge(state)
            elif state.clock > limit:
                found.complaint = "never came to rest"
            elif not at_rest:
                found.transitions += 1
                stack.append((model.take(state), budget, False, step + 1, trail))
            if found.complaint is not None:
                found.failure = self.as_scenario(trail)
                break
        found.states, found.seconds = len(self._met), time.process_time() - started
        found.core_states, found.core_steps = len(model.cores.states), model.cores.steps
        found.stages, found.messages = model.cores.stages, model.cores.taken
        return found

    def _judge(self, state: State) -> str | None:
        """A world at rest is fine at once, or after a while without any event: what is lost is said again."""
        complaint, until = self.model.complaint(state), state.clock + PATIENCE
        passed = []
        while complaint is not None and state.clock <= until:
            number = hash(state)
            if number in self._fine:
                return None
            passed.append(number)
            state = self.model.take(state)
            if self.model.is_at_rest(state):
                complaint = self.model.complaint(state)
        if complaint is None:
            self._fine.update(passed)
        return complaint

    def as_scenario(self, trail: Trail | None) -> Scenario:
        """The same run again, as `omen simulate` runs it."""
        choices: list[tuple[int, int]] = []
        while trail is not None:
            trail, step, choice = trail
            choices.append((step, choice))
        choices.reverse()
        order = tuple((step, WORDS[choice]) for step, choice in choices if choice in WORDS)
        plain = with_steps(self._scenario.events)
        events = [msgspec.structs.replace(plain[choice], step=step) for step, choice in choices if choice not in WORDS]
        return msgspec.structs.replace(self._scenario, order=OrderSpec(order), events=tuple(events))


def explore_world(scenario: Scenario, budget: tuple[int, int], seconds: float) -> Found:
    """All that can happen in one world, with so many delays and losses, within so much processor time."""
    return Exploration(scenario, Budget(*budget), seconds).go()


def total_found(found: Sequence[Found]) -> dict[str, Any]:
    """Counts over all worlds, and what was met in any of them."""
    stages, messages = ({word for one in found for word in getattr(one, name)} for name in ("stages", "messages"))
    return {
        "worlds": len(found),
        "complete": sum(one.complete and one.failure is None for one in found),
        "failures": sum(one.failure is not None for one in found),
        "states": sum(one.states for one in found),
        "transitions": sum(one.transitions for one in found),
        "ends": sum(one.ends for one in found),
        "depth": max((one.depth for one in found), default=0),
        "node_states": sum(one.core_states for one in found),
        "node_steps": sum(one.core_steps for one in found),
        "processor_s": round(sum(one.seconds for one in found), 1),
        "stages": [str(stage) for stage in RepairStage if stage in stages],
        "stages_not_reached": [str(stage) for stage in RepairStage if stage not in stages],
        "messages": sorted(messages),
        "messages_not_reached": sorted(REPAIR_MESSAGES - messages),
    }

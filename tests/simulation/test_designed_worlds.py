"""What random worlds hold by chance, here by design: coordinators lost at each step, joins before them, every L."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from omen.sim.drawing import Draft, draw_scenario
from omen.sim.running import Run
from omen.sim.scenario import COORDINATOR, DRAWN_STAGES, EventSpec, Scenario
from omen.sim.world import generator_for

COVERAGES = (0, 1, 5)
KILLS = [(step, resilience, coverage) for step, resilience, coverage in product(DRAWN_STAGES, (2, 3, 4), COVERAGES)]
JOINS = [(resilience, coverage, seed) for resilience, coverage, seed in product((2, 3, 4), COVERAGES, range(2))]


def make_world(number: int, resilience: int, coverage: int) -> tuple[Scenario, Draft]:
    """A small world of these settings in which nothing happens yet, and who is to make it happen."""
    draft = Draft(generator_for(number, "designed"), (4, 12), (10, 24))
    plain = draw_scenario(number)
    config = msgspec.structs.replace(plain.config, resilience=resilience, coverage=coverage)
    return msgspec.structs.replace(plain, name=f"designed {number}", nodes=draft.nodes, config=config), draft


def run(scenario: Scenario, events: list[EventSpec], seed: int) -> int:
    """Run it; all must heal. How many of the events took place."""
    ready = msgspec.structs.replace(scenario, events=tuple(events))
    going = Run(ready, seed)
    outcome = going.go()
    assert outcome.went_well and outcome.settled, "\n".join(outcome.complaints())
    return len(ready.events) - len(going.pending)


@pytest.mark.parametrize(("step", "resilience", "coverage"), KILLS)
def test_the_coordinators_are_lost_at_a_step_of_their_work(step: str, resilience: int, coverage: int) -> None:
    """L - 1 of them, one after the other, each as soon as it gets there."""
    number = KILLS.index((step, resilience, coverage))
    scenario, draft = make_world(number, resilience, coverage)
    lost = draft.lose_one()
    events = [EventSpec(1, 0.1, crash=lost)]
    events += [EventSpec(1, on=step, of=lost, after_ms=0.0, crash=COORDINATOR)] * (resilience - 1)
    assert run(scenario, events, number) == len(events), "a coordinator was not lost"


@pytest.mark.parametrize(("resilience", "coverage", "seed"), JOINS)
def test_a_node_joins_between_a_lost_node_and_its_coordinator(resilience: int, coverage: int, seed: int) -> None:
    number = JOINS.index((resilience, coverage, seed))
    scenario, draft = make_world(number, resilience, coverage)
    draft.join_between(1, 0.2)
    assert run(scenario, draft.events, number) == 2

"""Exploring small worlds: what is left out is none that matters, what is found replays, and faults are found."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from commands import run, run_json
from omen.sim.explore import Exploration
from omen.sim.explore_model import DELAY, Budget, Model, State
from omen.sim.explore_world import OrderedRun
from omen.sim.explore_worlds import small_worlds
from omen.sim.reading import parse_scenario
from omen.sim.scenario import EventSpec, OrderSpec, Scenario
from omen.sim.writing import write_scenario

ONE_CRASH = next(world for world in small_worlds(3, 1) if world.name == "3 nodes: crash n2")
TWO = next(world for world in small_worlds(3, 2) if world.name == "3 nodes: leave n1, crash n2")


def ends_of(model: Model, state: State) -> tuple[int, ...]:
    return tuple(record.core for record in state.nodes)


class AllEnds(Exploration):
    """Keeps the states in which the world comes to rest; one of them may be a fault that was planted."""

    def __init__(self, model: Model, delays: int, planted: tuple[int, ...] | None = None) -> None:
        super().__init__(model.scenario, Budget(delays), model=model)
        self.ends: set[tuple[int, ...]] = set()
        self._planted = planted

    def _judge(self, state: State) -> str | None:
        end = ends_of(self.model, state)
        self.ends.add(end)
        return "the planted fault" if end == self._planted else super()._judge(state)


def ends_without_reduction(model: Model, delays: int) -> set[tuple[int, ...]]:
    """Any node next, an event at any moment, each state gone into once for each number of delays left."""
    ends: set[tuple[int, ...]] = set()
    met: set[tuple[State, int]] = set()
    stack = [(model.first, delays)]
    while stack:
        state, left = stack.pop()
        if (state, left) in met:
            continue
        met.add((state, left))
        events = [event for event in state.left if model.makes_sense(state, event)]
        stack += [(model.happen(state, event), left) for event in events]
        if model.is_at_rest(state):
            if not events:
                ends.add(ends_of(model, state))
            continue
        for position, record in enumerate(state.nodes):
            if record.now:
                stack.append((model.take(state, position), left))
                if left and model.can_wait(record):
                    stack.append((model.pass_over(state, False, position), left - 1))
    return ends


@pytest.mark.parametrize(("world", "delays"), [(ONE_CRASH, 1), (ONE_CRASH, 2), (TWO, 0)])
def test_the_reduction_hides_no_end(world: Scenario, delays: int) -> None:
    model = Model(world)
    reduced = AllEnds(model, delays)
    assert reduced.go().complaint is None
    assert reduced.ends == ends_without_reduction(model, delays)


def test_a_fault_planted_at_exactly_the_bound_is_found_there_and_not_before() -> None:
    """An end that takes three delays to reach, no matter which way: with two nobody gets there."""
    model = Model(ONE_CRASH)
    nearer, further = AllEnds(model, 2), AllEnds(model, 3)
    nearer.go()
    further.go()
    only_at_three = further.ends - nearer.ends
    assert only_at_three
    planted = min(only_at_three)
    assert AllEnds(model, 2, planted).go().complaint is None
    found = AllEnds(model, 3, planted).go()
    assert found.complaint == "the planted fault"
    assert found.failure is not None and found.failure.order is not None
    assert [word for _, word in found.failure.order.choices] == ["delay"] * 3


@pytest.mark.parametrize("seed", range(6))
def test_a_world_of_values_and_one_of_live_nodes_do_the_same(seed: int) -> None:
    """Any way through the one, written as a scenario, leads to the same links in the other."""
    random = Random(seed)
    exploration = Exploration(random.choice(list(small_worlds(4, 2))), Budget(3, 1))
    model, budget, passed, step = exploration.model, Budget(3, 1), False, 0
    state, trail = model.first, None
    while not model.is_at_rest(state) or state.left:
        at_rest = model.is_at_rest(state)
        choices = list(model.choices(state, Budget(0) if at_rest else budget, passed))
        if not choices and at_rest:
            break
        if not choices or (not at_rest and random.random() < 0.9):
            state, passed, step = model.take(state), False, step + 1
            continue
        choice = random.choice(choices)
        trail = (trail, step, choice)
        if choice >= 0:
            state, passed = model.happen(state, choice), False
        else:
            passed = True
            budget = Budget(budget.delays - (choice == DELAY), budget.losses - (choice != DELAY))
            state = model.pass_over(state, lost=choice != DELAY)
    run = OrderedRun(exploration.as_scenario(trail))
    run.go()
    live = {
        node: core.links().keys() for node, core in run.population.cores.items() if node in run.population.members()
    }
    facts = {
        model.ids[position]: {link[0] for link in model.cores.states[record.core - 1].links}
        for position, record in enumerate(state.nodes)
        if record.core
    }
    assert live == facts


def world(nodes: int, *events: EventSpec, coverage: int = 1) -> Scenario:
    given = next(small_worlds(nodes, 1))
    config = msgspec.structs.replace(given.config, coverage=coverage)
    return msgspec.structs.replace(given, events=events, config=config)


CRASH = EventSpec(step=0, crash="n2")
JOIN = EventSpec(step=0, join="x", topics=("a",), place=5555, through="n4")
REMEDIES = [
    ("linked_losses_as_one", world(4, CRASH, EventSpec(step=0, crash="n3")), Budget(0)),
    ("redo_unconfirmed", world(4, CRASH), Budget(0, 1)),
    ("links_agreed_by_both", world(4, CRASH), Budget(0, 2)),
]


@pytest.mark.parametrize(("remedy", "scenario", "budget"), REMEDIES, ids=[remedy for remedy, _, _ in REMEDIES])
def test_a_remedy_that_is_switched_off_is_missed_and_the_failure_replays(
    remedy: str, scenario: Scenario, budget: Budget
) -> None:
    found = Exploration(scenario.without(remedy), budget).go()
    assert found.complaint == "at rest, and split: a"
    assert found.failure is not None
    again = parse_scenario(write_scenario(found.failure))
    assert OrderedRun(again).go().split == ["a"]
    assert Exploration(scenario, budget).go().complaint is None


def test_two_neighbours_that_leave_at_once_are_repaired_once() -> None:
    """Before, each asked again as long as the other was there: 34 repairs, until a timer ended it."""
    leaves = EventSpec(step=0, leave="n2"), EventSpec(step=0, leave="n1")
    found = Exploration(world(3, *leaves), Budget(0)).go()
    assert found.complaint is None
    assert found.depth < 100
    outcome = OrderedRun(msgspec.structs.replace(world(3, *leaves), order=OrderSpec())).go()
    assert outcome.went_well and len(outcome.repairs) <= 2


def test_what_was_met_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = run_json(capsys, "simulate --explore --nodes 3 --kinds crash --delays 1")
    assert told["worlds"] == told["complete"] == 3
    assert {"asking", "linking", "finishing"} <= set(told["stages"])
    assert "ShadowReply" in told["messages"]


def test_a_failure_becomes_a_scenario_that_replays(tmp_path: Path) -> None:
    words = "simulate --explore --nodes 4 --events 2 --kinds crash --delays 0 --without linked_losses_as_one --stop"
    assert run(words, "--failures", tmp_path) == 1
    (path,) = tmp_path.iterdir()
    assert run("simulate", path) == 1


def test_worlds_too_large_to_go_through_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate --explore --nodes 99") == 2
    line = "omen: --nodes is 99: more than 8 cannot be gone through (--search can)\n"
    assert capsys.readouterr().err == line


def test_an_exploration_that_was_stopped_goes_on_with_the_worlds_that_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, keep = "simulate --explore --nodes 3 --kinds crash --delays 0", tmp_path / "kept.jsonl"
    whole = run_json(capsys, words, "--keep", keep)
    lines = [line for line in keep.read_bytes().splitlines() if line]
    assert len(lines) == 3
    keep.write_bytes(lines[0] + b"\n" + lines[1][: len(lines[1]) // 2])
    again = run_json(capsys, words, "--keep", keep)
    assert {name: again[name] for name in ("worlds", "complete", "states", "ends")} == {
        name: whole[name] for name in ("worlds", "complete", "states", "ends")
    }
    assert len([line for line in keep.read_bytes().splitlines() if line]) == 4
    assert run_json(capsys, words, "--keep", keep)["states"] == whole["states"]
    deeper = run_json(capsys, words.replace("--delays 0", "--delays 1"), "--keep", keep)
    assert deeper["states"] > whole["states"]


def test_an_exploration_that_has_not_seen_all_does_not_end_well(tmp_path: Path) -> None:
    words, keep = "simulate --explore --nodes 3 --kinds crash --delays 2 --seconds 0.000001", tmp_path / "kept.jsonl"
    assert run(words, "--keep", keep) == 1
    assert not keep.exists()

"""Random worlds: all heal, within L by repairs alone, beyond L by the audit."""

from __future__ import annotations

import pytest

from omen.sim.drawing import HARSH
from omen.sim.running import Outcome
from omen.sim.scenario import COORDINATOR, DRAWN_STAGES, ROLES, EventSpec, Scenario
from omen.sim.search import Search

WITHIN = range(60)
BEYOND = range(20)
PERIODS_TO_HEAL = 10  # of the audit, at most, until every topic is connected again; as a rule it is one or two


def judge(outcome: Outcome, seed: int, worlds: str) -> None:
    replay = f"replay: omen simulate --search --worlds {worlds} --seeds {seed}..{seed}"
    assert outcome.went_well, "\n".join([*outcome.complaints(), replay])
    assert outcome.settled, replay


@pytest.mark.parametrize("seed", WITHIN)
def test_up_to_l_events_at_a_time_heal_without_the_audit(seed: int) -> None:
    scenario = Search("within").scenario(seed)
    assert not scenario.config.audit
    judge(Search("within").run(seed), seed, "within")


@pytest.mark.parametrize("seed", BEYOND)
def test_more_than_that_heals_with_the_audit(seed: int) -> None:
    outcome = Search("beyond").run(seed)
    judge(outcome, seed, "beyond")
    period = Search("beyond").scenario(seed).protocol_config().audit_period
    assert max(outcome.restored) <= PERIODS_TO_HEAL * period


def test_the_worlds_within_hold_what_they_are_meant_to_hold() -> None:
    scenarios = [Search("within").scenario(seed) for seed in range(300)]
    events = [event for scenario in scenarios for event in scenario.events]
    actions = {event.action for event in events}
    assert actions == {"crash", "leave", "join", "resubscribe", "pause", "resume", "suspect", "partition", "heal"}
    assert {event.on for event in events if event.crash == COORDINATOR} == set(DRAWN_STAGES)
    assert {event.crash for event in events if event.topic is not None} == set(ROLES)
    assert {scenario.config.resilience for scenario in scenarios} == {1, 2, 3, 4}
    assert {scenario.config.coverage for scenario in scenarios} == {0, 1, 2, 3, 4, 5}
    assert 2 * sum((scenario.config.coverage or 0) <= 1 for scenario in scenarios) >= len(scenarios)
    sizes = [len(scenario.nodes) for scenario in scenarios]
    topics = [len({topic for spec in scenario.nodes.values() for topic in spec.topics}) for scenario in scenarios]
    assert min(sizes) == 8 and 55 <= max(sizes) <= 60
    assert min(topics) <= 6 and 35 <= max(topics) <= 40
    losses = [scenario.network.loss for scenario in scenarios]
    assert min(losses) == 0 and 0.04 < max(losses) <= 0.05
    assert {scenario.config.detector for scenario in scenarios} == {True, False}
    assert any(event.join in scenario.nodes for scenario in scenarios for event in scenario.events), "no node rejoins"


def weight(event: EventSpec) -> int:
    """A node that pauses or is suspected may be taken for gone and come back: two events. What ends them is none."""
    if event.action in ("pause", "suspect"):
        return 2
    return 0 if event.action in ("resume", "heal") else 1


def bursts(scenario: Scenario) -> list[list[EventSpec]]:
    numbers = sorted({event.burst for event in scenario.events})
    return [[event for event in scenario.events if event.burst == burst] for burst in numbers]


def test_no_burst_within_holds_more_than_it_should_survive() -> None:
    for seed in range(300):
        scenario = Search("within").scenario(seed)
        for events in bursts(scenario):
            assert 1 <= sum(map(weight, events)) <= (scenario.config.resilience or 0)
            assert sum(event.action == "partition" for event in events) <= 1
    assert len(HARSH) > 10


def test_every_world_beyond_holds_more() -> None:
    scenarios = [Search("beyond").scenario(seed) for seed in BEYOND]
    assert all(scenario.config.audit for scenario in scenarios)
    kinds = {event.action for scenario in scenarios for event in scenario.events}
    assert kinds == {"crash", "partition", "heal", "scramble"}
    cuts = [event.at or 0 for scenario in scenarios for event in scenario.events if event.heal]
    assert 2 * sum(cut >= 60 for cut in cuts) >= len(cuts)
    halves = [
        (len(events), len(scenario.nodes))
        for scenario in scenarios
        for events in bursts(scenario)
        if events[0].action == "crash"
    ]
    assert halves and all(lost >= before // 2 - 1 or lost >= 4 for lost, before in halves)

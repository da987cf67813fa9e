"""Small random worlds: up to L events at a time, coordinators killed at work, newcomers in between. All heal."""

from __future__ import annotations

import pytest

from omen.sim.scenario import COORDINATOR, STEPS
from omen.sim.search import BURSTS, draw_scenario, main, run_world

WORLDS = range(60)


@pytest.mark.parametrize("number", WORLDS)
def test_a_random_world_heals_from_everything(number: int) -> None:
    outcome = run_world(number)
    replay = f"replay: python -m omen.sim.search --world {number} --trace"
    assert outcome.went_well, "\n".join([*outcome.complaints(), replay])
    assert outcome.settled, replay


def test_the_worlds_hold_what_they_are_meant_to_hold() -> None:
    scenarios = [draw_scenario(number) for number in WORLDS]
    actions = {event.action for scenario in scenarios for event in scenario.events}
    assert actions == {"crash", "leave", "join", "resubscribe"}
    killed = {event.on for scenario in scenarios for event in scenario.events if event.crash == COORDINATOR}
    assert killed == set(STEPS)
    assert {scenario.config.resilience for scenario in scenarios} == {1, 2, 3, 4}
    assert {scenario.config.coverage for scenario in scenarios} == {0, 1, 2, 3, 4, 5}
    assert all(8 <= len(scenario.nodes) <= 40 for scenario in scenarios)
    assert any(event.join in scenario.nodes for scenario in scenarios for event in scenario.events), "nobody comes back"


def test_no_burst_holds_more_than_it_should_survive() -> None:
    for scenario in map(draw_scenario, WORLDS):
        for burst in range(1, BURSTS + 1):
            events = [event for event in scenario.events if event.burst == burst]
            assert 1 <= len(events) <= (scenario.config.resilience or 0)


def test_a_single_world_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--world", "3", "--trace"]) == 0
    assert "has mended the loss of" in capsys.readouterr().out

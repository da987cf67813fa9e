"""The running example of the OMen paper (section 4.4), told step by step."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from omen.sim.reading import read_scenario
from omen.sim.running import Run
from omen.sim.scenario import Scenario

SCENARIO = Path(__file__).parents[2] / "scenarios" / "paper-example.toml"
SHADOWS = "[v1 v3 v5 v6 v11]"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return read_scenario(SCENARIO)


def tell(scenario: Scenario, seed: int) -> tuple[list[str], list[str]]:
    """The lines of the repair without their times, and what was complained about."""
    lines: list[str] = []
    outcome = Run(scenario, seed, lines.append).go()
    return [line[14:] for line in lines if float(line[:13]) >= 20], outcome.complaints()


def test_the_example_goes_as_the_paper_tells_it_step_by_step(scenario: Scenario) -> None:
    lines, complaints = tell(scenario, seed=7)
    assert not complaints
    steps = [
        "v10 is told to leave",
        f"v11 repairs the loss of v10: gathering {SHADOWS}",
        f"v11 repairs the loss of v10: asking {SHADOWS}",
        f"v11 repairs the loss of v10: linking {SHADOWS}",
        "v1 is linked to v11",
        "v5 is linked to v6",
        "v5 is linked to v11",
        "v11 is linked to v1",
        "v6 is linked to v5",
        "v11 is linked to v5",
        f"v11 repairs the loss of v10: finishing {SHADOWS}",
        "v11 has repaired the loss of v10: v5-v11, v1-v11, v5-v6",
        "v10 sees the loss of v10 handled",
        "v10 has left",
    ]
    assert [line for line in lines if line in steps] == steps


def test_every_former_neighbour_is_asked_and_answers_once(scenario: Scenario) -> None:
    lines, _ = tell(scenario, seed=7)
    asked = sorted(line.split(" <- ")[0] for line in lines if " <- v11: ShadowQuery " in line)
    answered = sorted(line.split(" <- ")[1].split(":")[0] for line in lines if ": ShadowReply " in line)
    assert asked == answered == ["v1", "v3", "v5", "v6"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["leave", "crash"])
def test_the_example_does_not_hang_on_chance_nor_on_how_v10_departs(scenario: Scenario, how: str, seed: int) -> None:
    departure = msgspec.structs.replace(scenario.events[0], leave=None, crash=None)
    departure = msgspec.structs.replace(departure, **{how: "v10"})
    outcome = Run(msgspec.structs.replace(scenario, events=(departure,)), seed).go()
    assert outcome.complaints() == []
    (repair,) = outcome.repairs
    assert {frozenset(link) for link in repair.links} == {
        frozenset(link) for link in (("v11", "v1"), ("v11", "v5"), ("v5", "v6"))
    }

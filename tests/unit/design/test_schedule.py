"""What the rounds of a design may take, as a user writes it and as it is chosen."""

from __future__ import annotations

import math

import pytest

from omen.design.schedule import (
    Auto,
    Given,
    Profile,
    RoundFacts,
    Step,
    default_part_nodes,
    parse_schedule,
    read_seed,
    rho_of,
)
from omen.errors import InvalidInput

PROFILE = Profile(nodes=1000, components=12_000, sample_nodes=50, contributions=(*[10] * 5, *[4] * 95), max_degree=8)


def facts(step: Step, new_links: int, links: int, removed: int, left: int) -> RoundFacts:
    return RoundFacts(step, new_links, links, removed, left, 9)


def auto_step(least: int) -> Step:
    """What follows a round of this least contribution in Low-ODA."""
    step = Auto(PROFILE, 3.0).next_step([facts(Step(least), 1, 1, 1, 1)])
    assert step is not None
    return step


def test_a_schedule_reads_as_it_is_written() -> None:
    schedule = parse_schedule("m4c6,m3,r2c40")
    assert schedule == Given((Step(4, 6), Step(3), Step(2, 40, alike=False)))
    assert ",".join(map(str, schedule.steps)) == "m4c6,m3,r2c40"
    assert schedule.next_step([]) == Step(4, 6)
    assert schedule.next_step([facts(Step(4, 6), 1, 1, 1, 1)] * 3) is None


@pytest.mark.parametrize("text", ["", "4", "m0", "m4c0", "x4", "m4,", "m4 m3", "m4c", "auto,m2"])
def test_a_bad_schedule_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(InvalidInput, match="--rounds must be auto or steps such as m4c6"):
        parse_schedule(text)


def test_the_least_contribution_falls_from_the_best_links_of_the_sample_to_2() -> None:
    auto = Auto(PROFILE, 0.0)
    rounds: list[RoundFacts] = []
    while (step := auto.next_step(rounds)) is not None:
        assert step.cap is None
        rounds.append(facts(step, 100, 1000, 100, 5000))
    assert [one.step.least for one in rounds] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert [step.least for step in (auto_step(10), auto_step(5), auto_step(3))] == [8, 4, 2]


def test_rounds_of_2_go_on_while_they_save_links_and_not_for_ever() -> None:
    auto = Auto(PROFILE, 0.0)
    paying, idle = facts(Step(2), 100, 1000, 200, 5000), facts(Step(2), 100, 1000, 103, 5000)
    assert auto.next_step([paying]) == Step(2)
    assert auto.next_step([paying, idle]) is None
    assert auto.next_step([paying] * 8) is None


def test_caps_rise_while_the_least_contribution_falls() -> None:
    auto = Auto(PROFILE, 3.0)
    first = auto.next_step([])
    second = auto.next_step([facts(Step(3), 2000, 2000, 7000, 5000)])
    assert first is not None and second is not None
    assert first.cap is not None and second.cap is not None
    assert 2 <= first.cap < second.cap


def test_each_algorithm_has_its_rho_and_gm_no_caps() -> None:
    assert (rho_of("gm", {}), rho_of("low-oda", {"rho": 2.0}), rho_of("minmax-oda", {})) == (0.0, 2.0, math.inf)
    assert default_part_nodes("gm") > default_part_nodes("low-oda")
    with pytest.raises(InvalidInput, match="gm2 is not built in rounds: gm, low-oda, minmax-oda are"):
        rho_of("gm2", {})


def test_a_seed_is_a_whole_number() -> None:
    assert read_seed("7") == 7
    for bad in ("-1", "x", str(2**63)):
        with pytest.raises(InvalidInput, match="option seed must be a whole number"):
            read_seed(bad)

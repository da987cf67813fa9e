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
    choose_part_nodes,
    parse_schedule,
    read_seed,
    rho_of,
)
from omen.errors import InvalidInput

PROFILE = Profile(nodes=1000, contributions=(*[10] * 5, *[4] * 95))
LOW_ODA, GM = Auto(PROFILE, 3.0, 100), Auto(PROFILE, 0.0, 100)


def facts(step: Step, new_links: int = 1, links: int = 1000, removed: int = 1, left: int = 5000) -> RoundFacts:
    return RoundFacts(step, new_links, links, removed, left, max_degree=9, needed=15)


def levels(auto: Auto) -> list[str]:
    """The steps where no round comes to much."""
    rounds: list[RoundFacts] = []
    while (step := auto.next_step(rounds)) is not None:
        rounds.append(facts(step))
    return [str(one.step) for one in rounds]


def test_a_schedule_reads_as_it_is_written() -> None:
    schedule = parse_schedule("m4c6,m3,m3u7,r2c40,r2k41,jk12,jc12,j")
    assert schedule.steps[:4] == (Step(4, 6), Step(3), Step(3, raising=7), Step(2, 40, alike=False))
    assert schedule.steps[4:6] == (Step(2, 41, alike=False, keeps=True), Step(1, 12, joins=True, keeps=True))
    assert ",".join(map(str, schedule.steps)) == "m4c6,m3,m3u7,r2c40,r2k41,jk12,jc12,j"
    assert schedule.next_step([]) == Step(4, 6)
    assert Given(schedule.steps[:3]).next_step([facts(Step(4, 6))] * 3) is None


BAD = ["", "4", "m0", "m4c0", "x4", "m4,", "m4 m3", "m4c", "m4u0", "j4", "m4c5k6", "auto,m2"]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_schedule_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(InvalidInput, match="--rounds must be auto or steps such as m4c6"):
        parse_schedule(text)


def test_what_fits_one_part_is_one_round_without_limits() -> None:
    auto = Auto(PROFILE, 3.0, 1000)
    assert auto.next_step([]) == Step(1)
    assert auto.next_step([facts(Step(1))]) is None


def test_gm_falls_from_the_best_links_of_the_sample_to_2() -> None:
    assert levels(GM) == ["m10", "m7", "m5", "m4", "m3", "m2"]


def test_low_oda_begins_where_its_best_links_may_raise_the_maximum_degree() -> None:
    """10 is more than 3 times 3: links of 4 and more come first, and others only where they contribute 10."""
    assert levels(LOW_ODA) == ["m4u10", "m3u7", "m2u4", "m2k15", "jk15", *["m2u2"] * 3]


def test_rounds_of_a_level_go_on_while_they_save_links_and_not_for_ever() -> None:
    paying, idle = facts(Step(2), 100, 1000), facts(Step(2), 10, 1000)
    assert GM.next_step([paying]) == Step(2, alike=False)
    assert GM.next_step([paying, paying]) == Step(2)
    assert GM.next_step([paying, idle]) is None
    assert GM.next_step([paying] * 10) is None
    above = facts(Step(3), 200, 1000)
    assert GM.next_step([above]) == Step(3)
    assert GM.next_step([above] * 4) == Step(2)


def test_where_no_link_contributes_enough_to_raise_the_maximum_degree_the_half_of_what_is_needed_is_its_cap() -> None:
    before = RoundFacts(Step(2, raising=4), 100, 1000, 200, 5000, max_degree=3, needed=20)
    assert LOW_ODA.next_step([before]) == Step(2, 12)
    assert GM.next_step([before]) == Step(2, alike=False, raising=4)


def test_joining_goes_on_while_it_comes_to_something() -> None:
    joining = Step(1, 13, joins=True, keeps=True)
    assert LOW_ODA.next_step([facts(joining, removed=1000)]) == joining
    assert LOW_ODA.next_step([facts(joining, removed=10)]) == Step(2, raising=2)
    assert LOW_ODA.next_step([facts(joining), facts(Step(2, raising=2), new_links=0)]) is None


def test_each_algorithm_has_its_rho() -> None:
    for options in ({}, {"rho": 2.0}):
        assert (rho_of("gm", options), rho_of("minmax-oda", options)) == (0.0, math.inf)
    assert rho_of("low-oda", {"rho": 2.0}) == 2.0
    with pytest.raises(InvalidInput, match="gm2 is not built in rounds: gm, low-oda, minmax-oda are"):
        rho_of("gm2", {})


def test_parts_are_smaller_where_topics_have_more_subscribers_and_even() -> None:
    few, many = 2_400_000 * 240, 2_400_000 * 12_000
    assert choose_part_nodes(3.0, 100_000, 2_400_000, few) == 100_000
    assert choose_part_nodes(3.0, 100_000, 2_400_000, many) == 14_286
    assert choose_part_nodes(0.0, 1_000_000, 24_000_000, 10 * many) == 250_000
    assert choose_part_nodes(3.0, 0, 0, 0) == 2


def test_a_seed_is_a_whole_number() -> None:
    assert read_seed("7") == 7
    for bad in ("-1", "x", str(2**63)):
        with pytest.raises(InvalidInput, match="option seed must be a whole number"):
            read_seed(bad)

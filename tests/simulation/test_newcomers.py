"""Coming in when it is least convenient: together with others, through contacts that are gone, or only to leave."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from omen.sim.reading import read_scenario
from omen.sim.running import run_scenario
from omen.sim.scenario import BoundsSpec, ConfigSpec, EventSpec, NetworkSpec, NodeSpec, OverlaySpec, Scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def world(*events: EventSpec, detector: bool = False) -> Scenario:
    return Scenario(
        nodes={f"n{number}": NodeSpec(("t", f"u{number % 3}")) for number in range(10)},
        config=ConfigSpec(
            resilience=2,
            coverage=1,
            gossip_ms=200.0,
            standby_timeout_ms=1500.0,
            detector=detector,
            heartbeat_ms=200.0,
            suspicion_ms=400.0,
        ),
        network=NetworkSpec(latency_ms=(0.5, 5.0), detection_ms=(20.0, 60.0)),
        bounds=BoundsSpec(connected_s=25.0, handled_s=30.0, idle_s=35.0),
        events=events,
    )


@pytest.mark.parametrize("seed", (0, 7, 18, 30))
def test_two_newcomers_do_not_count_on_each_other_where_another_has_their_topic(seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "two-newcomers.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("detector", [False, True])
def test_a_newcomer_that_reaches_no_member_joins_once_it_does(seed: int, detector: bool) -> None:
    everybody = tuple(f"n{number}" for number in range(10))
    outcome = run_scenario(
        world(
            EventSpec(at=1.0, partition=(everybody,)),
            EventSpec(at=1.01, join="x", topics=("t", "u1"), through="n4"),
            EventSpec(at=6.0, heal=True),
            detector=detector,
        ),
        seed,
    )
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("detector", [False, True])
def test_contacts_that_are_lost_while_a_newcomer_comes_in_do_not_keep_it_out(seed: int, detector: bool) -> None:
    crashes = [EventSpec(at=1.0006, crash=f"n{number}") for number in (seed, seed + 5)]
    outcome = run_scenario(world(EventSpec(at=1.0, join="x", topics=("t", "u1")), *crashes, detector=detector), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(3))
def test_a_newcomer_may_leave_before_it_was_linked(seed: int) -> None:
    outcome = run_scenario(
        world(EventSpec(at=1.0, join="x", topics=("t", "u1")), EventSpec(at=1.0 + 0.004 * seed, leave="x")), seed
    )
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mute_s", [0.005, 0.3, 0.7, 2.0])
@pytest.mark.parametrize("deaf", [("y",), ("x", "y")])
def test_newcomers_that_know_only_newcomers_form_no_ring_of_their_own(
    seed: int, mute_s: float, deaf: tuple[str, ...]
) -> None:
    """The contact of the first does not answer it, nor maybe the second, for so long."""
    scenario = read_scenario(SCENARIOS / "newcomers-that-know-only-newcomers.toml")
    joins = [event for event in scenario.events if event.join is not None]
    mutes = [EventSpec(at=event.at, mute=(("n1", event.join),)) for event in joins if event.join in deaf]
    heal = EventSpec(at=12.0 + mute_s, heal=True)
    outcome = run_scenario(structs.replace(scenario, events=(*joins, *mutes, heal)), seed)
    assert outcome.complaints() == []
    assert outcome.settled


def test_the_scenario_of_newcomers_that_know_only_newcomers_ends_as_one() -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "newcomers-that-know-only-newcomers.toml"), 1)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize(("topics", "latency_ms"), [(300, 1.0), (560, 1.0), (130, 25.0), (300, 25.0)])
def test_a_newcomer_that_needs_many_links_is_linked_and_shuns_nobody(topics: int, latency_ms: float) -> None:
    """A collector that wants each device's own topic. All links were proposed at once and again, until it banned the
    coordinator for that, which had to rejoin: 160 of 300 topics were still split 25 s later.
    """
    ring = range(topics)
    links = {tuple(sorted((one, other))) for one in ring for other in ((one + 1) % topics, (one * 7 + 3) % topics)}
    outcome = run_scenario(
        Scenario(
            nodes={f"d{one}": NodeSpec((f"t{one}", "all")) for one in ring},
            overlay=OverlaySpec(links=tuple((f"d{one}", f"d{other}") for one, other in sorted(links) if one != other)),
            network=NetworkSpec(latency_ms=latency_ms, detection_ms=50.0),
            events=(EventSpec(at=20.0, join="c", topics=(*(f"t{one}" for one in ring), "all")),),
            until_s=45,
        ),
        1,
    )
    assert outcome.complaints() == []
    assert (len(outcome.split), outcome.rejoins) == (0, 0)
    assert "banned" not in outcome.refused

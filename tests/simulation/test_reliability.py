"""Declared failed and rejoined, cut and healed, links lost and found, and nothing that grows with time."""

from __future__ import annotations

from statistics import fmean

import pytest
from bench.reliability_runs import (
    Churn,
    measure_cost,
    measure_detection,
    measure_dropped_links,
    measure_pause,
    start_world,
)

from omen.protocol.config import Config
from omen.protocol.events import SECOND, PeerDeclaredFailed
from omen.sim.running import Outcome, run_scenario
from omen.sim.scenario import BoundsSpec, ConfigSpec, Drawn, EventSpec, NetworkSpec, Scenario
from omen.workloads import generate_interests

FAST = ConfigSpec(
    resilience=3,
    coverage=2,
    gossip_ms=200.0,
    standby_timeout_ms=1500.0,
    detector=True,
    heartbeat_ms=200.0,
    suspicion_ms=400.0,
)
PATIENT = BoundsSpec(connected_s=60.0, handled_s=60.0, one_sided_s=40.0, idle_s=80.0)


def world(*events: EventSpec, config: ConfigSpec = FAST, loss: float = 0.0, nodes: int = 24) -> Scenario:
    network = NetworkSpec(latency_ms=(0.5, 5.0), loss=loss)
    drawn = Drawn(nodes, 10, sizes="uniform:1:4")
    return Scenario(drawn=drawn, config=config, network=network, bounds=PATIENT, events=events)


def went_well(outcome: Outcome) -> bool:
    assert outcome.complaints() == []
    return outcome.settled


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_is_noticed_and_repaired_without_any_node_being_told(seed: int) -> None:
    outcome = run_scenario(world(EventSpec(at=3.0, crash="n3"), EventSpec(at=3.1, crash="n8"), loss=0.03), seed)
    assert went_well(outcome)
    assert {repair.node for repair in outcome.repairs} >= {"n3", "n8"}
    assert max(outcome.restored) < 6 * SECOND


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_pauses_is_declared_failed_and_rejoins_without_a_split(seed: int) -> None:
    outcome = run_scenario(world(EventSpec(at=3.0, pause="n5"), EventSpec(at=12.0, resume="n5")), seed)
    assert went_well(outcome)
    assert outcome.rejoins == 1
    assert {(repair.event.kind, repair.node) for repair in outcome.repairs} >= {("leave", "n5"), ("join", "n5")}


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_pauses_briefly_is_not_declared_failed(seed: int) -> None:
    outcome = run_scenario(world(EventSpec(at=3.0, pause="n5"), EventSpec(at=3.6, resume="n5")), seed)
    assert went_well(outcome)
    assert outcome.rejoins == 0
    assert not outcome.repairs


@pytest.mark.parametrize("seed", range(3))
def test_with_the_detector_a_false_word_of_the_driver_costs_nothing(seed: int) -> None:
    outcome = run_scenario(world(EventSpec(at=3.0, suspect="n5", by="n6")), seed)
    assert went_well(outcome)
    assert outcome.rejoins == 0


@pytest.mark.parametrize("seed", range(6))
def test_without_it_a_false_word_costs_the_node_its_links_and_never_a_split(seed: int) -> None:
    config = ConfigSpec(resilience=2, coverage=0, gossip_ms=200.0, standby_timeout_ms=1500.0)
    suspicions = [EventSpec(number, 0.5, suspect=f"n{number}", by=f"n{number % 20 + 3}") for number in range(1, 5)]
    assert went_well(run_scenario(world(*suspicions, config=config), seed))


@pytest.mark.parametrize("seed", range(2))
def test_the_halves_of_a_network_that_was_cut_find_each_other(seed: int) -> None:
    config = ConfigSpec(resilience=2, coverage=1, gossip_ms=500.0, detector=True, audit=True, audit_ms=5000.0)
    half = tuple(f"n{number}" for number in range(1, 11))
    cut = (EventSpec(at=5.0, partition=(half,)), EventSpec(at=95.0, heal=True))
    outcome = run_scenario(world(*cut, config=config, nodes=20), seed)
    assert went_well(outcome)
    assert max(outcome.restored) <= 10 * 5 * SECOND


def test_links_that_vanish_without_a_word_are_back_within_two_periods() -> None:
    interests = generate_interests(60, 40, "zipf:0.8", "powerlaw:3:20", 1)
    config = Config(audit=True, audit_period=10 * SECOND)
    healing = measure_dropped_links(interests, 0.3, config)
    assert healing.split > 10
    assert healing.periods <= 2
    assert healing.added <= 2 * healing.engine_added
    assert healing.max_degree <= 2 * healing.fresh_max_degree


def test_detection_takes_seconds_and_loss_alone_declares_no_node_failed() -> None:
    calm, rough = measure_detection(0.0, 60, 2, 20), measure_detection(0.1, 60, 2, 20)
    assert fmean(calm.noticed_s) < 7
    assert max(rough.noticed_s) < 25
    assert calm.suspicions == 0
    assert calm.rejoins == rough.rejoins == 0
    assert calm.whole and rough.whole


def test_topics_are_connected_after_a_long_pause() -> None:
    found = measure_pause(12.0, pauses=2, nodes=20)
    assert found.rejoins == 2
    assert found.whole


def test_the_audit_costs_a_few_bytes_a_second_while_all_is_well() -> None:
    few, many = measure_cost(10, 40, "20", 60), measure_cost(8, 600, "300", 60)
    assert few.bytes_a_second["audit"] < 30
    assert many.bytes_a_second["audit"] < 60
    # seven peers, one heartbeat per second each: the incarnation, and three times from which round trips are known
    assert many.bytes_a_second["heartbeats"] < 7 * 20


@pytest.mark.parametrize("seed", range(3))
def test_a_lost_node_is_not_lost_again_when_its_tombstones_are_gone(seed: int) -> None:
    """Before: backups that had ended stayed in views for ever, came back by gossip a minute later, and were declared
    failed and repaired again (declared 9, 32 and 18 times in these worlds).
    """
    interests = generate_interests(40, 30, "zipf:0.5", "uniform:3:8", seed)
    config = Config(gossip_period=SECOND // 2, ready_rounds=4, detector=True, audit=True)
    world, population = start_world(interests, config, seed)
    told: list[int] = []
    world.listeners.append(lambda _, heard, now: told.append(now) if isinstance(heard, PeerDeclaredFailed) else None)
    world.run_until(30 * SECOND)
    for label in interests.nodes.tolist()[5:8]:
        population.crash(label)
    world.run_until(300 * SECOND)
    assert len(told) > 30
    assert max(told) < 80 * SECOND


def test_churn_leaves_nothing_behind() -> None:
    churn = Churn(30, 15, every=SECOND)
    samples = list(churn.run(240, 40))
    early, late = samples[1:3], samples[-2:]
    assert not any(sample.split for sample in samples)
    assert fmean(sample.state_bytes for sample in late) < 1.1 * fmean(sample.state_bytes for sample in early)
    assert fmean(sample.average_degree for sample in late) < 1.2 * fmean(sample.average_degree for sample in early)

"""Everybody publishes while nodes come, go, crash and change their minds: nothing is lost, nothing comes twice."""

from __future__ import annotations

import pytest

from omen.protocol.events import SECOND, Deliver, Gap, Held, NodeId
from omen.sim.publishing import PublishingRun, run_world
from omen.sim.running import Run
from omen.sim.scenario import ConfigSpec, EventSpec, NetworkSpec, NodeSpec, Scenario
from omen.sim.search import draw_scenario
from omen.sim.world import Heard

WORLDS = range(100, 112)


@pytest.mark.parametrize("number", WORLDS)
def test_no_publication_is_lost_or_comes_twice_in_a_random_world(number: int) -> None:
    outcome, tally = run_world(number)
    replay = f"replay: python -m omen.sim.publishing --world {number}"
    assert not tally.complaints(), "\n".join([*tally.complaints()[:20], replay])
    assert outcome.went_well, replay
    assert tally.expected > 300
    assert tally.held > 0
    assert tally.duplicates_per_delivery < 0.2


def test_the_worlds_hold_losses_and_duplicates_of_messages_and_every_kind_of_churn() -> None:
    scenarios = [draw_scenario(number) for number in WORLDS]
    assert any(scenario.network.loss and scenario.network.duplication for scenario in scenarios)
    actions = {event.action for scenario in scenarios for event in scenario.events}
    assert actions == {"crash", "leave", "join", "resubscribe"}


def crowd(count: int = 24, topics: int = 6) -> dict[str, NodeSpec]:
    """Each node wants half of the topics, no two of them quite the same."""
    names = [f"t{topic}" for topic in range(topics)]
    return {
        f"n{node}": NodeSpec(tuple(sorted(names[(node + step) % topics] for step in (0, 1, 3))))
        for node in range(count)
    }


def run(
    network: NetworkSpec, events: tuple[EventSpec, ...] = (), seed: int = 5, until: float = 20.0, **config: object
) -> PublishingRun:
    settings = ConfigSpec(gossip_ms=200.0, standby_timeout_ms=1500.0, **config)  # type: ignore[arg-type]
    scenario = Scenario("publishing", nodes=crowd(), config=settings, network=network, events=events, until_s=until)
    under_way = PublishingRun(scenario, seed)
    under_way.go()
    return under_way


CALM = NetworkSpec(latency_ms=(0.5, 3.0))


def test_in_a_calm_world_hardly_anything_is_carried_for_nothing() -> None:
    tally = run(CALM).tally
    assert not tally.complaints()
    assert tally.delivered == tally.expected > 8_000
    assert tally.gaps == 0
    assert tally.duplicates_per_delivery < 0.05


def test_a_tenth_of_all_messages_may_vanish_or_come_twice() -> None:
    tally = run(NetworkSpec(latency_ms=(0.5, 30.0), loss=0.1, duplication=0.1)).tally
    assert not tally.complaints()
    assert tally.gaps == 0


def test_a_node_that_stops_for_a_while_is_given_what_it_missed() -> None:
    events = (EventSpec(1, 4.0, pause="n3"), EventSpec(1, 9.0, resume="n3"), EventSpec(1, 6.0, crash="n4"))
    tally = run(CALM, events).tally
    assert not tally.complaints()


def test_the_same_seed_spreads_publications_in_the_same_way() -> None:
    def fingerprint() -> tuple[object, ...]:
        told: list[tuple[NodeId, Heard, int]] = []
        outcome = PublishingRun(draw_scenario(100), 100)
        outcome.world.listeners.append(lambda node, heard, time: told.append((node, heard, time)))
        outcome.go()
        return (tuple(told), tuple(sorted(outcome.world.messages.items())))

    assert fingerprint() == fingerprint()


def test_worlds_without_publications_hear_nothing_of_them() -> None:
    plain = Run(draw_scenario(100), 100)
    told: list[Heard] = []
    plain.world.listeners.append(lambda node, heard, time: told.append(heard))
    plain.go()
    assert not {"Announce", "RetransmissionRequest", "Prune", "Graft", "Publication"} & plain.world.messages.keys()
    assert not any(isinstance(heard, Deliver | Gap | Held) for heard in told)
    assert plain.world.now > SECOND


def test_both_sides_of_a_cut_are_given_what_the_other_said_meanwhile() -> None:
    sides = (tuple(f"n{node}" for node in range(12)), tuple(f"n{node}" for node in range(12, 24)))
    events = (EventSpec(1, 3.0, partition=sides), EventSpec(1, 8.0, heal=True))
    under_way = run(CALM, events, detector=True, audit=True, audit_ms=2000.0, until=45.0)
    assert not under_way.tally.complaints()
    assert not under_way.monitors.split_topics()

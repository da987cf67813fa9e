"""Refusals in a whole cluster: a process that ended is found at once, and a firewall that rejects does harm once."""

from __future__ import annotations

from omen.protocol.events import MILLISECOND, SECOND, NodeId, PeerDeclaredFailed, PeerRefused, Rejoined, Time
from omen.sim.running import Run
from omen.sim.scenario import ConfigSpec, Drawn, EventSpec, NetworkSpec, Scenario
from omen.sim.search import Search, run_world
from omen.sim.world import Heard

DETECTOR = ConfigSpec(detector=True)


def watched(scenario: Scenario) -> tuple[Run, list[tuple[Time, NodeId, Heard]]]:
    run = Run(scenario, seed=3)
    heard: list[tuple[Time, NodeId, Heard]] = []
    run.world.listeners.append(lambda node, what, time: heard.append((time, node, what)))
    return run, heard


def crash_of_one(network: NetworkSpec) -> Scenario:
    return Scenario(
        drawn=Drawn(12, 4),
        config=DETECTOR,
        network=network,
        events=(EventSpec(at=5.0, crash="n5"),),
        until_s=30.0,
    )


def test_a_process_that_ended_is_declared_failed_by_all_who_were_connected_within_a_quarter_of_a_second() -> None:
    run, heard = watched(crash_of_one(NetworkSpec(refusal_ms=1.0)))
    assert run.go().went_well
    declared = [time for time, _, what in heard if isinstance(what, PeerDeclaredFailed)]
    assert declared
    assert max(declared) < 5 * SECOND + 250 * MILLISECOND


def test_a_host_that_is_down_is_left_to_the_failure_detector() -> None:
    run, heard = watched(crash_of_one(NetworkSpec(refusal_ms=1.0, silent_crashes=0.99)))
    assert run.go().went_well
    declared = [(time, what.refused) for time, _, what in heard if isinstance(what, PeerDeclaredFailed)]
    assert declared
    assert min(time for time, _ in declared) > 7 * SECOND
    assert not any(refused for _, refused in declared)


def test_a_firewall_that_rejects_makes_a_healthy_node_rejoin_once_and_not_for_ever() -> None:
    run, heard = watched(Scenario(drawn=Drawn(8, 4), config=DETECTOR, until_s=60.0))
    world, pair = run.world, [0, 0]

    def be_refused() -> None:
        pair[:] = pair if any(pair) else min(run.population.links())
        node, rejecting = pair
        if rejecting in world.places[node].connected:
            world.tell(node, PeerRefused(rejecting))
        world.call(200 * MILLISECOND, be_refused)

    world.call(5 * SECOND, be_refused)
    assert run.go().went_well
    assert len([what for _, at, what in heard if isinstance(what, Rejoined) and at == pair[1]]) == 1


def test_random_worlds_whose_hosts_refuse_go_well() -> None:
    search = Search("refusing")
    for seed in range(700000, 700006):
        world = run_world(search, seed)
        assert world.went_well, world.complaints

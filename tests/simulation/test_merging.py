"""Nodes that began apart, or were cut apart for long, become one cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.maintain.choosing import choose_links
from omen.net.settings import LIVE
from omen.protocol.events import SECOND
from omen.protocol.membership.ring import nearest_after
from omen.quality import check_overlay
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.reading import read_scenario
from omen.sim.running import run_scenario
from omen.sim.world import Network, World

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize("name", ["mutual-seeds", "two-clusters-meet"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_scenario_of_clusters_that_meet_ends_as_one(name: str, seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / f"{name}.toml"), seed)
    assert outcome.complaints() == []


class Clusters:
    """Nodes in virtual time that begin alone or through one of their cluster."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, Network(uniform(200, 3_000), detection=None))
        self.population = Population(self.world, LIVE, choose_links)

    def begin(self, prefix: str, count: int) -> None:
        """One by one, the first alone; each wants three of nine topics."""
        for number in range(count):
            topics = [f"t{(number + step) % 9}" for step in range(3)]
            if number:
                self.population.join(f"{prefix}{number}", topics, f"{prefix}0")
            else:
                self.population.begin_alone(f"{prefix}0", topics)
            self.run(0.5)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + int(seconds * SECOND))

    def is_one_ring(self) -> bool:
        members = self.population.members()
        statuses = (self.population.cores[node].status() for node in members)
        return all(
            status.membership.successors == tuple(nearest_after(status.ref.id, members, LIVE.resilience))
            for status in statuses
        )

    def is_connected(self) -> bool:
        return check_overlay(*self.population.snapshot()).holds


def test_one_node_that_meets_another_is_enough_for_two_rings_to_become_one() -> None:
    clusters = Clusters(1)
    clusters.begin("n", 14)
    clusters.begin("m", 14)
    clusters.run(10)
    assert not clusters.is_one_ring()
    clusters.population.meet("n7", "m10")
    clusters.run(5)
    assert clusters.is_one_ring()
    clusters.run(20)
    assert clusters.is_connected()


def test_a_node_that_is_alone_is_linked_as_soon_as_another_ring_finds_it() -> None:
    clusters = Clusters(2)
    clusters.begin("n", 6)
    clusters.population.begin_alone("m", ["t0", "t4"])
    clusters.run(5)
    clusters.population.meet("n3", "m")
    clusters.run(3)
    assert clusters.is_one_ring()
    assert clusters.is_connected()


def test_the_scenario_of_a_long_cut_ends_as_one() -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "cut-of-half-an-hour.toml"), 1)
    assert outcome.complaints() == []


@pytest.mark.parametrize("minutes", [1, 11, 30])
def test_a_cut_heals_however_long_it_was(minutes: int) -> None:
    clusters = Clusters(4)
    clusters.begin("n", 6)
    sides = [[clusters.population.place(f"n{number}") for number in range(side, 6, 2)] for side in range(2)]
    clusters.world.partition(sides)
    clusters.run(60 * minutes)
    assert not clusters.is_connected()
    clusters.world.heal()
    clusters.run(30)
    assert clusters.is_one_ring()
    assert clusters.is_connected()


def test_a_contact_that_is_known_already_costs_nothing() -> None:
    clusters = Clusters(3)
    clusters.begin("n", 6)
    clusters.run(20)
    before = clusters.world.messages.total()
    clusters.population.meet("n1", "n4")
    clusters.world.run_until(clusters.world.now)
    assert clusters.world.messages.total() == before

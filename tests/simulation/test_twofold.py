"""Whole clusters at connectivity 2: no node is a cut node at rest, whatever has happened before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from omen.protocol.config import Config
from omen.protocol.events import SECOND, Input, NodeId, Output, Received, Time
from omen.protocol.messages.overlay import NearbyQuery
from omen.protocol.node import OmenNode
from omen.quality import check_overlay
from omen.sim.cut_pairs import cut_pairs
from omen.sim.population import Population
from omen.sim.running import Run
from omen.sim.scenario import ConfigSpec, Drawn, EventSpec, NetworkSpec, NodeSpec, OverlaySpec, Scenario
from omen.sim.search import Search, run_world

TWO = ConfigSpec(connectivity=2, connectivity_ms=500.0)


def at_rest(config: ConfigSpec, seconds: float = 8.0) -> Run:
    """A cluster that has had time to link itself."""
    run = Run(Scenario(drawn=Drawn(24, 8), config=config, until_s=seconds), seed=3)
    run.go()
    return run


def pairs(population: Population) -> int:
    return sum(map(len, cut_pairs(population).values()))


def test_at_rest_the_loss_of_any_one_node_splits_no_topic_not_even_for_an_instant() -> None:
    run = at_rest(TWO)
    assert pairs(run.population) == 0
    interests, overlay = run.population.snapshot()
    assert check_overlay(interests, overlay, k=2).holds
    node = max(run.population.members(), key=lambda node: len(run.population.cores[node].links()))
    run.population.crash(run.population.labels[node])
    for _ in range(100):
        run.world.run_until(run.world.now + SECOND // 10)
        assert not run.monitors.split_topics()
    assert pairs(run.population) == 0


def test_at_connectivity_one_there_are_cut_nodes() -> None:
    assert pairs(at_rest(ConfigSpec()).population) > 0


def test_in_a_mixed_cluster_those_with_setting_two_are_dispensable(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Population._core

    def every_other(
        self: Population, node: NodeId, incarnation: int, topics: Sequence[int], contacts: Sequence[object]
    ) -> object:
        given, self.config = self.config, replace(self.config, connectivity=1 + node % 2)
        try:
            return plain(self, node, incarnation, topics, contacts)  # type: ignore[arg-type]
        finally:
            self.config = given

    monkeypatch.setattr(Population, "_core", every_other)
    run = at_rest(TWO)
    cut = {node for nodes in cut_pairs(run.population).values() for node in nodes}
    assert cut
    assert not any(node % 2 for node in cut)


def test_a_hub_of_a_hundred_and_fifty_links_becomes_dispensable() -> None:
    names = [f"n{number}" for number in range(151)]
    hub = OverlaySpec(links=tuple(("n0", name) for name in names[1:]))
    run = Run(Scenario(nodes=dict.fromkeys(names, NodeSpec(("t",))), overlay=hub, config=TWO, until_s=3.0))
    run.go()
    assert pairs(run.population) == 0


def test_beside_nodes_that_know_no_such_question_proposals_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = OmenNode.handle

    def handle(self: OmenNode, event: Input, now: Time) -> Sequence[Output]:
        is_asked = isinstance(event, Received) and isinstance(event.message, NearbyQuery)
        return () if is_asked and self.ref.id % 3 == 0 else plain(self, event, now)

    monkeypatch.setattr(OmenNode, "handle", handle)
    run = at_rest(TWO, 12.0)
    proposed = run.world.messages["LinkProposal"]
    run.world.run_until(run.world.now + 20 * SECOND)
    assert run.world.messages["LinkProposal"] == proposed
    assert pairs(run.population) == 0


def test_max_links_is_not_exceeded_and_what_stays_cut_is_counted() -> None:
    most = 4
    run = at_rest(ConfigSpec(connectivity=2, connectivity_ms=500.0, max_links=most), 26.0)
    before = at_rest(ConfigSpec())
    cores = run.population.cores
    for node, core in cores.items():
        assert len(core.links()) <= max(most, len(before.population.cores[node].links()))
    counted = sum(core.status().cut_topics for core in cores.values())
    assert counted == pairs(run.population) > 0


def test_a_ring_is_closed_where_only_its_ends_may_have_another_link() -> None:
    nodes = ("n1", "n2", "n3", "n4")
    config = ConfigSpec(connectivity=2, connectivity_ms=500.0, max_links=2)
    path = OverlaySpec(links=tuple(pairwise(nodes)))
    specs = dict.fromkeys(nodes, NodeSpec(topics=("t",)))
    run = Run(Scenario(nodes=specs, overlay=path, config=config, until_s=30.0), seed=3)
    run.go()
    assert pairs(run.population) == 0
    assert {len(core.links()) for core in run.population.cores.values()} == {2}


def test_max_links_is_not_exceeded_where_several_nodes_propose_at_once() -> None:
    slow = NetworkSpec(latency_ms=(1.0, 20.0))
    for seed in range(4):
        config = ConfigSpec(connectivity=2, connectivity_ms=500.0, max_links=6)
        drawn = Drawn(40, 6, sizes="2")
        run = Run(Scenario(drawn=drawn, config=config, network=slow, until_s=6.0), seed)
        run.go()
        assert max(len(core.links()) for core in run.population.cores.values()) <= 6


def test_after_losses_the_overlay_is_two_connected_again_within_half_a_minute() -> None:
    events = tuple(EventSpec(burst=1, at=0.1, crash=f"n{number}") for number in (3, 9, 14))
    outcome = Run(Scenario(drawn=Drawn(24, 8), config=TWO, events=events), seed=5).go()
    assert outcome.went_well, outcome.complaints()
    assert outcome.settled


def test_random_worlds_at_connectivity_two_go_well() -> None:
    for seed in range(5000, 5004):
        world = run_world(Search("twofold"), seed)
        assert world.went_well, world.complaints


def test_the_defaults_ask_nothing() -> None:
    assert Config().connectivity == 1
    run = at_rest(ConfigSpec())
    assert not any(kind.startswith("Nearby") for kind in run.world.messages)

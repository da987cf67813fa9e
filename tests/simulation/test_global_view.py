"""OMen-G: the same nodes with a global view, for comparing (omen 6.1)."""

from __future__ import annotations

from omen.churn import Crash, Join, Leave, Resubscribe, Trace
from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.membership.peer_table import Registry
from omen.sim.population import Population
from omen.sim.world import World
from omen.systems import design_overlay
from omen.systems.replay import replay
from omen.workloads import generate_interests


def test_a_replay_with_global_views_keeps_every_topic_connected() -> None:
    interests = generate_interests(40, 20, "uniform", "uniform:2:6", seed=3)
    nodes = interests.nodes.tolist()
    events = (
        Crash(10, nodes[3]),
        Leave(20, nodes[9]),
        Crash(30, nodes[4]),
        Crash(30, nodes[5]),
        Join(40, nodes[3]),
        Resubscribe(50, nodes[8], tuple(interests.topics.tolist()[:3])),
        Crash(60, nodes[8]),
    )
    done = replay(interests, Trace(events), "omen-g", verify="every")
    assert done.judged == 6
    assert done.topic_connected
    assert (done.columns["shadow_size"][[0, 1, 2, 6]] > 0).all()


def test_with_a_global_view_every_backup_set_is_ready_at_once_and_as_full_as_it_can_be() -> None:
    interests = generate_interests(40, 20, "uniform", "uniform:2:6", seed=3)
    world = World(1)
    population = Population(world, Config(global_view=True, coverage=4), choose_links)
    population.set_up(interests, design_overlay(interests, "low-oda"))
    world.run_until(2_000_000)
    registry = population.registry
    assert registry is not None
    for core in population.cores.values():
        for node, shadow in core.status().backup_sets.items():
            assert shadow.ready
            for topic in shadow.topics:
                others = sum(topic in topics for other, topics in registry.topic_sets.items() if other != node)
                backed = sum(topic in registry.topic_sets[backup] for backup in shadow.backups)
                assert backed >= min(4, others)


def test_a_failed_node_is_in_no_backup_set_a_round_later() -> None:
    interests = generate_interests(30, 10, "uniform", "uniform:2:4", seed=5)
    world = World(1)
    population = Population(world, Config(global_view=True), choose_links)
    population.set_up(interests, design_overlay(interests, "low-oda"))
    world.run_until(1_500_000)
    lost = interests.nodes.tolist()[7]
    population.crash(lost)
    world.run_until(4_000_000)
    for node in population.members():
        for shadow in population.cores[node].status().backup_sets.values():
            assert population.place(lost) not in shadow.backups


def test_the_registry_knows_failed_nodes_and_counts_live_ones() -> None:
    population = Population(World(1), Config(global_view=True), choose_links)
    interests = generate_interests(5, 4, "uniform", 2, seed=1)
    population.set_up(interests, design_overlay(interests, "low-oda"))
    registry = population.registry
    assert isinstance(registry, Registry)
    gone = population.place(interests.nodes.tolist()[0])
    population.crash(interests.nodes.tolist()[0])
    assert gone in registry.known
    assert gone not in registry.topic_sets
    assert registry.log[-1] == gone

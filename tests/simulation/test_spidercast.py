"""SpiderCast's nodes in a world: to quiescence, under churn, under faults."""

from __future__ import annotations

import numpy as np
import pytest

from omen.interests import Interests
from omen.overlay import Overlay
from omen.protocol.events import SECOND
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.node import TaskStatus
from omen.quality import check_overlay, topic_components
from omen.sim.latency import uniform
from omen.sim.membership import Membership
from omen.sim.spiders import Spiders
from omen.sim.world import Network, World
from omen.systems import design_overlay
from omen.systems.simulated_spidercast import build_spidercast
from omen.systems.system import find_system, resolve_settings
from omen.workloads import generate_interests, random_rounds

NETWORK = Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000))


def settled(interests: Interests, overlay: Overlay | None = None, **settings: object) -> Spiders:
    world = World(3, NETWORK)
    config = SpiderConfig(coverage(3, 0), **settings)  # type: ignore[arg-type]
    spiders = Spiders(world, config, Membership(3))
    spiders.set_up(interests, overlay)
    spiders.settle(60 * SECOND)
    return spiders


def greedy(spiders: Spiders, node: int) -> TaskStatus:
    return spiders.cores[node].status().tasks[0]


def covers(spiders: Spiders, node: int, times: int = 3) -> bool:
    """Whether every topic is covered K times, or by all who want it."""
    cover = greedy(spiders, node).cover
    wanting = {
        topic: sum(topic in spiders.cores[other].topics for other in spiders.members() if other != node)
        for topic in cover
    }
    return all(have >= min(times, wanting[topic]) for topic, have in cover.items())


@pytest.fixture(scope="module")
def interests() -> Interests:
    return generate_interests(120, 30, "zipf:0.5", "uniform:2:8", seed=5)


def test_quiet_nodes_are_covered_and_their_neighbours_know_their_degree(interests: Interests) -> None:
    spiders = settled(interests)
    assert all(covers(spiders, node) for node in spiders.members())
    assert not spiders.one_sided()
    for node in spiders.cores:
        for other, known in greedy(spiders, node).neighbours.items():
            theirs = greedy(spiders, other)
            assert (known.degree, known.target) == (theirs.degree, theirs.target)


def test_no_link_could_go_and_both_ends_stay_covered(interests: Interests) -> None:
    spiders = settled(interests)
    tasks = {node: greedy(spiders, node) for node in spiders.cores}

    def needs(node: int, other: int) -> bool:
        cover, theirs = tasks[node].cover, tasks[node].neighbours[other].interest
        return any(times - (topic in theirs) < tasks[node].coverage for topic, times in cover.items())

    assert all(needs(node, other) or needs(other, node) for node, task in tasks.items() for other in task.neighbours)


def test_no_degree_is_above_l_max_and_margin() -> None:
    crowd = Interests.from_pairs([(node, 0) for node in range(60)])
    spiders = settled(crowd, margin=1)
    assert max(greedy(spiders, node).degree for node in spiders.cores) <= 4


def test_the_same_seed_gives_the_same_overlay_and_another_one_another(interests: Interests) -> None:
    one, again, other = (design_overlay(interests, "spidercast", seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_a_design_starts_from_nothing_and_a_system_from_the_overlay_it_is_given(interests: Interests) -> None:
    first = design_overlay(interests, "low-oda")
    spiders = settled(interests, first)
    links = {frozenset((spiders.labels[u], spiders.labels[v])) for u, v in spiders.links()}
    kept = {frozenset(pair) for pair in first.links()} & links
    assert len(kept) > first.link_count // 2
    assert all(covers(spiders, node) for node in spiders.members())


@pytest.mark.parametrize("how", ["crash", "leave"])
def test_former_neighbours_of_a_lost_node_are_covered_again(how: str, interests: Interests) -> None:
    spiders = settled(interests)
    lost = max(spiders.members(), key=lambda node: spiders.degrees[node])
    getattr(spiders, how)(spiders.labels[lost])
    spiders.world.run_until(spiders.world.now + SECOND)
    spiders.settle(spiders.world.now + 60 * SECOND)
    assert lost not in spiders.members()
    assert not any(lost in pair for pair in spiders.links())
    assert all(covers(spiders, node) for node in spiders.members())


def test_a_newcomer_is_covered_within_two_seconds(interests: Interests) -> None:
    spiders = settled(interests)
    node = (
        spiders.join("new", interests.topics[:6].tolist())
        if interests.nodes.dtype == object
        else spiders.join(10_000, interests.topics[:6].tolist())
    )
    spiders.world.run_until(spiders.world.now + 2 * SECOND)
    assert covers(spiders, node)


def test_a_name_that_rejoins_is_another_incarnation(interests: Interests) -> None:
    spiders = settled(interests)
    label = spiders.labels[spiders.members()[0]]
    spiders.crash(label)
    node = spiders.join(label, interests.topics[:3].tolist())
    spiders.world.run_until(spiders.world.now + SECOND)
    spiders.settle(spiders.world.now + 60 * SECOND)
    assert spiders.cores[node].ref.incarnation == 2
    assert covers(spiders, node)
    assert not spiders.one_sided()


def test_a_change_of_interest_reaches_neighbours_and_strangers(interests: Interests) -> None:
    spiders = settled(interests)
    node = spiders.members()[7]
    spiders.resubscribe(spiders.labels[node], [*interests.topics[20:25].tolist(), 999])
    spiders.settle(spiders.world.now + 60 * SECOND)
    assert covers(spiders, node)
    for other in spiders.cores[node].neighbours():
        assert 999 in greedy(spiders, other).neighbours[node].interest


def test_links_followed_as_they_change_are_those_counted_anew(interests: Interests) -> None:
    spiders = settled(interests)
    for label in interests.nodes[:15].tolist():
        spiders.crash(label)
        spiders.world.run_until(spiders.world.now + SECOND // 3)
        followed = set(spiders.links())
        alive = set(spiders.members())
        anew = {
            (u, v)
            for u in alive
            for v in spiders.cores[u].neighbours()
            if u < v and v in alive and spiders.cores[v].has_neighbour(u)
        }
        assert followed == anew
        assert sum(spiders.degrees.values()) == 2 * len(anew)


def test_partial_views_and_adaptive_settings_cover_too(interests: Interests) -> None:
    for options, split in (({"view": 0.5}, 1), ({"adaptive": 1}, 0), ({"kr": 1}, 0)):
        overlay = design_overlay(interests, "spidercast", **options)
        assert int((topic_components(interests, overlay) > 1).sum()) <= split


def test_a_replayed_system_follows_its_trace_and_says_what_it_took(interests: Interests) -> None:
    trace = random_rounds(interests, 25, 0.5, 3)
    settings = resolve_settings(find_system("spidercast"), {"kr": 0})
    system = build_spidercast(interests, None, interests, settings)
    for event in trace:
        (outcome,) = system.apply([event])
        assert outcome.messages and outcome.bytes and outcome.handled_s is not None
        assert outcome.max_degree is not None and outcome.average_degree is not None
    present, overlay = system.snapshot()
    assert overlay.degrees.max() == outcome.max_degree
    assert np.isclose(overlay.degrees.mean(), outcome.average_degree)
    assert set(present.topics.tolist()) <= set(interests.topics.tolist())
    assert check_overlay(present, overlay).holds


def test_adaptive_nodes_of_a_system_start_with_k_r_0(interests: Interests) -> None:
    kind = find_system("spidercast")
    settings = resolve_settings(kind, {"adaptive": 1})
    assert settings["kr"] == 0
    assert resolve_settings(kind, settings) == settings
    assert resolve_settings(kind, {})["kr"] == 1
    system = build_spidercast(interests, None, interests, settings | {"gap_rounds": 0})
    assert {core.config.tasks[1].coverage for core in system.spiders.cores.values()} == {0}

"""What is watched of SpiderCast's nodes, that each check can fail, and what they make of random faults and of lies."""

from __future__ import annotations

import random

import pytest
from tests.simulation.hostile import Recorder, attack

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.protocol.events import SECOND, NodeId, PeerLost, Received, Time
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.messages import Connect
from omen.protocol.spidercast.node import SpiderNode
from omen.protocol.spidercast.task import Task
from omen.sim.kinds import SPIDERCAST
from omen.sim.reading import parse_scenario
from omen.sim.running import Run
from omen.sim.scenario import BoundsSpec, EventSpec, NodeSpec, Scenario
from omen.sim.search import Search, World, run_world
from omen.sim.spider_watch import WATCHED, SpiderMonitors, build_spiders
from omen.sim.spiders import Spiders
from omen.sim.watch import AGREED, BOUNDED, Bounds
from omen.sim.world import Network
from omen.sim.world import World as SimulatedWorld

CROWD = 24


def watched(links: list[tuple[int, int]], topics: int = 1) -> tuple[Spiders, SpiderMonitors]:
    """Two dozen nodes with the same topics, linked like that, and who watches them."""
    interests = Interests.from_pairs([(node, topic) for node in range(CROWD) for topic in range(topics)])
    population = build_spiders(SimulatedWorld(1, Network()), Scenario(), {node: node + 1 for node in range(CROWD)})
    population.set_up(interests, Overlay.from_links(interests.nodes, links))
    return population, SpiderMonitors(population, Bounds())


def connect(core: SpiderNode, other: SpiderNode) -> None:
    """One node is asked for a link; the other never hears the answer."""
    core.handle(Received(other.ref.id, Connect(other.ref, 0, 1, 3, other.topics)), 0)


def accept_everybody(population: Spiders, node: NodeId) -> None:
    core = population.cores[node]
    for other in population.cores.values():
        if other is not core:
            connect(core, other)


def complaints(monitors: SpiderMonitors, monitor: str) -> list[str]:
    monitors.check()
    return [violation.what for violation in monitors.violations if violation.monitor == monitor]


def test_who_accepts_more_neighbours_than_l_max_and_margin_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    population, monitors = watched([])
    accept_everybody(population, 1)
    assert not complaints(monitors, BOUNDED)
    monkeypatch.setattr(Task, "room", True)
    accept_everybody(population, 2)
    assert complaints(monitors, BOUNDED) == ["1 has 23 in its neighbours, 8 at most"]


def test_a_node_that_was_handed_more_may_keep_them_and_take_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    population, monitors = watched([(0, node) for node in range(1, CROWD - 1)])
    assert not complaints(monitors, BOUNDED)
    monkeypatch.setattr(Task, "room", True)
    connect(population.cores[1], population.cores[CROWD])
    assert complaints(monitors, BOUNDED) == ["0 has 23 in its neighbours, 22 at most"]


def test_a_node_that_wants_fewer_topics_now_may_keep_the_neighbours_it_has() -> None:
    population, monitors = watched([], topics=6)
    accept_everybody(population, 1)
    assert not complaints(monitors, BOUNDED)
    population.resubscribe(0, [0])
    for _ in range(3):
        population.world.run_until(population.world.now + 1)
        assert population.cores[1].status().tasks[0].degree == 23 > 3 + WATCHED.margin
        assert not complaints(monitors, BOUNDED)


def test_a_quarantine_that_only_grows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def suffer(node: NodeId) -> None:
        """Many connect, and fail at once."""
        core = population.cores[node]
        for other in range(100, 200):
            core.handle(Received(other, Connect(Ref(other, 1, ""), 0, 1, 3, core.topics)), 0)
            core.handle(PeerLost(other, 1), 0)

    population, monitors = watched([])
    suffer(1)
    assert not complaints(monitors, BOUNDED)
    monkeypatch.setattr(Task, "quarantine_room", 1000)
    suffer(2)
    assert "1 has 100 in its quarantine, 29 at most" in complaints(monitors, BOUNDED)


@pytest.mark.parametrize("heals", [True, False])
def test_a_link_that_only_one_side_counts_ends_by_heartbeats_and_is_noticed_if_not(
    heals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    population, monitors = watched([(node, (node + step) % CROWD) for node in range(CROWD) for step in (1, 2)])
    population.world.run_until(5 * SECOND)
    one = population.members()[0]
    other = next(node for node in population.members() if node != one and not population.cores[one].has_neighbour(node))
    connect(population.cores[one], population.cores[other])
    if not heals:
        monkeypatch.setattr(Task, "lose", lambda task, node, incarnation: False)
        monkeypatch.setattr(Task, "lose_silent", lambda task, now: None)
        monkeypatch.setattr(Task, "disconnect", lambda task: False)
    for _ in range(12):
        population.world.run_until(population.world.now + SECOND)
        monitors.check()
    assert bool(complaints(monitors, AGREED)) is not heals


def test_losses_are_found_by_heartbeats_alone() -> None:
    told: list[object] = []
    found: dict[NodeId, Time] = {}

    def trace(time: Time, node: NodeId, what: object) -> None:
        told.extend([what] if isinstance(what, PeerLost) else [])

    nodes = {f"n{number}": NodeSpec(("t",)) for number in range(8)}
    run = Run(Scenario(nodes=nodes, events=(EventSpec(at=2.0, crash="n3"),)), 1, kind=SPIDERCAST)
    run.world.tracer = trace
    lost = run.population.place("n3")

    def look() -> None:
        for node in run.population.members():
            if lost not in run.population.cores[node].neighbours():  # type: ignore[attr-defined]
                found.setdefault(node, run.world.now)

    for tick in range(21, 100):
        run.world.call(tick * SECOND // 10, look)
    outcome = run.go()
    assert outcome.went_well and outcome.settled
    assert not told
    assert run.world.network.detection is None
    before = [at for at in found.values() if at > 2 * SECOND + SECOND // 5]
    assert before
    assert max(before) <= 2 * SECOND + WATCHED.time_to_notice + SECOND


def test_nodes_whose_links_have_vanished_look_for_others() -> None:
    nodes = {f"n{number}": NodeSpec((f"t{number // 2}",)) for number in range(8)}
    scenario = Scenario(nodes=nodes, events=(EventSpec(at=8.0, scramble=1.0),))
    run = Run(scenario, 1, kind=SPIDERCAST)
    outcome = run.go()
    assert outcome.went_well, outcome.complaints()
    assert len(run.population.links()) == 4


def test_a_scenario_that_expects_what_only_omens_nodes_have_is_refused() -> None:
    text = "until_s = 1.0\n[drawn]\nnodes = 8\ntopics = 3\n[[expect]]\nby = 0.5\nview = { at = 'n1', of = 'n2' }\n"
    with pytest.raises(InvalidInput, match="expects repairs or views of OMen's nodes"):
        Run(parse_scenario(text), 1, kind=SPIDERCAST)


def bad(worlds: list[World]) -> list[str]:
    """What must not happen, whatever is done to SpiderCast's nodes: all but a topic that stays split."""
    words = ("raised", "alone has a link", "at most")
    return [one for world in worlds for one in world.complaints if any(word in one for word in words)]


@pytest.mark.parametrize(("draw", "seeds", "healed"), [("within", 20, 0.9), ("beyond", 3, 0.6), ("plain", 4, 0.75)])
def test_random_faults_never_raise_leave_links_to_both_sides_and_mostly_heal(
    draw: str, seeds: int, healed: float
) -> None:
    worlds = [run_world(Search(draw, (), "spidercast"), seed) for seed in range(seeds)]
    assert not bad(worlds)
    assert sum(world.went_well for world in worlds) >= healed * seeds


LIARS = Scenario(
    nodes={
        f"n{node}": NodeSpec(tuple(f"t{topic}" for topic in range(6) if (node >> topic % 3) % 2))
        for node in range(1, 11)
    },
    bounds=BoundsSpec(connected_s=60.0, one_sided_s=10.0),
    events=(EventSpec(at=0.5, crash="n3"), EventSpec(at=1.5, join="x", topics=("t1", "t4"))),
)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_messages_raise_nothing_and_leave_no_link_to_one_side(seed: int) -> None:
    run = Run(LIARS, seed, kind=SPIDERCAST)
    run.world.tracer = recorder = Recorder()
    draw = random.Random(seed)
    messages = 500

    def strike() -> None:
        run.monitors.note_burst()
        attack(run.world, recorder, draw, messages)

    run.world.call(4 * SECOND, strike)
    run.hold_open(30 * SECOND)
    outcome = run.go()
    assert not [str(violation) for violation in outcome.violations if violation.monitor in (AGREED, BOUNDED)]
    assert sum(outcome.refused.values()) > messages // 4
    assert outcome.refused.keys() <= {"false", "malformed", "unknown"}

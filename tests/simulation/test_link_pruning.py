"""Redundant links go where another path is verified, needed ones stay, and no topic is ever split by it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import SECOND, LinkPruned, NodeId, Received
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, PruneHint, Ref, ShadowQuery
from omen.protocol.repair.links import LinkState
from omen.quality import check_overlay
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.reading import parse_scenario
from omen.sim.running import Run
from omen.sim.search import draw_scenario
from omen.sim.world import Heard, Network, World

RING = dict.fromkeys("abcdef", ("t",))
CIRCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("a", "f")]


class Group:
    """A few nodes with given links, and the links that go."""

    def __init__(self, wants: dict[str, tuple[str, ...]], links: list[tuple[str, str]], loss: float = 0.0) -> None:
        network = Network(latency=uniform(500, 2_000), detection=uniform(20_000, 40_000), loss=loss)
        self.world = World(3, network)
        config = Config(resilience=2, coverage=1, redundant_removals=9)
        self.population = Population(self.world, config, choose_links)
        interests = Interests.from_pairs([(node, topic) for node, topics in wants.items() for topic in topics])
        self.population.set_up(interests, Overlay.from_links(interests.nodes, links))
        self.pruned: Counter[NodeId] = Counter()
        self.split = False
        self.world.listeners.append(self._hear)
        self.world.run_until(SECOND)

    def _hear(self, node: NodeId, heard: Heard, _now: int) -> None:
        if isinstance(heard, LinkPruned):
            self.pruned[node] += 1

    def ask(self, node: str, other: str) -> None:
        """As a coordinator would whose repair is done."""
        hint = PruneHint(Ref(1, 1, ""), 1, self.population.place(other))
        self.world.tell(self.population.place(node), Received(1, hint))

    def run(self, seconds: float = 3.0) -> None:
        end = self.world.now + int(seconds * SECOND)
        while self.world.now < end:
            self.world.run_until(self.world.now + 500)
            self.split |= not check_overlay(*self.population.snapshot()).holds

    def states(self) -> set[LinkState]:
        return {link.state for core in self.population.cores.values() for link in core.links().values()}


def test_a_link_goes_where_another_path_exists() -> None:
    group = Group(RING, CIRCLE)
    group.ask("a", "b")
    group.run()
    assert len(group.population.links()) == 5
    assert sum(group.pruned.values()) == 1
    assert not group.split
    assert group.states() == {LinkState.UP}


def test_a_link_stays_that_one_topic_needs() -> None:
    wants = {**RING, "a": ("t", "only"), "b": ("t", "only")}
    group = Group(wants, CIRCLE)
    group.ask("a", "b")
    group.run()
    assert len(group.population.links()) == 6


def test_a_path_of_many_hops_is_found() -> None:
    names = [f"n{number}" for number in range(10)]
    wants = {name: ("t", f"own-{name}") for name in names}
    links = list(pairwise(names))
    group = Group(wants, [*links, (names[0], names[-1])])
    group.ask("n0", "n9")
    group.run()
    assert len(group.population.links()) == 9
    assert not group.split


@pytest.mark.parametrize("loss", [0.0, 0.2])
@pytest.mark.parametrize("first", range(6))
def test_of_links_that_are_each_the_others_only_path_never_two_go(first: int, loss: float) -> None:
    group = Group(RING, CIRCLE, loss)
    for one, other in CIRCLE[first:] + CIRCLE[:first]:
        group.ask(one, other)
    group.run(6.0)
    assert len(group.population.links()) >= 5
    assert not group.split
    assert LinkState.FADING not in group.states()


def test_a_link_that_a_coordinator_was_told_of_stays_while_it_repairs() -> None:
    group = Group(RING, CIRCLE)
    query = ShadowQuery(Ref(9, 1, ""), EventId(8, 1, EventKind.LEAVE), 1, (), (), ())
    group.world.tell(group.population.place("a"), Received(9, query))
    group.ask("a", "b")
    group.run()
    assert len(group.population.links()) == 6


REDUNDANT = """
[drawn]
nodes = 30
topics = 8
sizes = "uniform:2:4"

[overlay]
algorithm = "{algorithm}"

[config]
resilience = 2
coverage = 3
gossip_ms = 200.0
redundant_removals = {removals}

[network]
latency_ms = [0.5, 2.0]
"""


def test_repairs_thin_out_an_overlay_that_has_too_many_links() -> None:
    events = "".join(f'[[events]]\nburst = {burst}\nat = 0.1\ncrash = "n{burst}"\n' for burst in range(1, 7))
    counts = {}
    for removals in (0, 10):
        run = Run(parse_scenario(REDUNDANT.format(algorithm="cycle-pt", removals=removals) + events), 1)
        outcome = run.go()
        assert outcome.went_well, outcome.complaints()
        counts[removals] = len(run.population.links())
    assert counts[10] <= counts[0] - 3


def test_the_random_worlds_take_links_down() -> None:
    """Else that their topics stay connected would say nothing about removals."""
    gone: list[NodeId] = []
    for number in (1, 4, 7):
        run = Run(draw_scenario(number), number)
        run.world.listeners.append(lambda node, heard, _: gone.append(node) if isinstance(heard, LinkPruned) else None)
        assert run.go().went_well
    assert gone

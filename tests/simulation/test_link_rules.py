"""Nodes that say how many links they may have, where they stand and whom they cannot reach: what repairs make of it."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from omen.fleet.designing import FleetDesign, design_fleet
from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import MILLISECOND, SECOND
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import LinkRules
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Network, World

NODES, TOPICS, ZONES = 24, 8, 3
NAMES = [f"n{number}" for number in range(NODES)]
NEWCOMERS = [f"x{number}" for number in range(4)]
CONFIG = Config(
    gossip_period=200 * MILLISECOND, standby_timeout=1500 * MILLISECOND, audit=True, audit_period=2 * SECOND
)


class Fleet:
    """A designed fleet whose nodes have rules. `judge` knows nothing of how links are chosen."""

    def __init__(self, seed: int, cap: int, bans: float, zones: bool = True, said: bool = True) -> None:
        draw = self.draw = random.Random(seed)
        self.everyone = [*NAMES, *NEWCOMERS]
        self.topics = {name: draw.sample([f"t{t}" for t in range(TOPICS)], 3) for name in self.everyone}
        self.banned = {pair for pair in combinations(sorted(self.everyone), 2) if draw.random() < bans}
        self.cap = cap
        self.zone = {name: f"z{draw.randrange(ZONES)}" if zones else "" for name in self.everyone}
        network = Network(latency=uniform(500, 2_000), detection=uniform(20_000, 40_000))
        self.world = World(seed, network)
        self.population = Population(self.world, CONFIG, choose_links, contacts=2)
        for name in self.everyone if said else ():
            # Said at one end alone: the other learns it.
            forbid = tuple(sorted(place_of(other) for one, other in self.banned if one == name))
            self.population.link_rules[name] = LinkRules(cap, self.zone[name], forbid)
        interests = Interests.from_pairs([(name, topic) for name in NAMES for topic in self.topics[name]])
        rules = FleetRules.from_labels(
            NAMES,
            dict.fromkeys(NAMES, cap) if cap else {},
            links=[LinkRule(u, v, PairRule.FORBID) for u, v in self.banned if {u, v} <= set(NAMES)],
        )
        self.population.set_up(interests, design_fleet(interests, rules, FleetDesign(3.0)))
        self.run(3)
        self.first_links = self.population.links()
        assert self.judge() == ([], set())

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.world.run_until(self.world.now + SECOND // 10)
            labels = self.population.labels
            links = {tuple(sorted((str(labels[u]), str(labels[v])))) for u, v in self.population.links()}
            assert links.isdisjoint(self.banned), "a banned pair is linked"

    def judge(self) -> tuple[list[str], set[str]]:
        """The split topics, and the nodes above their caps."""
        interests, overlay = self.population.snapshot()
        quality = check_overlay(interests, overlay)
        above = {
            str(interests.nodes[code]) for code, degree in enumerate(overlay.degrees.tolist()) if 0 < self.cap < degree
        }
        return [] if quality.holds else ["split"], above

    def churn(self, events: int) -> None:
        draw, members, absent = self.draw, list(NAMES), list(NEWCOMERS)
        for _ in range(events):
            what = draw.choice(["crash", "leave", "join"] if absent else ["crash", "leave"])
            if what == "join":
                name = absent.pop()
                members.append(name)
                self.population.join(name, self.topics[name])
            else:
                name = members.pop(draw.randrange(len(members)))
                (self.population.crash if what == "crash" else self.population.leave)(name)
            self.run(5)


@pytest.mark.parametrize("seed", range(5))
def test_with_room_in_the_fleet_caps_and_bans_hold_and_topics_stay_connected(seed: int) -> None:
    fleet = Fleet(seed, cap=4, bans=0.15)
    fleet.churn(8)
    assert fleet.judge() == ([], set())
    assert all(core.status().links_above_max == 0 for core in fleet.population.cores.values())


def test_nodes_that_say_nothing_are_linked_against_the_rules() -> None:
    fleet = Fleet(0, cap=4, bans=0.15, said=False)
    with pytest.raises(AssertionError, match="banned"):
        fleet.churn(8)


@pytest.mark.parametrize("event", ["crash", "leave"])
def test_where_caps_cannot_be_kept_they_are_exceeded_by_one_and_that_is_told(event: str) -> None:
    """A star of four: to connect its points takes two links, and so one of them has two."""
    names = ["hub", "a", "b", "c"]
    population = Population(World(1), CONFIG, choose_links)
    population.link_rules = {name: LinkRules(1) for name in names[1:]}
    interests = Interests.from_pairs([(name, "t") for name in names])
    population.set_up(interests, Overlay.from_links(interests.nodes, [("hub", name) for name in names[1:]]))
    population.world.run_until(2 * SECOND)
    (population.crash if event == "crash" else population.leave)("hub")
    population.world.run_until(10 * SECOND)
    interests, overlay = population.snapshot()
    assert check_overlay(interests, overlay).holds
    assert sorted(overlay.degrees.tolist()) == [1, 1, 2]
    assert sum(population.cores[node].status().links_above_max for node in population.members()) == 1


def test_a_newcomer_is_linked_to_those_that_have_room() -> None:
    """All have its topic; without a cap the lowest or lightest would do."""
    names = [f"n{number}" for number in range(8)]
    population = Population(World(2), CONFIG, choose_links)
    population.link_rules = {name: LinkRules(2 if number else 1) for number, name in enumerate(names[:-1])}
    interests = Interests.from_pairs([(name, "t") for name in names])
    population.set_up(interests, Overlay.from_links(interests.nodes, list(pairwise(names))))
    population.world.run_until(3 * SECOND)
    population.join("x", ["t"])
    population.world.run_until(13 * SECOND)
    assert {population.labels[node] for node in population.cores[population.place("x")].links()} == {"n7"}


def test_links_stay_within_zones_where_they_can() -> None:
    def between(zones: bool) -> int:
        fleet = Fleet(2, cap=0, bans=0.0, zones=zones)
        fleet.churn(8)
        assert fleet.judge() == ([], set())
        labels, places = fleet.population.labels, Fleet(2, cap=0, bans=0.0).zone
        before = fleet.first_links
        return sum(places[str(labels[u])] != places[str(labels[v])] for u, v in fleet.population.links() - before)

    assert between(zones=True) < between(zones=False)

"""Nodes of setting 2 are dispensable in random clusters, also beside others, within limits and where hosts refuse."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omen.protocol.events import SECOND
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import LinkRules
from omen.sim.running import Run
from omen.sim.scenario import ConfigSpec, NodeSpec, OverlaySpec, Scenario
from simulation.dispensable import WORDS_OF_LINKS, Case

Links = Sequence[tuple[str, str]]
MET = [f"m{number}" for number in range(12)]
RING = [f"b{number}" for number in range(12)]


@pytest.mark.parametrize("seed", range(3))
def test_nodes_are_dispensable_at_rest_and_nothing_is_proposed_any_more(seed: int) -> None:
    assert not Case(seed).go()


def cuts_and_proposals(links: Links, forbidden: Links) -> tuple[int, int]:
    """How many topics node x cuts in the end, as it says, and what is said of links in 20 s then."""
    names = sorted({name for link in links for name in link})
    config = ConfigSpec(detector=True, audit=True, connectivity=2, connectivity_ms=500.0)
    nodes = {name: NodeSpec(topics=("t",)) for name in names}
    run = Run(Scenario(nodes=nodes, overlay=OverlaySpec(links=tuple(links)), config=config, until_s=10.0), 1)
    for name in names:
        barred = tuple(sorted(place_of(other) for one, other in forbidden if one == name))
        run.population.link_rules[name] = LinkRules(forbid=barred)
    assert not run.go().complaints()
    world, cores = run.world, run.population.cores
    world.run_until(world.now + 60 * SECOND)
    before = dict(world.messages)
    world.run_until(world.now + 20 * SECOND)
    told = sum(world.messages[word] - before.get(word, 0) for word in WORDS_OF_LINKS)
    return cores[place_of("x")].status().cut_topics, told


def test_a_way_is_found_where_the_links_that_the_greedy_rule_takes_are_forbidden() -> None:
    """Of a star with four leaves three links remain, and join them."""
    links = [("x", leaf) for leaf in "abcd"]
    assert cuts_and_proposals(links, []) == (0, 0)
    assert cuts_and_proposals(links, [("a", "b"), ("a", "c"), ("c", "d")]) == (0, 0)


def test_the_one_link_that_is_allowed_is_found_however_far_off() -> None:
    """Node s may be linked to one node of a ring alone, on its other side."""
    ring = [(one, RING[(place + 1) % len(RING)]) for place, one in enumerate(RING)]
    forbidden = [("s", other) for other in RING if other != "b6"]
    assert cuts_and_proposals([*ring, ("x", "b0"), ("x", "s")], forbidden) == (0, 0)


@pytest.mark.parametrize("by_them", [True, False])
def test_where_no_link_is_allowed_none_is_proposed_and_the_node_says_that_it_cuts(by_them: bool) -> None:
    links = [("x", "s"), ("x", "n"), *((other, met) for met in MET for other in ("n", "m0") if met != other)]
    others = [*MET, "n"]
    forbidden = [(other, "s") for other in others] if by_them else [("s", other) for other in others]
    assert cuts_and_proposals(links, forbidden) == (1, 0)

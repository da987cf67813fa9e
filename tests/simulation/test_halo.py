"""How far around the shadow set a coordinator sees decides which links it makes for nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from omen.sim.reading import parse_scenario
from omen.sim.running import Run

# left and right lose the node between them; they are still connected, through one, two or three others.
DETOUR = """
until_s = 12.0

[config]
resilience = 2
coverage = 0
halo_hops = {hops}

[nodes]
lost = {{ topics = ["t"] }}
left = {{ topics = ["t"] }}
right = {{ topics = ["t"] }}
{others}

[overlay]
links = [["left", "lost"], ["lost", "right"], {links}]

[[events]]
at = 4.0
crash = "lost"

[[expect]]
by = 12.0
connected = true
"""


def links_made(between: int, hops: int, seed: int = 0) -> int:
    names = [f"n{number}" for number in range(between)]
    way = ["left", *names, "right"]
    others = "\n".join(f'{name} = {{ topics = ["t"] }}' for name in names)
    links = ", ".join(f'["{one}", "{other}"]' for one, other in pairwise(way))
    run = Run(parse_scenario(DETOUR.format(hops=hops, others=others, links=links)), seed)
    outcome = run.go()
    assert outcome.complaints() == []
    return sum(len(repair.links) for repair in outcome.repairs if repair.node == "lost")


@pytest.mark.parametrize(
    ("between", "hops", "made"), [(1, 0, 1), (1, 1, 0), (2, 1, 1), (2, 2, 0), (4, 2, 1), (4, 3, 0)]
)
def test_a_link_is_made_only_where_the_halo_shows_no_other_way(between: int, hops: int, made: int) -> None:
    assert links_made(between, hops) == made


def test_a_way_that_ends_nowhere_costs_a_link_and_nothing_else() -> None:
    text = DETOUR.format(hops=4, others='stub = { topics = ["t"] }', links='["left", "stub"]')
    outcome = Run(parse_scenario(text), 1).go()
    assert outcome.complaints() == []
    assert len(outcome.repairs[0].links) == 1

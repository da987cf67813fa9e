"""The rule of live nodes within caps, zones and bans: the literal one, and beyond caps no more than a topic needs."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from omen.kernels.engine import NO_LIMIT, LinkLimits, choose_small, choose_within
from reference.greedy import Link, Topics, all_pairs, topic_components
from reference.instances import tiny_topics
from reference.ruled import FleetRules, construct_ruled

RHOS = [0.0, 1.0, 3.0, math.inf]
SIGMAS = [1.0, 1.5, 2.0, math.inf]


def split(topics_of: Topics, links: set[Link]) -> set[int]:
    return {topic for topic, pieces in topic_components(topics_of, links).items() if len(set(pieces.values())) > 1}


def pieces(topics_of: Topics, links: set[Link]) -> int:
    return sum(len(set(found.values())) for found in topic_components(topics_of, links).values())


def plan(topics_of: Topics, rho: float, limits: LinkLimits, centre: int = -1) -> list[Link]:
    rows = [sorted(topics_of[node]) for node in sorted(topics_of)]
    return choose_within(
        rows, [[node] * len(row) for node, row in enumerate(rows)], [0] * len(rows), rho, limits, centre
    )


@settings(max_examples=150, deadline=None)
@given(tiny_topics().map(lambda drawn: drawn[0]), st.sampled_from(RHOS), st.sampled_from(SIGMAS), st.data())
def test_within_caps_the_links_are_those_of_the_literal_rule_and_beyond_them_bans_hold(
    topics_of: Topics, rho: float, sigma: float, data: DataObject
) -> None:
    nodes = len(topics_of)
    caps = data.draw(st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=nodes, max_size=nodes))
    zones = data.draw(st.lists(st.sampled_from(["", "n", "s"]), min_size=nodes, max_size=nodes))
    pairs = sorted(all_pairs(topics_of))
    banned = data.draw(
        st.frozensets(st.sampled_from(pairs), max_size=len(pairs) // 2) if pairs else st.just(frozenset())
    )
    costs = {(u, v): 1.0 if zones[u] == zones[v] else 2.0 for u, v in pairs}
    rules = FleetRules(
        {node: cap for node, cap in enumerate(caps) if cap is not None}, banned, costs=costs, sigma=sigma
    )
    literal = construct_ruled(topics_of, rho, rules)
    limits = LinkLimits([NO_LIMIT if cap is None else cap for cap in caps], zones, banned, sigma)
    found = plan(topics_of, rho, limits)
    assert found[: len(literal)] == literal
    assert banned.isdisjoint(found)
    assert split(topics_of, set(found)) == split(topics_of, set(pairs) - banned), "only bans leave a topic split"
    if pieces(topics_of, set(literal)) == pieces(topics_of, set(found)):
        assert found == literal and limits.excess_of(found) == 0


@settings(max_examples=100, deadline=None)
@given(tiny_topics().map(lambda drawn: drawn[0]), st.sampled_from(RHOS), st.data())
def test_without_limits_it_is_the_plain_rule(topics_of: Topics, rho: float, data: DataObject) -> None:
    rows = [sorted(topics_of[node]) for node in sorted(topics_of)]
    labels = [[node] * len(row) for node, row in enumerate(rows)]
    centre = data.draw(st.integers(-1, len(rows) - 1))
    limits = LinkLimits([NO_LIMIT] * len(rows), ["z"] * len(rows))
    assert plan(topics_of, rho, limits, centre) == choose_small(rows, labels, [0] * len(rows), rho, centre)

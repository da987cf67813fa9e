"""The engine chooses, under the rules of a fleet, the links of the literal algorithm, in the same order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from omen.interests import Interests
from omen.kernels.engine import BARRED, TUNED, Instance, PairRules, Tuning, choose_links, choose_ruled_links, unlinked
from reference.greedy import Link, Topics, all_pairs
from reference.instances import as_interests, as_topics, component_labels, random_interests, tiny_topics
from reference.ruled import FleetRules, construct_ruled

RHOS = [0.0, 1.0, 1.5, 3.0, 8.0, math.inf]
SIGMAS = [1.0, 1.5, 2.0, 4.0, math.inf]
PATHS = [Tuning(cache, dense) for cache in (1, 2, 64) for dense in (0, 4, 1000, -1000)]
KINDS = ("caps", "forbidden", "present", "zone costs", "link costs")


def pair_rules(nodes: int, rules: FleetRules, zones: list[int], zone_costs: dict[tuple[int, int], float]) -> PairRules:
    """The same rules for the engine: pairs that differ from their zones stand by themselves."""
    costs = sorted({1.0, *zone_costs.values(), *rules.costs.values()})
    count = max([0, *zones]) + 1
    table = np.zeros((count, count), np.int32)
    for one in range(count):
        for other in range(count):
            table[one, other] = costs.index(zone_costs.get((min(one, other), max(one, other)), 1.0))
    own: list[tuple[int, int, int]] = []
    for u, v in sorted(all_pairs(range(nodes))):
        group = BARRED if (u, v) in rules.forbidden else costs.index(rules.costs.get((u, v), 1.0))
        if group != table[zones[u], zones[v]]:
            own.append((u, v, group))
    offsets = np.searchsorted([u for u, _, _ in own], np.arange(nodes + 1)).astype(np.int64)
    nodes_of, groups = (np.array([row[i] for row in own], np.int32) for i in (1, 2))
    return PairRules(np.array(zones, np.int32), table, offsets, nodes_of, groups, rules.sigma)


def engine_links(
    interests: Interests, rho: float, rules: FleetRules, of_pairs: PairRules, path: Tuning = TUNED
) -> list[Link]:
    nodes = interests.node_count
    degrees = np.array([sum(node in link for link in rules.present) for node in range(nodes)], np.int32)
    caps = np.array([rules.caps.get(node, nodes) for node in range(nodes)], np.int32)
    labels = component_labels(interests, as_topics(interests), set(rules.present))
    instance = Instance(interests, labels, degrees, caps=caps if rules.caps else None)
    return [(u, v) for u, v in choose_ruled_links(instance, rho, of_pairs, path).tolist()]


@st.composite
def fleets(draw: DrawFn, topics_of: Topics, kinds: tuple[str, ...]) -> tuple[FleetRules, PairRules]:
    """Rules of these kinds alone."""
    nodes = len(topics_of)
    pairs = sorted(all_pairs(topics_of))
    some_pairs = st.frozensets(st.sampled_from(pairs), max_size=len(pairs) // 2) if pairs else st.just(frozenset())
    caps = dict(enumerate(draw(st.lists(st.integers(0, 5), min_size=nodes, max_size=nodes)))) if "caps" in kinds else {}
    forbidden = draw(some_pairs) if "forbidden" in kinds else frozenset()
    present = draw(some_pairs) - forbidden if "present" in kinds else frozenset()
    prices = st.sampled_from([0.0, 1.0, 2.5, 7.0])
    zones = draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)) if "zone costs" in kinds else [0] * nodes
    between = [(one, other) for one in range(3) for other in range(one, 3)]
    zone_costs = draw(st.dictionaries(st.sampled_from(between), prices)) if "zone costs" in kinds else {}
    costs = {(u, v): zone_costs.get((min(zones[u], zones[v]), max(zones[u], zones[v])), 1.0) for u, v in pairs}
    if "link costs" in kinds:
        costs |= {pair: draw(prices) for pair in draw(some_pairs)}
    rules = FleetRules(caps, forbidden, present, costs, draw(st.sampled_from(SIGMAS)))
    return rules, pair_rules(nodes, rules, zones, zone_costs)


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS], ids=lambda kinds: " and ".join(kinds))
@settings(max_examples=60, deadline=None)
@given(instance=tiny_topics(max_nodes=12), data=st.data(), rho=st.sampled_from(RHOS), path=st.sampled_from(PATHS))
def test_rules_equal_the_literal_algorithm_with_them(kinds, instance, data: DataObject, rho, path):
    topics_of, topic_count = instance
    rules, of_pairs = data.draw(fleets(topics_of, kinds))
    expected = construct_ruled(topics_of, rho, rules)
    interests = as_interests(topics_of, topic_count)
    chosen = engine_links(interests, rho, rules, of_pairs, path)
    assert chosen == expected
    assert not rules.forbidden & set(chosen)
    degrees = [sum(node in link for link in {*chosen, *rules.present}) for node in topics_of]
    held = [sum(node in link for link in rules.present) for node in topics_of]
    assert all(degrees[u] <= max(cap, held[u]) for u, cap in rules.caps.items())


LARGER = {
    "90 nodes": random_interests(90, 40, 2, 5, 0.0, seed=1),
    "80 nodes of many topics, some popular": random_interests(80, 20, 3, 10, 0.7, seed=3),
}


@pytest.mark.parametrize("rho", [0.0, 3.0, math.inf])
@pytest.mark.parametrize("name", LARGER)
def test_larger_fleets_equal_the_literal_algorithm(name, rho):
    interests = LARGER[name]
    nodes = interests.node_count
    draw = np.random.default_rng(5)
    pairs = sorted(all_pairs(range(nodes)))
    forbidden = frozenset(pair for pair in pairs if draw.random() < 0.1)
    present = frozenset(pair for pair in pairs if draw.random() < 0.004) - forbidden
    zones = draw.integers(0, 3, nodes).tolist()
    zone_costs = {(0, 1): 4.0, (0, 2): 9.0, (1, 2): 4.0}
    costs = {(u, v): zone_costs.get((min(zones[u], zones[v]), max(zones[u], zones[v])), 1.0) for u, v in pairs}
    rules = FleetRules({node: 3 + node % 4 for node in range(nodes)}, forbidden, present, costs, 2.0)
    of_pairs = pair_rules(nodes, rules, zones, zone_costs)
    expected = construct_ruled(as_topics(interests), rho, rules)
    assert len(expected) > 30
    for path in (TUNED, Tuning(3, 0), Tuning(1, -1000)):
        assert engine_links(interests, rho, rules, of_pairs, path) == expected


@pytest.mark.parametrize("rho", RHOS)
def test_no_rules_are_the_plain_engine(rho):
    interests = LARGER["80 nodes of many topics, some popular"]
    nothing = pair_rules(interests.node_count, FleetRules(), [0] * interests.node_count, {})
    for sigma in SIGMAS:
        plain = choose_links(unlinked(interests), rho)
        assert (choose_ruled_links(unlinked(interests), rho, replace(nothing, sigma=sigma)) == plain).all()

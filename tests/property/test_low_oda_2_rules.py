"""Low-ODA-2 under the rules of a fleet: the links of the literal algorithm, rules kept, what is left cut told."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from omen.fleet import FleetDesign, design_fleet, design_within, find_relaxation, find_violations
from omen.fleet.bypassing import bypass_within, short_topics
from omen.interests import Interests
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule
from omen.systems import design_overlay
from reference import ruled
from reference.greedy import Link
from reference.instances import as_interests, as_topics, random_interests, tiny_topics
from reference.low_oda_2 import low_oda_2_within

KINDS = ("caps", "forbidden", "present", "zone costs", "link costs")


@st.composite
def fleets(draw: DrawFn, nodes: int, kinds: tuple[str, ...]) -> FleetRules:
    """Rules of these kinds alone."""
    pairs = list(combinations(range(nodes), 2))
    some = st.frozensets(st.sampled_from(pairs), max_size=len(pairs) // 2) if pairs else st.just(frozenset())
    caps = draw(st.dictionaries(st.integers(0, nodes - 1), st.integers(0, 5))) if "caps" in kinds else {}
    forbidden = draw(some) if "forbidden" in kinds else frozenset()
    present = draw(some) - forbidden if "present" in kinds else frozenset()
    prices = st.sampled_from([0.0, 1.0, 2.5, 7.0])
    costs = {pair: draw(prices) for pair in draw(some)} if "link costs" in kinds else {}
    zones = {node: draw(st.sampled_from("ns")) for node in range(nodes)} if "zone costs" in kinds else {}
    both = {"n", "s"} <= set(zones.values())
    words = dict.fromkeys(forbidden, PairRule.FORBID) | dict.fromkeys(present, PairRule.KEEP)
    return FleetRules.from_labels(
        np.arange(nodes),
        caps=caps,
        zones=zones,
        zone_costs={("n", "s"): draw(prices)} if both else {},
        links=[LinkRule(u, v, words.get((u, v), PairRule.NONE), costs.get((u, v))) for u, v in {*words, *costs}],
    )


def literal(rules: FleetRules, sigma: float) -> ruled.FleetRules:
    """The same rules as the oracle takes them."""
    pairs = list(combinations(range(rules.nodes.size), 2))
    u, v = (np.array([pair[end] for pair in pairs], dtype=np.int32) for end in (0, 1))
    return ruled.FleetRules(
        {node: int(cap) for node, cap in enumerate(rules.caps)},
        frozenset(zip(*(ends.tolist() for ends in rules.pairs_of(PairRule.FORBID)), strict=True)),
        frozenset(links_of(rules.held)),
        dict(zip(pairs, rules.costs_of(u, v).tolist(), strict=True)),
        sigma,
    )


def links_of(overlay) -> set[Link]:
    return set(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))


def chosen(interests: Interests, rules: FleetRules, design: FleetDesign) -> set[Link]:
    """Without the search that leads links another way where caps stop the greedy design: the oracle has none."""
    return links_of(bypass_within(interests, rules, design, design_fleet(interests, rules, design)))


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS], ids=lambda kinds: " and ".join(kinds))
@settings(max_examples=40, deadline=None)
@given(
    instance=tiny_topics(max_nodes=10, max_topics=5),
    data=st.data(),
    rho=st.sampled_from([1.0, 3.0, 10.0]),
    sigma=st.sampled_from([1.0, 2.0, float("inf")]),
)
def test_low_oda_2_under_rules_equals_its_oracle(kinds, instance, data: DataObject, rho, sigma):
    topics_of, topic_count = instance
    interests = as_interests(topics_of, topic_count)
    rules = data.draw(fleets(interests.node_count, kinds))
    expected = low_oda_2_within(topics_of, rho, literal(rules, sigma))
    assert len(set(expected)) == len(expected)
    assert chosen(interests, rules, FleetDesign(rho, sigma, k=2)) == set(expected)


def test_larger_fleets_equal_the_oracle():
    interests = random_interests(60, 12, 3, 6, 0.0, seed=1)
    draw = np.random.default_rng(2)
    pairs = [pair for pair in combinations(range(60), 2) if draw.random() < 0.12]
    words = [
        LinkRule(u, v, PairRule.KEEP if place % 20 == 0 else PairRule.FORBID) for place, (u, v) in enumerate(pairs)
    ]
    rules = FleetRules.from_labels(
        np.arange(60),
        caps={node: 6 + node % 5 for node in range(60)},
        zones={node: "nsw"[node % 3] for node in range(60)},
        zone_costs={("n", "s"): 4.0, ("n", "w"): 9.0},
        links=words,
    )
    expected = low_oda_2_within(as_topics(interests), 3.0, literal(rules, 2.0))
    assert chosen(interests, rules, FleetDesign(3.0, 2.0, k=2)) == set(expected)
    assert len(expected) > 100


@settings(max_examples=60, deadline=None)
@given(tiny_topics(max_nodes=8, max_topics=4), st.data(), st.sampled_from([1.0, 3.0]))
def test_rules_are_kept_and_what_is_said_to_be_enough_is(instance, data: DataObject, rho):
    interests = as_interests(*instance)
    rules = data.draw(fleets(interests.node_count, KINDS))
    design = FleetDesign(rho, k=2)
    overlay = design_within(interests, rules, design)
    violations = find_violations(overlay, rules)
    assert violations.forbidden.link_count == violations.missing.link_count == 0
    assert (overlay.degrees <= np.maximum(rules.caps, rules.held.degrees)).all()
    short = short_topics(interests, overlay, 2)
    assert bool(short) == (not check_overlay(interests, overlay, k=2).holds)
    if short or violations:
        relaxation = find_relaxation(interests, rules, design)
        assert relaxation is not None
        again = design_within(interests, relaxation.rules, design)
        assert check_overlay(interests, again, k=2).holds
        assert not find_violations(again, relaxation.rules)


def test_rules_that_do_not_bind_change_nothing():
    interests = random_interests(60, 20, 2, 6, 1.0, seed=2)
    plain = design_overlay(interests, "low-oda-2")
    rules = FleetRules.from_labels(interests.nodes, caps=dict.fromkeys(range(60), int(plain.degrees.max())))
    assert design_within(interests, rules, FleetDesign(3.0, k=2)) == plain

"""Designs under rules keep them, and what is said of an infeasible fleet is true."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from omen.fleet import FleetDesign, design_fleet, design_within, find_certificates, find_relaxation, find_violations
from omen.fleet.certificates import BannedApart, Certificate, HeldAboveCap, NodeShort, TopicsShort, split_topics
from omen.interests import Interests
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule
from omen.systems import design_overlay
from reference.instances import as_interests, random_interests, tiny_topics


@st.composite
def rules_for(draw: DrawFn, nodes: int) -> FleetRules:
    caps = draw(st.dictionaries(st.integers(0, nodes - 1), st.integers(0, 3)))
    pairs = list(combinations(range(nodes), 2))
    words = draw(st.dictionaries(st.sampled_from(pairs), st.sampled_from([1, 1, 1, 2, 3]))) if pairs else {}
    return FleetRules.from_labels(
        np.arange(nodes), caps=caps, links=[LinkRule(u, v, PairRule(rule)) for (u, v), rule in words.items()]
    )


def feasible(interests: Interests, rules: FleetRules) -> bool:
    """By trying all sets of links: for a handful of nodes."""
    banned = set(zip(*(end.tolist() for end in rules.pairs_of(PairRule.FORBID)), strict=True))
    held = set(zip(rules.held.u.tolist(), rules.held.v.tolist(), strict=True))
    free = [pair for pair in combinations(range(interests.node_count), 2) if pair not in banned | held]
    for count in range(len(free) + 1):
        for chosen in combinations(free, count):
            links = [*held, *chosen]
            degrees = np.bincount([end for link in links for end in link], minlength=interests.node_count)
            if (degrees <= rules.caps).all() and _all_connected(interests, links):
                return True
    return False


def _all_connected(interests: Interests, links: list[tuple[int, int]]) -> bool:
    for topic in range(interests.topic_count):
        members = set(interests.subscribers_of(topic).tolist())
        reached = set(sorted(members)[:1])
        while True:
            more = {b for a, b in [*links, *((v, u) for u, v in links)] if a in reached and b in members} - reached
            if not more:
                break
            reached |= more
        if reached != members:
            return False
    return True


def holds(proof: Certificate, interests: Interests, rules: FleetRules) -> bool:
    """Check a certificate by its own words, from the tables alone."""
    wants = {node: set(interests.topics_of(node).tolist()) for node in range(interests.node_count)}
    banned = {frozenset(p) for p in zip(*(end.tolist() for end in rules.pairs_of(PairRule.FORBID)), strict=True)}
    held = [{u, v} for u, v in zip(rules.held.u.tolist(), rules.held.v.tolist(), strict=True)]
    labels = interests.topics.tolist()

    def best_of(node: int, topics: set[int]) -> int:
        mine = [next(iter(link - {node})) for link in held if node in link]
        others = [x for x in wants if x != node and x not in mine and frozenset((node, x)) not in banned]
        worth = sorted((len(wants[node] & wants[x] & topics) for x in others), reverse=True)
        room = max(int(rules.caps[node]) - len(mine), 0)
        return sum(len(wants[node] & wants[x] & topics) for x in mine) + sum(worth[:room])

    match proof:
        case HeldAboveCap(node, cap, links):
            return cap == rules.caps[node] and links == sum(node in link for link in held) and links > cap
        case BannedApart(topic, nodes, others):
            members = {node for node in wants if labels.index(topic) in wants[node]}
            rest = members - set(nodes)
            crossing = {frozenset((u, v)) for u in nodes for v in rest}
            return set(nodes) < members and len(rest) == others > 0 and crossing <= banned
        case NodeShort(node, cap, topics, reach):
            shared = {t for t in wants[node] if sum(t in other for other in wants.values()) > 1}
            return cap == rules.caps[node] and topics == len(shared) and best_of(node, shared) == reach < topics
        case TopicsShort(topics, subscribers, needed, reach):
            codes = {labels.index(topic) for topic in topics}
            members = [node for node in wants if wants[node] & codes]
            to_remove = sum(sum(code in wants[node] for node in wants) - 1 for code in codes)
            most = sum(best_of(node, codes) for node in members) // 2
            return len(members) == subscribers and needed == to_remove and most == reach < needed


@settings(max_examples=60, deadline=None)
@given(tiny_topics(max_nodes=9), st.data(), st.sampled_from([0.0, 3.0, math.inf]))
def test_rules_are_kept_and_certificates_are_true(instance, data: DataObject, rho):
    topics_of, topic_count = instance
    interests = as_interests(topics_of, topic_count)
    rules = data.draw(rules_for(interests.node_count))
    overlay = design_within(interests, rules, FleetDesign(rho))
    violations = find_violations(overlay, rules)
    assert violations.forbidden.link_count == violations.missing.link_count == 0
    held = rules.held.degrees
    assert (overlay.degrees <= np.maximum(rules.caps, held)).all()
    split = split_topics(interests, overlay)
    assert bool(split) == (not check_overlay(interests, overlay).topic_connected)
    proofs = find_certificates(interests, rules, split)
    assert all(holds(proof, interests, rules) for proof in proofs)
    if split or violations:
        relaxation = find_relaxation(interests, rules, FleetDesign(rho))
        assert relaxation is not None
        again = design_within(interests, relaxation.rules, FleetDesign(rho))
        assert check_overlay(interests, again).topic_connected
        assert not find_violations(again, relaxation.rules)
        assert relaxation.lines()


@settings(max_examples=60, deadline=None)
@given(tiny_topics(max_nodes=5, max_topics=3), st.data())
def test_what_is_proved_infeasible_is(instance, data: DataObject):
    topics_of, topic_count = instance
    interests = as_interests(topics_of, topic_count)
    rules = data.draw(rules_for(interests.node_count))
    overlay = design_within(interests, rules, FleetDesign(3.0))
    split = split_topics(interests, overlay)
    if not split and not find_violations(overlay, rules):
        assert feasible(interests, rules)
    elif find_certificates(interests, rules, split):
        assert not feasible(interests, rules)


@pytest.mark.parametrize("algorithm", ["gm", "low-oda", "minmax-oda"])
def test_a_cap_that_does_not_bind_changes_nothing(algorithm):
    interests = random_interests(120, 30, 2, 8, 0.7, seed=3)
    plain = design_overlay(interests, algorithm)
    highest = int(plain.degrees.max())
    rules = FleetRules.from_labels(interests.nodes, caps=dict.fromkeys(range(120), highest))
    rho = {"gm": 0.0, "low-oda": 3.0, "minmax-oda": math.inf}[algorithm]
    assert design_fleet(interests, rules, FleetDesign(rho)) == plain


def test_dear_links_are_few_where_zones_are_dear():
    interests = random_interests(120, 30, 2, 8, 0.7, seed=4)
    zones = {node: "nsw"[node % 3] for node in range(120)}
    costs = dict.fromkeys((("n", "s"), ("n", "w"), ("s", "w")), 10.0)
    rules = FleetRules.from_labels(interests.nodes, zones=zones, zone_costs=costs)
    between = []
    for sigma in (1.0, 2.0, 8.0):
        overlay = design_fleet(interests, rules, FleetDesign(3.0, sigma))
        assert check_overlay(interests, overlay).topic_connected
        between.append(int((rules.zones[overlay.u] != rules.zones[overlay.v]).sum()))
    assert between[0] > 2 * between[1] > 2 * between[2] > 0


def test_where_caps_stop_the_greedy_design_links_are_led_another_way():
    interests = random_interests(40, 12, 2, 4, 0.5, seed=6)
    stuck = rerouted = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        rules = FleetRules.from_labels(interests.nodes, caps={node: int(draw.integers(3, 5)) for node in range(40)})
        if split_topics(interests, design_fleet(interests, rules, FleetDesign(3.0))):
            stuck += 1
            found = design_within(interests, rules, FleetDesign(3.0))
            assert not find_violations(found, rules)
            rerouted += not split_topics(interests, found)
    assert rerouted == stuck > 0

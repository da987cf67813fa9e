"""A plan leads from one overlay to another; no prefix of it splits a topic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from omen.errors import InvalidInput
from omen.fleet import FleetDesign, design_fleet, design_within
from omen.fleet.planning import Plan, make_plan
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule, no_rules
from omen.systems import design_overlay
from omen.workloads import generate_interests
from reference.instances import as_interests, tiny_topics

THREE = Interests.from_pairs([(node, 0) for node in range(3)])


def excess_after(plan: Plan, rules: FleetRules, steps: int) -> int:
    return int((plan.links_after(steps).degrees.astype(np.int64) - rules.caps).max(initial=0))


@settings(max_examples=80, deadline=None)
@given(tiny_topics(max_nodes=10, max_topics=5), st.data())
def test_no_prefix_of_a_plan_splits_a_topic(instance, data: DataObject):
    interests = as_interests(*instance)
    nodes = interests.node_count
    algorithms = st.sampled_from(["gm", "low-oda", "minmax-oda", "ring-pt", "cd-oda"])
    start, target = (design_overlay(interests, data.draw(algorithms)) for _ in range(2))
    caps = {node: data.draw(st.integers(0, 2)) + int(target.degrees[node]) for node in range(nodes)}
    rules = FleetRules.from_labels(interests.nodes, caps=caps)
    plan = make_plan(interests, rules, start, target)
    assert plan.links_after(len(plan.steps)) == target
    assert len(set(plan.steps)) == len(plan.steps)
    worst = 0
    for count in range(len(plan.steps) + 1):
        assert check_overlay(interests, plan.links_after(count)).topic_connected
        if count and plan.steps[count - 1].make:
            ends = [plan.steps[count - 1].u, plan.steps[count - 1].v]
            worst = max(worst, *(int(plan.links_after(count).degrees[e]) - caps[e] for e in ends))
    assert plan.most_excess == worst


@settings(max_examples=40, deadline=None)
@given(tiny_topics(max_nodes=10, max_topics=5), st.randoms(use_true_random=False))
def test_steps_of_a_batch_can_be_done_in_any_order(instance, random):
    interests = as_interests(*instance)
    start, target = design_overlay(interests, "ring-pt"), design_overlay(interests, "low-oda")
    rules = FleetRules.from_labels(interests.nodes, caps={n: int(d) for n, d in enumerate(target.degrees)})
    plan = make_plan(interests, rules, start, target)
    steps = sorted(plan.steps, key=lambda step: (step.batch, random.random()))
    shuffled = Plan(plan.start, plan.target, tuple(steps), plan.excesses, plan.judged)
    for count in range(len(steps) + 1):
        assert check_overlay(interests, shuffled.links_after(count)).topic_connected


def test_a_thousand_nodes_step_by_step():
    """Caps as tight as the target's own degrees, so that links are dropped between those that are made."""
    interests = generate_interests(1000, 100, "zipf:1", "uniform:5:20", seed=7)
    target = design_overlay(interests, "low-oda")
    draw = np.random.default_rng(1)
    kept = draw.random(target.link_count) > 0.03
    part = Overlay.from_codes(interests.nodes, target.u[kept], target.v[kept])
    zones = {node: "ns"[node % 2] for node in range(1000)}
    dear = FleetRules.from_labels(interests.nodes, zones=zones, zone_costs={("n", "s"): 5})
    start = design_fleet(interests, dear, FleetDesign(3.0), start=part)
    caps = {node: max(int(start.degrees[node]), int(target.degrees[node])) for node in range(1000)}
    rules = FleetRules.from_labels(interests.nodes, caps=caps)
    plan = make_plan(interests, rules, start, target)
    assert len(plan.steps) > 100
    assert plan.batches > 2
    assert plan.most_excess <= 1
    for count in range(len(plan.steps) + 1):
        assert check_overlay(interests, plan.links_after(count)).topic_connected


def test_a_full_node_gives_up_a_link_before_it_takes_one():
    start, target = (Overlay.from_links(range(3), links) for links in ([(0, 1), (0, 2), (1, 2)], [(0, 1), (1, 2)]))
    plan = make_plan(THREE, no_rules(THREE.nodes), start, target)
    assert [(step.make, step.u, step.v) for step in plan.steps] == [(False, 0, 2)]


def test_a_cap_that_must_be_exceeded_is_told():
    """A path becomes the other path: a link more is needed at a node before one can go."""
    start, target = (Overlay.from_links(range(3), links) for links in ([(0, 1), (1, 2)], [(0, 1), (0, 2)]))
    rules = FleetRules.from_labels(range(3), caps={0: 2, 1: 2, 2: 1})
    plan = make_plan(THREE, rules, start, target)
    assert [(step.make, step.u, step.v) for step in plan.steps] == [(True, 0, 2), (False, 1, 2)]
    assert [(one.step, one.node, one.by) for one in plan.excesses] == [(1, 2, 1)]


def test_the_same_overlay_needs_no_step():
    overlay = Overlay.from_links(range(3), [(0, 1), (1, 2)])
    plan = make_plan(THREE, no_rules(THREE.nodes), overlay, overlay)
    assert (plan.steps, plan.batches, plan.most_excess) == ((), 0, 0)


@pytest.mark.parametrize(
    ("links", "rule", "complaint"),
    [
        ([(0, 1)], None, "leaves topic 0 split"),
        ([(0, 1), (1, 2)], LinkRule(0, 1, PairRule.FORBID), r"holds the forbidden link \(0, 1\)"),
        ([(0, 1), (1, 2)], LinkRule(0, 2, PairRule.REQUIRE), r"lacks the required link \(0, 2\)"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(links, rule, complaint):
    rules = FleetRules.from_labels(range(3), links=[rule] if rule else [])
    with pytest.raises(InvalidInput, match=complaint):
        make_plan(THREE, rules, Overlay.from_links(range(3), [(0, 1), (0, 2)]), Overlay.from_links(range(3), links))


def test_an_overlay_that_was_split_never_has_more_pieces():
    plan = make_plan(
        THREE,
        no_rules(THREE.nodes),
        Overlay.from_links(range(3), [(0, 1)]),
        design_within(THREE, no_rules(THREE.nodes), FleetDesign(3.0)),
    )
    assert plan.links_after(len(plan.steps)).link_count == 2

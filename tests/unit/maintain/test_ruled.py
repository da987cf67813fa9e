"""Maintainers within the rules of a fleet: caps, zones and bans are kept, and what is beyond a cap is said."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from omen.churn import Crash, Event, Join, Leave, Resubscribe
from omen.errors import InvalidInput
from omen.fleet import Within, find_violations
from omen.fleet.repairing import AboveCap
from omen.interests import Interests
from omen.maintain import MAINTAINERS, resume_maintainer, start_maintainer
from omen.maintain.maintainers import Maintainer
from omen.overlay import Overlay
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule
from reference.instances import random_interests

NODES, TOPICS = 60, 15
INTERESTS = random_interests(NODES, TOPICS, 2, 5, 0.6, seed=8)
BANNED = [pair for pair in combinations(range(NODES), 2) if (7 * pair[0] + 13 * pair[1]) % 10 == 0]
REQUIRED = next(pair for pair in combinations(range(NODES), 2) if pair not in BANNED)


def rules_at(cap: int, nodes: int = NODES) -> FleetRules:
    return FleetRules.from_labels(
        range(nodes),
        caps=dict.fromkeys(range(nodes), cap),
        zones={node: "nsw"[node % 3] for node in range(nodes)},
        zone_costs=dict.fromkeys((("n", "s"), ("n", "w"), ("s", "w")), 5.0),
        links=[*(LinkRule(u, v, PairRule.FORBID) for u, v in BANNED), LinkRule(*REQUIRED, PairRule.REQUIRE)],
    )


def churn(maintainer: Maintainer, draw: random.Random) -> list[Event]:
    """What happens at one instant: one or two events."""
    present = maintainer.interests().nodes.tolist()
    absent = [node for node in range(NODES) if node not in present]
    events: list[Event] = []
    for node in draw.sample(present, draw.choice((1, 1, 2))):
        topics = tuple(draw.sample(range(TOPICS), 3))
        events.append(draw.choice((Leave(0.0, node), Crash(0.0, node), Resubscribe(0.0, node, topics))))
    return [*events, *(Join(0.0, node) for node in absent[:1] if draw.random() < 0.7)]


def links_between_zones(overlay: Overlay) -> int:
    zones = overlay.nodes.astype(np.int64) % 3
    return int((zones[overlay.u] != zones[overlay.v]).sum())


@pytest.mark.parametrize("name", MAINTAINERS)
@pytest.mark.parametrize("cap", [6, 3])
def test_caps_bans_and_required_links_are_kept_and_what_is_beyond_a_cap_is_said(name: str, cap: int) -> None:
    maintainer = start_maintainer(name, INTERESTS, within=Within(rules_at(cap)), rho=3)
    draw, exceeded = random.Random(5), 0
    for _ in range(25):
        change = maintainer.apply(churn(maintainer, draw))
        interests, overlay = maintainer.interests(), maintainer.overlay()
        rules = rules_at(cap).restricted(interests.nodes)
        assert check_overlay(interests, overlay).topic_connected
        violations = find_violations(overlay, rules)
        assert violations.forbidden.link_count == violations.missing.link_count == 0
        above = [
            AboveCap(node, degree, cap)
            for node, degree in zip(overlay.nodes.tolist(), overlay.degrees.tolist(), strict=True)
            if degree > cap
        ]
        assert list(change.above) == above
        exceeded += len(above)
    assert (exceeded > 0) == (cap == 3)


@pytest.mark.parametrize("name", MAINTAINERS)
def test_without_rules_caps_bans_and_zones_would_not_be_kept(name: str) -> None:
    """The same events: so that the test above can fail."""
    ruled, free = start_maintainer(name, INTERESTS, within=Within(rules_at(6))), start_maintainer(name, INTERESTS)
    draw = random.Random(5)
    for _ in range(15):
        events = churn(ruled, draw)
        assert not ruled.apply(events).above
        assert free.apply(events).above == ()
    assert find_violations(free.overlay(), rules_at(6).restricted(free.interests().nodes))
    assert 2 * links_between_zones(ruled.overlay()) < links_between_zones(free.overlay())


@pytest.mark.parametrize("name", ["shadow", "naive", "lowoda-inc"])
def test_a_node_above_its_cap_comes_back_when_others_have_room(name: str) -> None:
    """The hub is lost: one of the weak nodes has to stand in, until there is a hub again."""
    star = Interests.from_pairs([(node, "x") for node in "abcd"])
    rules = FleetRules.from_labels("abcde", caps={"a": 1, "b": 1, "c": 3, "d": 1, "e": 3})
    links = Overlay.from_links("abcd", [("a", "c"), ("b", "c"), ("c", "d")])
    maintainer = start_maintainer(name, star, links, within=Within(rules))
    change = maintainer.leave("c")
    assert [(one.links, one.max_links) for one in change.above] == [(2, 1)]
    change = maintainer.join("e", ["x"])
    assert change.above == ()
    assert maintainer.overlay().links() == [("a", "e"), ("b", "e"), ("d", "e")]
    assert check_overlay(maintainer.interests(), maintainer.overlay()).topic_connected


def test_links_above_a_cap_that_topics_can_do_without_are_dropped() -> None:
    ring = Interests.from_pairs([(node, "x") for node in "abcd"])
    rules = FleetRules.from_labels("abcd", caps={"a": 2})
    links = Overlay.from_links("abcd", [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")])
    maintainer = start_maintainer("shadow", ring, links, within=Within(rules))
    change = maintainer.resubscribe("b", ["x", "y"])
    assert (len(change.removed), change.added, change.above) == (1, (), ())
    assert "a" in change.removed[0]


def test_a_required_link_is_not_dropped_for_a_cap() -> None:
    pair = Interests.from_pairs([(node, "x") for node in "abc"])
    links = [LinkRule("a", "b", PairRule.REQUIRE), LinkRule("a", "c", PairRule.KEEP)]
    maintainer = start_maintainer("naive", pair, within=Within(FleetRules.from_labels("abc", {"a": 1}, links=links)))
    assert maintainer.resubscribe("b", ["x", "y"]).above == (AboveCap("a", 2, 1),)
    assert maintainer.overlay().links() == [("a", "b"), ("a", "c")]


def test_a_topic_that_bans_cut_apart_stays_split_and_nothing_hangs() -> None:
    path = Interests.from_pairs([(node, "x") for node in "abc"])
    rules = FleetRules.from_labels("abc", links=[LinkRule("a", "c", PairRule.FORBID)])
    maintainer = start_maintainer("shadow", path, within=Within(rules))
    assert maintainer.leave("b").added == ()
    assert not check_overlay(maintainer.interests(), maintainer.overlay()).topic_connected
    assert len(maintainer.join("b", ["x"]).added) == 2


def test_a_resumed_maintainer_goes_on_within_the_rules_as_the_first_would_have() -> None:
    within = Within(rules_at(4))
    first = start_maintainer("shadow", INTERESTS, within=within)
    draw = random.Random(2)
    for _ in range(5):
        first.apply(churn(first, draw))
    second = resume_maintainer("shadow", first.snapshot(), workload=INTERESTS, within=within)
    for _ in range(5):
        events = churn(first, draw)
        one, other = first.apply(events), second.apply(events)
        assert (one.added, set(one.removed), one.above) == (other.added, set(other.removed), other.above)


@pytest.mark.parametrize("option", ["k", "rebalance"])
def test_what_knows_no_rules_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match="know no rules of a fleet"):
        start_maintainer("shadow", INTERESTS, within=Within(rules_at(4)), **{option: 2})


def test_a_maintainer_within_rules_does_not_rebalance() -> None:
    """Swaps go by degrees alone: they would make forbidden links and drop required ones."""
    maintainer = start_maintainer("shadow", INTERESTS, within=Within(rules_at(8)))
    with pytest.raises(InvalidInput, match="knows no rules of a fleet"):
        maintainer.rebalance(50)

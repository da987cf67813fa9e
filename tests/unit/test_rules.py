"""Rules of a fleet from labels."""

from __future__ import annotations

import numpy as np
import pytest

from omen.errors import InvalidInput
from omen.rules import FleetRules, LinkRule, PairRule


def test_costs_come_from_the_pair_then_from_the_zones():
    rules = FleetRules.from_labels(
        ["a", "b", "c"],
        zones={"a": "n", "b": "n", "c": "s"},
        zone_costs={("s", "n"): 4},
        links=[LinkRule("c", "b", cost=9), LinkRule("a", "b", PairRule.KEEP)],
    )
    assert rules.costs_of(np.array([0, 0, 2]), np.array([1, 2, 1])).tolist() == [1.0, 4.0, 9.0]
    assert rules.has_costs
    assert rules.held.links() == [("a", "b")]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"caps": {"a": -1}}, "0 links or more"),
        ({"caps": {"e": 1}}, "'e' is not among"),
        ({"links": [LinkRule("a", "a", PairRule.KEEP)]}, "linked to itself"),
        ({"links": [LinkRule("a", "b", PairRule.KEEP), LinkRule("b", "a", PairRule.FORBID)]}, "stands twice"),
        ({"links": [LinkRule("a", "b", cost=float("nan"))]}, "a cost is a number"),
        ({"zone_costs": {("n", "s"): 2}}, "no node in zone"),
        ({"zones": {"a": "n", "b": "s"}, "zone_costs": {("n", "s"): 2, ("s", "n"): 3}}, "two costs"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        FleetRules.from_labels(["a", "b"], **wrong)


def test_rules_for_other_nodes_are_those_of_the_nodes_in_common():
    rules = FleetRules.from_labels(
        ["a", "b", "c"],
        caps={"a": 1, "c": 2},
        zones={"a": "n", "b": "n", "c": "s"},
        zone_costs={("s", "n"): 4},
        links=[LinkRule("a", "b", PairRule.FORBID), LinkRule("a", "c", PairRule.KEEP)],
    )
    found = rules.restricted(np.array(["a", "c", "d"], dtype=object))
    assert [found.cap_of(code) for code in range(3)] == [1, 2, None]
    assert found.held.links() == [("a", "c")]
    assert found.pairs_of(PairRule.FORBID)[0].size == 0
    assert [found.zone_names[zone] for zone in found.zones] == ["n", "s", ""]
    assert found.costs_of(np.array([0, 0]), np.array([1, 2])).tolist() == [4.0, 1.0]

"""Rules that are written are read as they were."""

from __future__ import annotations

import numpy as np
import pytest

from omen.interests import Interests
from omen.overlay import Overlay
from omen.rules import FleetRules, LinkRule, PairRule
from omen.tables import find_rules, read_rules
from omen.tables.replay_table import write_repaired
from omen.tables.rules_writing import rules_as_tables

INTERESTS = Interests.from_pairs([(node, "x") for node in "abcd"])
NOTHING = Overlay.from_links("abcd", [])
ZONES = {"a": "n", "b": "s", "c": "s"}
CASES = {
    "caps": {"caps": {"a": 0, "c": 3}},
    "zones": {"zones": ZONES, "zone_costs": {("n", "s"): 5.0, ("s", "s"): 2.0}},
    "pairs": {"links": [LinkRule("a", "b", PairRule.FORBID), LinkRule("c", "a", PairRule.KEEP, 2.5)]},
    "a cost": {"links": [LinkRule("d", "b", cost=0.0), LinkRule("a", "b", PairRule.REQUIRE)]},
}
CASES["all"] = CASES["caps"] | CASES["zones"] | CASES["pairs"]


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_read_again(case, tmp_path):
    rules = FleetRules.from_labels("abcd", **CASES[case])
    write_repaired(tmp_path / "w", INTERESTS, NOTHING, {}, rules=rules)
    again = read_rules(find_rules(tmp_path / "w"), INTERESTS)
    u, v = (ends.ravel() for ends in np.triu_indices(4, 1))
    assert again.caps.tolist() == rules.caps.tolist()
    assert again.costs_of(u, v).tolist() == rules.costs_of(u, v).tolist()
    assert (again.u.tolist(), again.v.tolist(), again.rule.tolist()) == (
        rules.u.tolist(),
        rules.v.tolist(),
        rules.rule.tolist(),
    )


def test_rules_of_nodes_and_zones_that_are_gone_are_not_written(tmp_path):
    rules = FleetRules.from_labels("abcd", **CASES["all"])
    left = Interests.from_pairs([(node, "x") for node in "bcd"])
    write_repaired(tmp_path / "w", left, Overlay.from_links("bcd", []), {}, rules=rules)
    again = read_rules(find_rules(tmp_path / "w"), left)
    assert again.zone_names == ("", "s")
    assert again.u.size == 0
    assert again.cap_of(1) == 3


def test_no_rules_are_no_tables():
    assert rules_as_tables(FleetRules.from_labels("ab")) == {}

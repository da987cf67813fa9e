"""What is said of an overlay that was designed against the clock."""

from __future__ import annotations

from omen.design import resolve_options
from omen.interests import Interests
from omen.systems import design_overlay, find_algorithm
from omen.systems.designing import design_timed

CHAIN = Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])


def test_a_timed_design_is_the_design_and_its_summary_tells_what_it_is_worth() -> None:
    algorithm = find_algorithm("low-oda")
    designed = design_timed(algorithm, CHAIN, resolve_options(algorithm, {"rho": 2}))
    assert designed.overlay == design_overlay(CHAIN, "low-oda", rho=2)
    assert designed.seconds > 0
    summary = designed.summary()
    assert summary.pop("design_s") == designed.seconds
    assert summary == {
        "algorithm": "low-oda",
        "options": {"rho": 2.0},
        "nodes": 3,
        "topics": 2,
        "edges": 2,
        "avg_degree": 4 / 3,
        "max_degree": 2,
        "topic_connected": True,
        "per_topic_mesh_links": 2,
        "k_promised": 1,
        "rounds": None,
        "fleet": None,
        "from": None,
        "polished": None,
    }

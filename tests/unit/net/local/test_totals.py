"""A cluster's nodes added up, whether or not all of them answer."""

from __future__ import annotations

from typing import Any

from omen.net.local.totals import total_survey


def answer(name: str, links: list[str], refused: dict[str, int]) -> dict[str, Any]:
    return {
        "name": name,
        "status": "ok",
        "links": links,
        "topics": [{"topic": "tea"}],
        "refused": refused,
        "denied": {},
    }


def test_totals_count_silent_nodes_but_take_degrees_from_answers_alone() -> None:
    nodes = [
        answer("n1", ["n2"], {"loop": 1}),
        answer("n2", ["n1"], {"late": 2, "loop": 1}),
        {"name": "n3", "status": "silent"},
    ]
    assert total_survey(nodes) == {
        "nodes": 3,
        "well": 2,
        "topics": 1,
        "links": 1,
        "avg_degree": 1.0,
        "max_degree": 1,
        "refused": {"late": 2, "loop": 2},
        "denied": {},
    }
    assert total_survey([])["avg_degree"] == 0.0

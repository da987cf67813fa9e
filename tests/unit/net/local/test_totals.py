"""A cluster's nodes added up, whether or not all of them answer."""

from __future__ import annotations

from typing import Any

from omen.net.local.totals import TopicTotal, topics_of, total_survey


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


def test_links_of_a_node_that_is_asked_alone_are_all_counted() -> None:
    assert total_survey([answer("n1", ["n2", "n3", "n4"], {})])["links"] == 3


def test_topics_are_counted_with_their_pieces_where_all_nodes_have_answered() -> None:
    def node(name: str, links: list[str], topics: dict[str, bool]) -> dict[str, Any]:
        told = [{"topic": topic, "subscribed": is_wanted} for topic, is_wanted in topics.items()]
        return {**answer(name, links, {}), "topics": told}

    nodes = [
        node("n1", ["n2"], {"tea": True, "jazz": True}),
        node("n2", ["n1", "n3"], {"tea": True}),
        node("n3", ["n2"], {"tea": False, "jazz": True}),
    ]
    assert topics_of(nodes) == [TopicTotal("jazz", 2, 0, 2), TopicTotal("tea", 2, 1, 1)]
    assert topics_of(nodes[:2]) == [TopicTotal("jazz", 1, 0, None), TopicTotal("tea", 2, 0, None)]
    assert topics_of([{"name": "n3", "status": "silent"}]) == []

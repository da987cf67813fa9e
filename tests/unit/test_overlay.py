from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.errors import InvalidInput
from omen.overlay import Overlay


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda link: link[0] != link[1]), max_size=30))
def test_an_overlay_holds_each_link_once_low_end_first(links: list[tuple[int, int]]) -> None:
    overlay = Overlay.from_links(range(9), links)
    assert overlay.links() == sorted({(min(link), max(link)) for link in links})
    graph = overlay.to_networkx()
    assert overlay.degrees.tolist() == [graph.degree[node] for node in range(9)]
    for node in range(9):
        assert overlay.neighbours_of(node).tolist() == sorted(graph[node])
    assert Overlay.from_networkx(graph) == overlay
    assert Overlay.from_networkx(networkx.MultiDiGraph(graph)) == overlay
    assert Overlay.from_pandas(overlay.to_pandas(), range(9)) == overlay


def test_links_are_ordered_by_label() -> None:
    overlay = Overlay.from_links(["b", "a", "c"], [("c", "a"), ("b", "a")])
    assert overlay.links() == [("a", "b"), ("a", "c")]
    assert repr(overlay) == "Overlay(3 nodes, 2 links)"
    assert overlay != Overlay.from_links(["b", "a", "c"], [])
    assert overlay != 3


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(1, 1)], "node 1 is linked to itself"),
        ([(1, 2), (1, 9)], "a link names node 9, which is not among the nodes"),
        ([("1", "2")], "a link names node '1', which is not among the nodes"),
        ([(1, "2")], "all whole numbers or all text"),
        ([(1, 2, 3), (1,)], "exactly two nodes"),
    ],
)
def test_bad_links_are_refused_and_named(links: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Overlay.from_links([1, 2, 3], links)


def test_codes_of_nodes_that_do_not_exist_are_refused() -> None:
    for u, v in ((0, 2), (-1, 1)):
        with pytest.raises(InvalidInput, match="does not exist"):
            Overlay.from_codes(np.arange(2), np.array([u]), np.array([v]))


def test_nothing_is_an_overlay_too() -> None:
    overlay = Overlay.from_links([], [])
    assert overlay.links() == []
    assert overlay.degrees.tolist() == []
    assert overlay.adjacency[0].tolist() == [0]

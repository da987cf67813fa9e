"""Figures on who carries how much: equal contents, equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omen.report import fairness_figure as figures

DRAWINGS: dict[str, Callable[[Path], None]] = {
    "in-degrees": lambda path: figures.draw_in_degrees(path, {"Unif": {"pd": [3, 4, 4], "greedy": [0, 0, 90]}}),
    "by-subscriptions": lambda path: figures.draw_by_subscriptions(path, {"pd": ([1, 2, 2], [3, 4, 5], [6, 7, 8])}),
    "views": lambda path: figures.draw_views(path, {"one": [1, 2, 3], "other": [4, 4]}),
    "degrees": lambda path: figures.draw_degrees(path, {"OMen": ([5, 6], [1.5, 1.6]), "Re": ([5, 5], [1.5, 1.5])}),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_written_the_same_each_time(name: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    DRAWINGS[name](first)
    DRAWINGS[name](second)
    assert first.read_bytes().startswith(b"<?xml")
    assert first.read_bytes() == second.read_bytes()


def test_a_share_counts_those_with_so_many_or_more() -> None:
    assert figures._shares_or_more([0, 0, 5, 9]) == [(0, 1.0), (5, 0.5), (9, 0.25)]

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from omen.report.figures import draw
from omen.report.sweep_figures import MOST_LINES, make_drawing
from omen.sweep.grid import FigureSpec

SETTINGS = ["name", "lambda", "popularity"]


def rows(lambdas: int) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "lambda": step,
            "popularity": popularity,
            "nodes": nodes,
            "max_degree": step + nodes,
        }
        for name in ("gm", "low-oda", "minmax-oda")
        for step in range(lambdas)
        for popularity in ("uniform", "zipf:2")
        for nodes in (100, 200, 1000)
        for _ in range(2)  # seeds
    ]


def test_many_lines_are_spread_over_panels(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = make_drawing(FigureSpec("many", "nodes", "max_degree"), rows(4), SETTINGS)
    assert [panel.title for panel in drawing.panels] == [f"lambda {step}" for step in range(4)]
    assert all(len(panel.lines) == 6 <= MOST_LINES for panel in drawing.panels)
    assert drawing.panels[0].lines[0].label == "gm, uniform"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(tmp_path, drawing)


def test_few_lines_share_a_panel() -> None:
    drawing = make_drawing(FigureSpec("few", "nodes", "max_degree"), rows(1), ["name", "popularity"])
    assert [len(panel.lines) for panel in drawing.panels] == [6]


@pytest.mark.parametrize("lines", [2, 10, 40])
def test_a_legend_of_any_length_leaves_room_for_the_lines(lines: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spread = [
        {"name": f"a system with a long name {at}", "nodes": nodes, "max_degree": at}
        for at in range(lines)
        for nodes in (1, 2)
    ]
    drawing = make_drawing(FigureSpec("long", "nodes", "max_degree"), spread, ["name"])
    assert len(drawing.panels) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(tmp_path, drawing)


def test_words_on_the_x_axis_have_the_same_place_for_all_lines() -> None:
    some = [row for row in rows(1) if (row["name"], row["popularity"]) != ("gm", "zipf:2")]
    drawing = make_drawing(FigureSpec("names", "name", "max_degree", by=("popularity",)), some, SETTINGS)
    (panel,) = drawing.panels
    assert panel.x_names == ("gm", "low-oda", "minmax-oda")
    assert [(line.label, line.x) for line in panel.lines] == [("uniform", (0.0, 1.0, 2.0)), ("zipf:2", (1.0, 2.0))]

"""Grids and cells: what a TOML table stands for, and what is refused."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from omen.cli.sweep import EPILOG
from omen.errors import InvalidInput
from omen.sweep.cells import Cell, WorkloadSpec, pairs
from omen.sweep.grid import make_grid
from omen.sweep.kinds import run_cell

WORKLOAD: dict[str, Any] = {"nodes": [12, 20], "topics": 6, "sizes": 2}
TINY = WorkloadSpec(16, 6, "uniform", "2", 0)


def grid_of(**tables: Any) -> tuple[Cell, ...]:
    return make_grid({"workload": WORKLOAD, **tables}).cells


def test_lists_in_a_grid_are_combined_with_one_another_and_with_seeds() -> None:
    cells = grid_of(seeds=3, run=[{"algorithm": ["gm", "low-oda"]}, {"system": "shadow", "lambda": [1, 2, 3]}])
    assert len(cells) == 2 * 3 * (2 + 3)
    assert len({cell.id for cell in cells}) == len(cells)


def test_a_cell_listed_twice_is_one_cell() -> None:
    assert len(grid_of(run=[{"algorithm": "gm"}, {"algorithm": ["gm", "gm"]}])) == 2


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"run": {"algorithm": "low-odda"}}, "did you mean 'low-oda'"),
        ({"run": {"system": "shadw"}}, "did you mean 'shadow'"),
        ({"run": {"algorithm": "gm", "rhoo": 3}}, "there is no 'rhoo'"),
        ({"run": {"algorithm": "low-oda", "rho": 0.5}}, "rho must be"),
        ({"run": {"algorithm": "gm"}, "sedes": 3}, "did you mean 'seeds'"),
        ({"run": {"algorithm": "gm"}, "seeds": 0}, "seeds must be"),
        ({"run": {"algorithm": "gm", "system": "shadow"}}, "an algorithm or a system"),
        ({"run": {"algorithm": "gm", "kind": "replay"}}, "names a system"),
        ({"run": {"algorithm": "gm", "kind": "desing"}}, "did you mean 'design'"),
        ({}, "there is no [run]"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9, "topics": 3}}, "needs sizes"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9, "topics": 3, "sizes": 7}}, "cannot want 7"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9.5, "topics": 3, "sizes": 2}}, "whole number"),
        (
            {"run": {"algorithm": "gm"}, "workload": {**WORKLOAD, "popularity": "zipff"}},
            "popularity 'zipff' is not one of",
        ),
        ({"run": {"algorithm": "gm", "diameters": {"a": 1}}}, "is no number, text"),
        ({"run": {"algorithm": "gm"}, "figure": {"x": "nodes"}}, "a figure needs y"),
    ],
)
def test_a_bad_grid_is_refused_with_what_would_be_right(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        grid_of(**tables)
    assert said in str(refused.value)


def test_the_grids_of_the_help_and_the_documentation_are_grids() -> None:
    shown = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    documented = re.search(r"```toml\n(.*?)```", shown, re.DOTALL)
    assert documented
    assert len(make_grid(tomllib.loads(documented[1])).cells) == 3 * 2 * 3 * (2 + 2)
    helped = textwrap.dedent(EPILOG.split("# grid.toml\n")[1].split("\nA list")[0])
    assert len(make_grid(tomllib.loads(helped)).cells) == 3 * 2 * 3 * (2 + 2)


def test_a_cell_is_the_same_after_a_way_through_json() -> None:
    cell = Cell("replay", TINY, "shadow", pairs({"lambda": 2, "rho": float("inf")}), pairs({"rounds": 5}))
    again = Cell.from_plain(json.loads(json.dumps(cell.to_plain())))
    assert again.id == cell.id
    assert run_cell(again).ok

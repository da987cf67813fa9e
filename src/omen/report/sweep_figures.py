"""Figures of any sweep: lines over the setting that varies, as the grid asks for them or as they suggest themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from omen.design.options import suggest
from omen.errors import InvalidInput
from omen.report.figures import Drawing, Line, Panel, draw
from omen.sweep.cells import CellResult
from omen.sweep.grid import FigureSpec, Grid
from omen.sweep.table import flat_row

SUGGESTED = ("avg_degree", "max_degree")


def draw_grid(out: str | Path, grid: Grid, results: Iterable[CellResult]) -> list[Path]:
    """Draw the figures of a grid into OUT/figures; of cells that failed nothing is drawn."""
    rows = [flat_row(one) for one in results if one.ok]
    if not rows:
        raise InvalidInput("no cell was run to its end: there is nothing to draw")
    settings = varying_settings(rows, grid)
    specs = grid.figures or suggested_figures(rows, settings)
    folder = Path(out) / "figures"
    return [path for spec in specs for path in draw(folder, make_drawing(spec, rows, settings))]


def varying_settings(rows: Sequence[Mapping[str, Any]], grid: Grid) -> list[str]:
    """What differs between those cells that have it, seeds apart."""
    told = {"name", "nodes", "topics", "popularity", "sizes", "folder"}
    for cell in grid.cells:
        told |= {name.rstrip("_") for name, _ in cell.options} | {name for name, _ in cell.settings}
    return [name for name in sorted(told) if len({str(row[name]) for row in rows if row.get(name) is not None}) > 1]


def suggested_figures(rows: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> list[FigureSpec]:
    """Average and maximum degree over the number that varies most."""
    numeric = [name for name in settings if all(_is_number(row.get(name)) for row in rows)]
    if not numeric:
        return [FigureSpec(f"{y}-by-name", "name", y) for y in SUGGESTED]
    x = max(numeric, key=lambda name: len({row.get(name) for row in rows}))
    return [FigureSpec(f"{y}-by-{x}".replace("_", "-"), x, y) for y in SUGGESTED]


def make_drawing(spec: FigureSpec, rows: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> Drawing:
    chosen = [row for row in rows if all(row.get(name) == value for name, value in spec.where)]
    for name, what in ((spec.x, "x"), (spec.y, "y"), *((one, "by") for one in spec.by)):
        known = {key for row in chosen for key in row}
        if name not in known:
            raise InvalidInput(f"figure {spec.name}: {what} = {name!r} is no column{suggest(name, known)}")
    by = spec.by or tuple(sorted((name for name in settings if name != spec.x), key=lambda name: name != "name"))
    points: dict[str, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in chosen:
        if row.get(spec.x) is None or row.get(spec.y) is None:
            continue
        label = ", ".join(_label(name, row[name]) for name in by if row.get(name) is not None) or spec.y
        points[label][row[spec.x]].append(float(row[spec.y]))
    lines = tuple(_line(label, found) for label, found in sorted(points.items()))
    words = spec.y.replace("_", " ")
    panel = Panel(spec.x.replace("_", " "), words, lines, title=spec.title)
    title = spec.title or f"{words} by {spec.x}"
    return Drawing(spec.name, title, f"{title}: means over seeds, with the lowest and highest seed shaded.", (panel,))


def _line(label: str, found: Mapping[Any, list[float]]) -> Line:
    ordered = sorted(found, key=lambda x: (not _is_number(x), x if _is_number(x) else str(x)))
    xs = tuple(float(x) if _is_number(x) else float(place) for place, x in enumerate(ordered))
    ys = [found[x] for x in ordered]
    if all(len(values) == 1 for values in ys):
        return Line(label, xs, tuple(values[0] for values in ys))
    return Line(label, xs, tuple(fmean(values) for values in ys), tuple(map(min, ys)), tuple(map(max, ys)))


def _label(name: str, value: Any) -> str:
    return str(value) if name in ("name", "popularity") else f"{name} {value}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

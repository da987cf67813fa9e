"""Figures of any sweep: lines over the setting that varies, as the grid asks for them or as they suggest themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
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
MOST_LINES = 8
"""Lines in one panel; where there are more, a setting gets a panel for each of its values."""
MOST_PANELS = 12


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
    chosen = [row for row in chosen if row.get(spec.x) is not None and row.get(spec.y) is not None]
    x_names = _names_of(row[spec.x] for row in chosen)
    facet = _facet(chosen, by)
    panels = []
    for value in sorted({row.get(facet) for row in chosen}, key=_rank) if facet else [None]:
        shown = [row for row in chosen if not facet or row.get(facet) == value]
        lines = _lines(shown, spec, [name for name in by if name != facet], x_names)
        heading = _label(facet, value) if facet and value is not None else spec.title
        panels.append(Panel(_words(spec.x), _words(spec.y), lines, title=heading, x_names=x_names))
    title = spec.title or f"{_words(spec.y)} by {spec.x}"
    caption = f"{title}: means over seeds, with the lowest and highest seed shaded."
    return Drawing(spec.name, title, caption, tuple(panels))


def _facet(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> str | None:
    """The setting that gets a panel for each value, where one panel would hold too many lines: the one that leaves the
    fewest lines in the fullest panel.
    """
    by = [name for name in by if len({row.get(name) for row in rows}) > 1]
    if len(by) < 2 or len({tuple(str(row.get(name)) for name in by) for row in rows}) <= MOST_LINES:
        return None

    def fullest(name: str) -> int:
        others = [one for one in by if one != name]
        lines = {(str(row.get(name)), *(str(row.get(one)) for one in others)) for row in rows}
        return max(Counter(line[0] for line in lines).values())

    fit = [name for name in by if len({row.get(name) for row in rows}) <= MOST_PANELS]
    return min(fit, key=fullest, default=None)


def _lines(
    rows: Sequence[Mapping[str, Any]], spec: FigureSpec, by: Sequence[str], x_names: Sequence[str]
) -> tuple[Line, ...]:
    points: dict[tuple[Any, ...], dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        place = x_names.index(str(row[spec.x])) if x_names else row[spec.x]
        points[tuple(row.get(name) for name in by)][place].append(float(row[spec.y]))
    found = []
    for key in sorted(points, key=lambda key: [_rank(one) for one in key]):
        told = [_label(name, value) for name, value in zip(by, key, strict=True) if value is not None]
        found.append(_line(", ".join(told) or spec.y, points[key]))
    return tuple(found)


def _line(label: str, found: Mapping[Any, list[float]]) -> Line:
    xs, ys = tuple(map(float, sorted(found))), [found[x] for x in sorted(found)]
    if all(len(values) == 1 for values in ys):
        return Line(label, xs, tuple(values[0] for values in ys))
    return Line(label, xs, tuple(fmean(values) for values in ys), tuple(map(min, ys)), tuple(map(max, ys)))


def _names_of(values: Iterable[Any]) -> tuple[str, ...]:
    """What stands on the x axis where it is not all numbers, in the order of the results, the same for all lines."""
    listed = list(values)
    return () if all(map(_is_number, listed)) else tuple(dict.fromkeys(map(str, listed)))


def _rank(value: Any) -> tuple[int, float, str]:
    """Nothing first, then numbers by value, then words."""
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if _is_number(value) else (2, 0.0, str(value))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _label(name: str, value: Any) -> str:
    return str(value) if name in ("name", "popularity") else f"{name} {value}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

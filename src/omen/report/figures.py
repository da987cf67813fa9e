"""Figures in one style: lines that differ in colour, dash and marker, the papers' numbers drawn in where there are any.

Colours are those of Okabe and Ito, which stay apart for colour-blind readers. Each figure is written as SVG and PNG,
with the data it shows as a CSV table next to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.report.canvas import blank_figure
from omen.tables import replace_file, write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F00")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.0,
    "figure.dpi": 100,
    "savefig.dpi": 160,
}


MOST_BESIDE = 4
"""Panels that stand in one row; more stand in rows of `FACET_COLUMNS`."""
FACET_COLUMNS = 3
MOST_INSIDE = 6
"""Lines whose legend stands among them; of more it stands below."""
LEGEND_ROWS = 4
"""Rows of a legend that a figure has room for as it is."""
LINE_INCHES = 0.19
ROOM_FOR_NAMES = 40
"""Letters that have room below an axis without being turned."""


@dataclass(frozen=True)
class Line:
    """y over x; `low` and `high` are the spread over seeds, empty where there is none."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper: a level, or a point where `x` is given."""

    label: str
    y: float
    x: float | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    paper: tuple[PaperValue, ...] = ()
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    x_names: tuple[str, ...] = ()  # of the places 0, 1, 2 on the x axis, where they are no numbers


@dataclass(frozen=True)
class Drawing:
    """A figure: its file name, what it shows in words (also for those who cannot see it), and its panels."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


def draw(folder: str | Path, drawing: Drawing) -> list[Path]:
    """Write NAME.svg, NAME.png and NAME.csv into the folder."""
    figure = _figure(drawing)
    paths = [Path(folder) / f"{drawing.name}.{kind}" for kind in ("svg", "png", "csv")]
    for path, metadata in zip(paths, ({"Date": None, "Title": drawing.title}, {"Software": None}), strict=False):
        with replace_file(path) as aside:
            figure.savefig(aside, format=path.suffix[1:], metadata=metadata)  # equal contents, equal bytes
    write_table(paths[2], table_of(drawing))
    return paths


def table_of(drawing: Drawing) -> dict[str, list[Any]]:
    """What a figure shows, a row a point; the papers' numbers among them."""
    columns: dict[str, list[Any]] = {name: [] for name in ("panel", "line", "x", "y", "low", "high")}
    for panel in drawing.panels:
        named = panel.title or panel.y_label
        for line in panel.lines:
            spread: list[tuple[Any, Any]] = list(zip(line.low, line.high, strict=True))
            spread = spread or [(None, None)] * len(line.x)
            for x, y, (low, high) in zip(line.x, line.y, spread, strict=True):
                _append(columns, (named, line.label, x, y, low, high))
        for value in panel.paper:
            _append(columns, (named, f"paper: {value.label}", value.x, value.y, None, None))
    return columns


def _append(columns: dict[str, list[Any]], row: Sequence[Any]) -> None:
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value if value is None or isinstance(value, str) else float(value))


def _figure(drawing: Drawing) -> Figure:
    count = len(drawing.panels)
    columns = count if count <= MOST_BESIDE else FACET_COLUMNS
    rows = -(-count // columns)
    figure = blank_figure(4.4 * columns, rows * 3.4 + _legend_height(drawing.panels))
    from matplotlib import rc_context, rcParams

    rcParams["svg.fonttype"] = STYLE["svg.fonttype"]  # read when the figure is written
    with rc_context(STYLE):
        all_axes = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
        for axes, panel in zip(all_axes, drawing.panels, strict=True):
            _draw_panel(axes, panel)
        _draw_legends(figure, all_axes, drawing.panels)
        return figure


def _draw_legends(figure: Figure, all_axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """One below all panels where they have the same lines, else one in each; below it where lines are many."""
    labels = [[line.label for line in panel.lines] for panel in panels]
    if _is_shared(panels):
        columns = _legend_columns(panels)
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8)
        return
    for axes, own in zip(all_axes, labels, strict=True):
        if len(own) > MOST_INSIDE:
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        elif len(own) > 1:
            axes.legend(fontsize=8)


def _is_shared(panels: Sequence[Panel]) -> bool:
    labels = [[line.label for line in panel.lines] for panel in panels]
    return all(one == labels[0] for one in labels) and len(labels[0]) > 1


def _legend_columns(panels: Sequence[Panel]) -> int:
    lines = len(panels[0].lines)
    return min(lines, (3 if lines == 3 else 2) if len(panels) == 1 else 4)


def _legend_height(panels: Sequence[Panel]) -> float:
    """Inches that a figure grows by, so that a long legend does not take the place of the lines."""
    if _is_shared(panels):
        return LINE_INCHES * max(0, -(-len(panels[0].lines) // _legend_columns(panels)) - LEGEND_ROWS)
    most = max(len(panel.lines) for panel in panels)
    return LINE_INCHES * most if most > MOST_INSIDE else 0.0


def dash_of(place: int) -> str:
    """Of a panel's line: another where the colours begin anew, so that 32 lines are 32 kinds."""
    return DASHES[(place // 2 + place // len(COLOURS)) % len(DASHES)]


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for place, line in enumerate(panel.lines):
        few = len(line.x) <= 30
        axes.plot(
            line.x,
            line.y,
            color=COLOURS[place % len(COLOURS)],
            linestyle=dash_of(place),
            marker=MARKERS[place % len(MARKERS)] if few else None,
            label=line.label,
        )
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=COLOURS[place % len(COLOURS)], alpha=0.15, linewidth=0)
    for value in panel.paper:
        if value.x is None:
            axes.axhline(value.y, color="0.35", linewidth=1.0, linestyle=(0, (1, 2)))
            where = (0.99, value.y)
            axes.annotate(
                f"paper: {value.label}", where, xycoords=("axes fraction", "data"), fontsize=7, ha="right", va="bottom"
            )
        else:
            axes.plot([value.x], [value.y], marker="x", markersize=7, color="0.2", linestyle="none")
            side = "left" if value.x < sum(axes.get_xlim()) / 2 else "right"
            if value.label:
                axes.annotate(f"paper: {value.label}", (value.x, value.y), fontsize=7, ha=side, va="bottom")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    if panel.x_names:
        is_long = sum(map(len, panel.x_names)) > ROOM_FOR_NAMES
        axes.set_xticks(range(len(panel.x_names)), panel.x_names, rotation=30 if is_long else 0)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")

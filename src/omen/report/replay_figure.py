"""The figure of `omen replay`: degrees, links changed and repair time over the time of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omen.report.canvas import blank_figure, figure_kind, save_figure
from omen.report.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNITS = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (300.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
"""From so many seconds on, a unit of so many, and its name."""


def draw_replay(path: str | Path, columns: Mapping[str, Any]) -> None:
    """Write it, from the columns of the table `replay`; what was not measured is left out."""
    kind = figure_kind(path)
    save_figure(path, _make_figure(columns), kind)


def _make_figure(columns: Mapping[str, Any]) -> Figure:
    times = np.asarray(columns["time_s"], dtype=np.float64)
    last = float(times.max(initial=0.0))
    _, seconds, unit = next(row for row in UNITS if last >= row[0])
    times = times / seconds
    figure = blank_figure(7.0, 7.2)
    degrees, changes, repairs = figure.subplots(3, 1, sharex=True)
    _step(degrees, times, columns["max_degree"], "maximum", 0)
    _step(degrees, times, columns["avg_degree"], "average", 1)
    degrees.set(ylabel="links of a node")
    _step(changes, times, _running(columns["edges_added"]), "made", 2)
    _step(changes, times, _running(columns["edges_removed"]), "dropped", 1)
    changes.set(ylabel="links changed so far")
    measured, there = _measured(columns["repair_s"])
    repairs.plot(times[there], 1000 * measured[there], ".", color=COLOURS[0], markersize=4)
    repairs.set(xlabel=f"time of the trace, {unit}", ylabel="repair, ms of processor time", ylim=(0, None))
    for axes in (degrees, changes):
        axes.set(ylim=(0, None))
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for axes in (degrees, changes, repairs):
        axes.grid(alpha=0.25)
    return figure


def _step(axes: Axes, times: npt.NDArray[np.float64], column: Any, label: str, colour: int) -> None:
    """What holds from an event until the next."""
    values, there = _measured(column)
    dash = "-" if colour % 2 == 0 else "--"
    axes.step(times[there], values[there], dash, where="post", color=COLOURS[colour], label=label, linewidth=1.5)


def _running(column: Any) -> npt.NDArray[np.float64]:
    values, there = _measured(column)
    return np.cumsum(np.where(there, values, 0.0))


def _measured(column: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The numbers, and where there are any: nan and negative counts stand for none."""
    values = np.asarray(column, dtype=np.float64)
    return values, values >= 0

"""The figure of `workload profile`: how many topics nodes want, and how many subscribers topics have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omen.report.canvas import blank_figure, figure_kind, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ccdf = Sequence[tuple[int, float]]


def draw_profile(path: str | Path, panels: Mapping[str, Ccdf]) -> None:
    """Write the complementary distribution of each panel (what is counted: x and the share that is x or more)."""
    kind = figure_kind(path)
    save_figure(path, _make_figure(panels), kind)


def _make_figure(panels: Mapping[str, Ccdf]) -> Figure:
    figure = blank_figure(4.2 * len(panels), 3.4)
    for place, (name, ccdf) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place)
        points = [(value, share) for value, share in ccdf if value > 0]
        axes.plot(*(list(column) for column in zip(*points, strict=True)) if points else ([], []), ".", markersize=4)
        axes.set(xlabel=name, ylabel="share of this many or more")
        if points:
            axes.set(xscale="log", yscale="log")
        axes.grid(alpha=0.3)
    return figure

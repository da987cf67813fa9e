"""The degrees of a social graph and of a sample of it, as in Fig. 7 of the OMen paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omen.errors import MissingDependency
from omen.report.canvas import blank_figure, save_figure
from omen.tables import write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from omen.workloads.degrees import Ccdf

Curve = tuple[str, str, Sequence[int], Sequence[float]]  # original or sample, what is counted, degrees, fractions


def write_ccdfs(folder: str | Path, ccdfs: Sequence[Ccdf]) -> bool:
    """Write the table of all distributions, and the figure if it can be drawn: returns whether it could."""
    columns: dict[str, Any] = {
        "graph": [ccdf.graph for ccdf in ccdfs for _ in ccdf.degree],
        "count_of": [ccdf.count_of for ccdf in ccdfs for _ in ccdf.degree],
        "degree": np.concatenate([ccdf.degree for ccdf in ccdfs]),
        "users": np.concatenate([ccdf.users for ccdf in ccdfs]),
        "fraction": np.concatenate([ccdf.fraction for ccdf in ccdfs]),
    }
    write_table(Path(folder) / "ccdf.parquet", columns)
    try:
        curves = [(c.graph, c.count_of, c.degree.tolist(), c.fraction.tolist()) for c in ccdfs]
        draw_degrees(Path(folder) / "ccdf.svg", curves)
    except MissingDependency:
        return False
    return True


def draw_degrees(path: str | Path, curves: Sequence[Curve]) -> None:
    """Write an SVG: the original's complementary distributions, the sample's in an inner plot."""
    figure = blank_figure(5.0, 3.8)
    axes = figure.add_subplot()
    _draw(axes, [curve for curve in curves if curve[0] == "original"])
    axes.set(xlabel="degree", ylabel="fraction of users with it or more")
    axes.legend(loc="lower left", frameon=False)
    inner = axes.inset_axes((0.58, 0.55, 0.4, 0.4))
    _draw(inner, [curve for curve in curves if curve[0] == "sample"])
    inner.set_title("sample", fontsize="small")
    inner.tick_params(labelsize="x-small")
    save_figure(path, figure)


def _draw(axes: Axes, curves: Sequence[Curve]) -> None:
    for _, count_of, degrees, fractions in curves:
        points = [(degree, fraction) for degree, fraction in zip(degrees, fractions, strict=True) if degree > 0]
        axes.plot([x for x, _ in points], [y for _, y in points], ".", markersize=3, label=count_of)
    if any(any(curve[2]) for curve in curves):
        axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.3)

"""The figure of `workload profile`: how many topics nodes want, and how many subscribers topics have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omen.errors import CannotWrite, MissingDependency
from omen.tables import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ccdf = Sequence[tuple[int, float]]
FORMATS = ("svg", "png", "pdf")


def draw_profile(path: str | Path, panels: Mapping[str, Ccdf]) -> None:
    """Write the complementary distribution of each panel (what is counted: x and the share that is x or more)."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise CannotWrite(f"{path}: a figure is written as .{', .'.join(FORMATS)}, by the ending of its name")
    figure = _make_figure(panels)
    date = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]  # equal contents, equal bytes
    with replace_file(path) as aside:
        figure.savefig(aside, format=kind, metadata=date)


def _make_figure(panels: Mapping[str, Ccdf]) -> Figure:
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency(
            "a figure needs matplotlib: install it with pip install 'omen-overlay[report]'"
        ) from None
    rcParams["svg.hashsalt"] = "omen"
    figure = Figure(figsize=(4.2 * len(panels), 3.4), layout="constrained")
    for place, (name, ccdf) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place)
        points = [(value, share) for value, share in ccdf if value > 0]
        axes.plot(*(list(column) for column in zip(*points, strict=True)) if points else ([], []), ".", markersize=4)
        axes.set(xlabel=name, ylabel="share of this many or more")
        if points:
            axes.set(xscale="log", yscale="log")
        axes.grid(alpha=0.3)
    return figure

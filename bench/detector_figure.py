"""The figure of the failure detector: times and mistakes against loss, and which paused nodes are declared failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omen.report.canvas import blank_figure, save_figure


def draw_detector(
    path: str | Path, lossy: Mapping[float, Mapping[str, Any]], still: Mapping[float, Mapping[str, Any]]
) -> None:
    """Write an SVG. `lossy`: what was found by share of messages lost; `still`: by seconds a node stands still."""
    figure = blank_figure(12.6, 3.6)
    times, wrong, pauses = (figure.add_subplot(1, 3, place) for place in (1, 2, 3))
    percent = [100 * loss for loss in lossy]
    for name, style in (("longest s", ":"), ("95% s", "--"), ("median s", "-")):
        times.plot(percent, _column(lossy, name), style, color="C0", label=name.removesuffix(" s"))
    times.set(xlabel="messages lost (%)", ylabel="seconds until a loss is noticed", ylim=(0, None))
    wrong.plot(percent, _column(lossy, "suspicions per node-hour"), color="C1", label="suspected for a while")
    wrong.plot(percent, _column(lossy, "declared failed wrongly per node-hour"), "k--", label="declared failed wrongly")
    wrong.set(xlabel="messages lost (%)", ylabel="wrongly, per node and hour", ylim=(0, None))
    shares = [100 * one["declared failed wrongly"] / one["pauses"] for one in still.values()]
    pauses.plot(list(still), shares, "o-", markersize=4, label="default settings")
    pauses.set(xlabel="seconds a node stands still", ylabel="declared failed wrongly (%)", ylim=(-4, 104))
    for axes in (times, wrong, pauses):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    save_figure(path, figure)


def _column(found: Mapping[float, Mapping[str, Any]], name: str) -> Sequence[float]:
    return [float(one[name]) for one in found.values()]

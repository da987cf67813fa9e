"""The figure of rebalancing: degrees under churn with and without it, and what the links it changes buy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.report.canvas import blank_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_BUDGET = 5


def draw_rebalance(path: str | Path, found: Mapping[str, Any]) -> None:
    """Write an SVG. `found` holds `curve`, a list with a row a budget, and `fresh`, Low-ODA from scratch on the way."""
    figure = blank_figure(12.6, 3.6)
    curve, fresh = found["curve"], found["fresh"]
    shown = [one for one in curve if one["budget"] in (0, SHOWN_BUDGET)]
    for place, (name, label) in enumerate((("average", "average degree"), ("maximum", "maximum degree")), start=1):
        _draw_degrees(figure.add_subplot(1, 3, place), shown, fresh, name, label)
    _draw_trade(figure.add_subplot(1, 3, 3), curve)
    save_figure(path, figure)


def _draw_degrees(
    axes: Axes, shown: Sequence[Mapping[str, Any]], fresh: Mapping[str, Any], name: str, label: str
) -> None:
    for one in shown:
        said = f"rebalancing, at most {one['budget']} a round" if one["budget"] else "rebalancing off"
        axes.plot(range(1, len(one[name]) + 1), one[name], label=said)
    axes.plot(fresh["round"], fresh[name], "k--", label="Low-ODA from scratch")
    axes.set(xlabel="round of churn", ylabel=label, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _draw_trade(axes: Axes, curve: Sequence[Mapping[str, Any]]) -> None:
    changed = [one["changed_a_round"] for one in curve]
    for name, label in (("average_above", "average degree"), ("maximum_above", "maximum degree")):
        axes.plot(changed, [one[name] for one in curve], "o-", markersize=4, label=label)
    axes.set(xlabel="links changed a round to rebalance", ylabel="above Low-ODA from scratch, at the end")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")

"""Figures on who carries how much (omen Figs. 3-6): backup sets, local views, and degrees under churn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from omen.report.canvas import blank_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Counts = Sequence[int]
Panels = Mapping[str, Mapping[str, Counts]]


def draw_in_degrees(path: str | Path, panels: Panels) -> None:
    """Write an SVG: a panel a distribution of topics, a curve a rule; how many nodes serve how many others or more."""
    with _figure(path, len(panels)) as axes:
        for axis, (name, rules) in zip(axes, panels.items(), strict=True):
            for rule, in_degrees in rules.items():
                points = _shares_or_more(in_degrees)
                axis.plot([x for x, _ in points], [y for _, y in points], drawstyle="steps-pre", label=rule)
            axis.set(title=name, xlabel="nodes that have it as a backup", ylabel="share of nodes with so many or more")
            axis.set_xscale("symlog", linthresh=10)
            axis.legend(fontsize="small")


def draw_by_subscriptions(path: str | Path, panels: Mapping[str, tuple[Counts, Counts, Counts]]) -> None:
    """Write an SVG: a panel a rule, from (subscriptions, out-degrees, in-degrees) of all nodes; means over equals."""
    with _figure(path, len(panels)) as axes:
        for axis, (name, (subscriptions, out_degrees, in_degrees)) in zip(axes, panels.items(), strict=True):
            for label, degrees in (("backups it has", out_degrees), ("nodes it is a backup of", in_degrees)):
                means = _means_by(subscriptions, degrees)
                axis.plot([x for x, _ in means], [y for _, y in means], ".", markersize=4, label=label)
            axis.set(title=name, xlabel="topics a node wants", ylabel="mean over such nodes")
            axis.legend(fontsize="small")


def draw_views(path: str | Path, panels: Mapping[str, Counts]) -> None:
    """Write an SVG: a panel a workload; how many nodes have how many entries in their local view."""
    with _figure(path, len(panels)) as axes:
        for axis, (name, sizes) in zip(axes, panels.items(), strict=True):
            axis.hist(sizes, bins=40, histtype="stepfilled", alpha=0.7)
            axis.axvline(sum(sizes) / max(1, len(sizes)), color="k", linestyle="--", label="mean")
            axis.set(title=name, xlabel="entries in the local view", ylabel="nodes", xlim=(0, None))
            axis.legend(fontsize="small")


def draw_degrees(path: str | Path, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """Write an SVG: maximum and average degree after each event of a trace, a curve a system."""
    with _figure(path, 2) as axes:
        for place, label in enumerate(("maximum degree", "average degree")):
            for name, degrees in curves.items():
                axes[place].plot(range(1, len(degrees[place]) + 1), degrees[place], label=name, linewidth=1)
            axes[place].set(xlabel="churn event", ylabel=label, ylim=(0, None))
            axes[place].legend(fontsize="small")


@contextmanager
def _figure(path: str | Path, panels: int) -> Iterator[Sequence[Axes]]:
    """Axes to draw on; the file is written when that is done."""
    figure = blank_figure(4.2 * panels, 3.4)
    axes = [figure.add_subplot(1, panels, place + 1) for place in range(panels)]
    yield axes
    for axis in axes:
        axis.grid(alpha=0.3)
    save_figure(path, figure)


def _shares_or_more(counts: Counts) -> list[tuple[int, float]]:
    """For each number that occurs, the share that is so high or higher."""
    times = Counter(counts)
    values = sorted(times)
    below = [0, *accumulate(times[value] for value in values)]
    return [(value, 1 - below[place] / len(counts)) for place, value in enumerate(values)]


def _means_by(keys: Counts, values: Counts) -> list[tuple[int, float]]:
    groups: dict[int, list[int]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return [(key, sum(those) / len(those)) for key, those in sorted(groups.items())]

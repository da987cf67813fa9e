"""Lines of figures from numbers by x and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from omen.report.figures import Line


def line_of(
    label: str, found: Mapping[int, Sequence[float]] | Mapping[float, Sequence[float]], what: str = "spread"
) -> Line:
    """The means over seeds; with `spread`, the lowest and highest seed as well, where there are several."""
    found = {float(x): values for x, values in found.items()}
    xs = tuple(sorted(found))
    ys = tuple(fmean(found[x]) for x in xs)
    if what == "mean" or all(len(found[x]) < 2 for x in xs):
        return Line(label, xs, ys)
    return Line(label, xs, ys, tuple(min(found[x]) for x in xs), tuple(max(found[x]) for x in xs))


def over_rounds(label: str, columns: Sequence[Sequence[float]], points: int = 100) -> Line:
    """A column per seed, a value per round: the mean of the seeds at some of the rounds."""
    rounds = min(len(column) for column in columns)
    step = max(1, rounds // points)
    places = sorted({*range(0, rounds, step), rounds - 1})
    return Line(
        label, tuple(place + 1.0 for place in places), tuple(fmean(column[p] for column in columns) for p in places)
    )

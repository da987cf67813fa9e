"""How many follow and are followed: the distribution of degrees, and how alike two of them are (OMen, Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ccdf:
    """The users of a graph by degree: `fraction` of them have `degree` or more."""

    graph: str  # original or sample
    count_of: str  # followees, followers, friends
    degree: npt.NDArray[np.int64]
    users: npt.NDArray[np.int64]

    @property
    def fraction(self) -> npt.NDArray[np.float64]:
        more = np.cumsum(self.users[::-1])[::-1]
        return more / more[0] if more.size else np.empty(0)

    @property
    def mean(self) -> float:
        return float((self.degree * self.users).sum() / self.users.sum())

    def at(self, degrees: npt.NDArray[np.float64], scale: float = 1.0) -> npt.NDArray[np.float64]:
        """The fraction of users whose degree, divided by `scale`, is at least each of `degrees`."""
        places = np.searchsorted(self.degree / scale, degrees, side="left")
        return np.append(self.fraction, 0.0)[places]


def distance(ccdfs: Sequence[Ccdf]) -> dict[str, dict[str, float]]:
    """How far sample and original are apart: the largest gap between their curves (Kolmogorov and Smirnov).

    `degree`: as they are; a sample has fewer users to follow, so its degrees are smaller. `shape`: each degree divided
    by the mean of its graph, which tells whether the form of the distribution was kept.
    """
    gaps: dict[str, dict[str, float]] = {}
    for count_of in dict.fromkeys(ccdf.count_of for ccdf in ccdfs):
        original, sample = (
            next(ccdf for ccdf in ccdfs if (ccdf.graph, ccdf.count_of) == (graph, count_of))
            for graph in ("original", "sample")
        )
        gaps[count_of] = {
            "degree": _largest_gap(original, sample, 1.0, 1.0),
            "shape": _largest_gap(original, sample, original.mean or 1.0, sample.mean or 1.0),
        }
    return gaps


def _largest_gap(one: Ccdf, other: Ccdf, scale: float, other_scale: float) -> float:
    where = np.union1d(one.degree / scale, other.degree / other_scale)
    return float(np.abs(one.at(where, scale) - other.at(where, other_scale)).max(initial=0.0))

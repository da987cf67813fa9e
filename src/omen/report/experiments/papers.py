"""All experiments by paper, and at which sizes they run at a scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omen.report.experiments import (
    ktco,
    ktco_figures,
    low_oda,
    omen,
    omen_figures,
    shadows,
    shadows_figures,
    spidercast,
    spidercast_figures,
)
from omen.report.experiments.inputs import Inputs
from omen.report.experiments.results import Results
from omen.report.figures import Drawing
from omen.report.ledger import Deviation, Measures
from omen.report.ledger_text import Table
from omen.sweep.cells import Cell

SCALES = ("quick", "full")


@dataclass(frozen=True)
class Paper:
    """A paper's experiments. `effort(scale, inputs)` says at which sizes, and on what data.

    `sampled` says what is not run whole, with the claims' ids.
    """

    name: str
    effort: Callable[[str, Inputs], Any]
    cells: Callable[[Any], Sequence[Cell]]
    measures: Measures
    deviations: Mapping[str, Deviation]
    drawings: Sequence[Callable[[Results, Any], Drawing]]
    stand_ins: Callable[[Any], Mapping[str, str]] = lambda effort: {}
    tables: Callable[[Results, Any], Iterable[Table]] = lambda found, effort: ()
    sampled: Callable[[Any], str] = lambda effort: ""


def _fixed(**efforts: Any) -> Callable[[str, Inputs], Any]:
    return lambda scale, inputs: efforts[scale]


KTCO_QUICK = ktco.Effort((100, 400, 700, 1000), (100, 400, 700, 1000), tuple(range(10, 101, 10)), (0, 1))
SHADOWS_QUICK = shadows.Effort(1000, (0, 1), 25)

PAPERS: dict[str, Paper] = {
    paper.name: paper
    for paper in (
        Paper(
            "low-oda",
            _fixed(quick=low_oda.QUICK, full=low_oda.FULL),
            low_oda.cells,
            low_oda.MEASURES,
            low_oda.DEVIATIONS,
            low_oda.DRAWINGS,
        ),
        Paper(
            "ktco",
            _fixed(quick=KTCO_QUICK, full=ktco.FULL),
            ktco.cells,
            ktco.MEASURES,
            ktco.DEVIATIONS,
            ktco_figures.DRAWINGS,
        ),
        Paper(
            "shadows",
            _fixed(quick=SHADOWS_QUICK, full=shadows.FULL),
            shadows.cells,
            shadows.MEASURES,
            shadows.DEVIATIONS,
            shadows_figures.DRAWINGS,
            tables=shadows_figures.tables,
            sampled=shadows.sampled,
        ),
        Paper(
            "omen",
            omen.effort_at,
            omen.cells,
            omen.MEASURES,
            omen.DEVIATIONS,
            omen_figures.DRAWINGS,
            omen.stand_ins,
            omen.tables,
            omen.sampled,
        ),
        Paper(
            "spidercast",
            _fixed(quick=spidercast.QUICK, full=spidercast.FULL),
            spidercast.cells,
            spidercast.MEASURES,
            spidercast.DEVIATIONS,
            spidercast_figures.DRAWINGS,
        ),
    )
}

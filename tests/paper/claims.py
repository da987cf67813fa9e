"""Claims and verdicts, as the report has them, and measurements made here and now instead of from a sweep's table."""

from __future__ import annotations

from pathlib import Path

from omen.report.experiments.results import InProcess
from omen.report.ledger import Claim, Deviation, Measure, Measured, Measures, claims, ordered

__all__ = ["TABLE", "Claim", "Deviation", "Measure", "Measured", "Measures", "claims", "in_process", "ordered"]

TABLE = Path(__file__).parents[2] / "docs" / "claims.csv"


def in_process(measures: Measures, found: InProcess) -> Measures:
    """The same measurements as functions of an effort alone: what they need is run when it is asked for."""
    made = Measures()
    for claim_id, measure in measures.items():
        made.of(claim_id)(_with(measure, found))
    return made


def _with(measure: Measure, found: InProcess) -> Measure:
    return lambda effort: measure(found, effort)

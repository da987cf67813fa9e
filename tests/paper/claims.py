"""Measurements of the report's experiments made here and now instead of from a sweep's table."""

from __future__ import annotations

from omen.report.experiments.results import InProcess
from omen.report.ledger import Measure, Measures


def in_process(measures: Measures, found: InProcess) -> Measures:
    """The same measurements as functions of an effort alone: what they need is run when it is asked for."""
    made = Measures()
    for claim_id, measure in measures.items():
        made.of(claim_id)(_with(measure, found))
    return made


def _with(measure: Measure, found: InProcess) -> Measure:
    return lambda effort: measure(found, effort)

"""Claims K01-K23, measured here and now; what they are is in `omen.report.experiments.ktco`."""

from __future__ import annotations

from omen.report.experiments import ktco
from omen.report.experiments.ktco import DEVIATIONS, EXPO_BY_TOPICS, FULL, NYSE, QUICK, ZIPF, workloads
from omen.report.experiments.results import InProcess

from .claims import in_process

__all__ = [
    "DEVIATIONS",
    "EXPO_BY_TOPICS",
    "FOUND",
    "FULL",
    "MEASURES",
    "NYSE",
    "QUICK",
    "ZIPF",
    "workloads",
]

FOUND = InProcess()
MEASURES = in_process(ktco.MEASURES, FOUND)

"""Claims L01-L09, measured here and now; what they are is in `omen.report.experiments.low_oda`."""

from __future__ import annotations

from omen.report.experiments import low_oda
from omen.report.experiments.low_oda import DEVIATIONS, FULL, QUICK, zipf_workloads
from omen.report.experiments.results import InProcess

from .claims import in_process

__all__ = ["DEVIATIONS", "FOUND", "FULL", "MEASURES", "QUICK", "zipf_workloads"]

FOUND = InProcess()
MEASURES = in_process(low_oda.MEASURES, FOUND)

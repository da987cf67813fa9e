"""Claims S01-S28, measured here and now; what they are is in `omen.report.experiments.shadows`.

Ratios of times (S16-S19) are never taken in a test.
"""

from __future__ import annotations

from omen.report.experiments import shadows
from omen.report.experiments.results import InProcess
from omen.report.experiments.shadows import DEVIATIONS, QUICK

from .claims import in_process

__all__ = ["DEVIATIONS", "MEASURES", "QUICK"]

MEASURES = in_process(shadows.MEASURES, InProcess())

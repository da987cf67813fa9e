"""Claims S01-S28, measured here and now; what they are is in `omen.report.experiments.shadows`.

Ratios of times (S16-S19) are those of `python -m bench mend`, never taken in a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from omen.interests import Interests
from omen.pipeline.sweep_kinds import interests_of
from omen.report.experiments import shadows, shadows_figures
from omen.report.experiments.results import InProcess
from omen.report.experiments.shadows import DEVIATIONS, EXPO, FULL, NODES, QUICK, UNIF, ZIPF, Effort

from .claims import Measured, Measures, in_process

__all__ = ["DEVIATIONS", "EXPO", "FULL", "MEASURES", "NODES", "QUICK", "UNIF", "ZIPF", "tables", "workload"]

BENCH = Path(__file__).parents[2] / "bench" / "results" / "mend.json"
TIMED = ("S16", "S17", "S18", "S19")
FOUND = InProcess()


def _benched(claim_id: str, effort: Effort) -> Measured:
    found = json.loads(BENCH.read_text(encoding="utf-8"))["ratios"][claim_id]
    return Measured(found["ratio"], f"bench: {found['note']}")


def _measures() -> Measures:
    made = in_process(shadows.MEASURES, FOUND)
    made.of(*TIMED)(_benched)
    return made


MEASURES = _measures()


@lru_cache(maxsize=4)
def workload(seed: int, popularity: str = UNIF) -> Interests:
    return interests_of(shadows.workload(seed, popularity))


def tables(effort: Effort) -> Iterator[dict[str, Any]]:
    return (asdict(table) for table in shadows_figures.tables(FOUND, effort))

"""Claims P01-P25, measured here and now; what they are is in `omen.report.experiments.spidercast`."""

from __future__ import annotations

from omen.report.experiments import spidercast
from omen.report.experiments.results import InProcess
from omen.report.experiments.spidercast import DEVIATIONS, Effort

from .claims import in_process

__all__ = ["DEVIATIONS", "MEASURES", "QUICK"]

QUICK = Effort(
    node_counts=(500, 1000),
    fixed=1000,
    seeds=(0,),
    churn_s=60.0,
    topics=(100, 200),
    sizes=(10, 20, 40),
    viewed=(1000,),
    view_share=0.25,
    churned=(125, 250),
    lives_s=(100.0,),
    tdi_nodes=1000,
    few=True,
)
MEASURES = in_process(spidercast.MEASURES, InProcess())

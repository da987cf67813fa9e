"""Claims O01-O32, measured here and now on small graphs; what they are is in `omen.report.experiments.omen`.

Backup sets are of the paper's own size. The graphs stand for social ones: friends of friends become friends, a few have
many. For the 10,000 users of O24, O26 and O29 stands a graph four times as large as that of the others.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from omen.churn import Crash, Event, Join, Trace
from omen.interests import Interests
from omen.report.experiments import omen
from omen.report.experiments.omen import DEVIATIONS
from omen.report.experiments.omen_cells import Effort, Stage
from omen.report.experiments.results import InProcess
from omen.sweep.cells import WorkloadSpec
from omen.tables import write_churn, write_workload

from .claims import in_process

__all__ = ["DEVIATIONS", "FOUND", "MEASURES", "NODES"]

NODES = 120
FOUND = InProcess()
MEASURES = in_process(omen.MEASURES, FOUND)
_KEPT = TemporaryDirectory(prefix="omen-claims-")


def __getattr__(name: str) -> Any:
    """QUICK is made when it is first asked for: collecting tests draws no graphs."""
    if name == "QUICK":
        return quick()
    raise AttributeError(name)


@cache
def quick() -> Effort:
    return Effort(
        seeds=(0,), facebook=_drawn(NODES, 40), twitter=_drawn(90, 20), large=_drawn(4 * NODES, 10), view_rounds=15
    )


def _drawn(nodes: int, events: int) -> Stage:
    import networkx

    graph = networkx.powerlaw_cluster_graph(nodes, 4, 0.7, seed=2)
    pairs = [pair for u, v in graph.edges for pair in ((u, v), (v, u))]
    interests = Interests.from_pairs(pairs, nodes=list(graph.nodes))
    folder = Path(_KEPT.name) / str(nodes)
    write_workload(folder, interests, {"made_by": "tests"})
    trace = folder.with_name(f"{nodes}-churn.parquet")
    write_churn(trace, _crashes_and_returns(nodes, events), interests)
    words = f"a drawn graph of {nodes} nodes, {events} events"
    return Stage(WorkloadSpec(folder=str(folder)), str(trace), events, words)


def _crashes_and_returns(nodes: int, events: int) -> Trace:
    chance, present, absent = random.Random(2), set(range(nodes)), set[int]()
    made: list[Event] = []
    for number in range(events):
        back = bool(absent) and chance.random() < 0.5
        node = chance.choice(sorted(absent if back else present))
        (absent if back else present).remove(node)
        (present if back else absent).add(node)
        made.append(Join(60.0 * number, node) if back else Crash(60.0 * number, node))
    return Trace(tuple(made))

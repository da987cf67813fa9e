"""On what the claims on OMen are measured: graphs under churn, and the cells made from them.

The paper's Facebook and Twitter graphs are not to be had. With data, SNAP's ego-Facebook, the Higgs followers and
Slashdot, each under Google's cluster trace, are taken instead; without, synthetic workloads under random churn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omen.report.experiments import shadows
from omen.report.experiments.inputs import Inputs
from omen.sweep.cells import Cell, Value, WorkloadSpec, pairs

COVERAGES = {"O12": 0, "O13": 1, "O14": 3, "O15": 5, "O16": 7, "O17": 9}
VIEWS = {"O07": 1, "O08": 3, "O09": 5, "O10": 9}
DISTRIBUTIONS = {"Unif": shadows.UNIF, "Zipf": shadows.ZIPF, "Expo": shadows.EXPO}
RULES = ("greedy-cover", "greedy-weight", "pd-weight")
SYSTEMS = ("omen", "omen-g", "lowoda-re", "lowoda-inc", "shadow", "spidercast")
DEFAULT = 5
SPIDERCAST: dict[str, Value] = {"kg": 3, "kr": 1}
SPIDERCAST_4_0: dict[str, Value] = {"kg": 4, "kr": 0}
STAND_IN = WorkloadSpec(300, 150, "zipf:0.8", "powerlaw:10:60", 0)
LARGE_STAND_IN = WorkloadSpec(3000, 1500, "zipf:0.8", "powerlaw:10:60", 0)
LARGE_EVENTS = 40
REBUILT_EVERY = 10
LOOKS_EVERY = 15


@dataclass(frozen=True)
class Stage:
    """A graph and its churn: the first `events` of a trace, 0 for all; or, without one, so many random rounds."""

    graph: WorkloadSpec
    trace: str
    events: int
    words: str

    @property
    def churn(self) -> dict[str, Value]:
        return {"trace": self.trace, "events": self.events} if self.trace else {"rounds": self.events}


@dataclass(frozen=True)
class Effort:
    """What stands for the paper's Facebook and Twitter of 1,000 users, and for its Facebook of 10,000 (None: nothing).

    `seeds` are those of the workloads for backup sets.
    """

    seeds: tuple[int, ...]
    facebook: Stage
    twitter: Stage
    large: Stage | None
    view_rounds: int

    def alone(self) -> list[Effort]:
        """The same with each seed by itself."""
        return [replace(self, seeds=(seed,)) for seed in self.seeds]


def effort_at(scale: str, inputs: Inputs) -> Effort:
    """Full: whole traces, but of 10,000 users the first events alone. Quick: the first events, and no 10,000 users."""
    quick = scale == "quick"
    seeds, rounds = ((0,), 20) if quick else ((0, 1, 2), 100)
    if "fb1k" not in inputs.workloads:
        events = 60 if quick else 500
        first = Stage(STAND_IN, "", events, _told(STAND_IN, events))
        larger = Stage(LARGE_STAND_IN, "", LARGE_EVENTS, _told(LARGE_STAND_IN, LARGE_EVENTS))
        return Effort(seeds, first, first, None if quick else larger, rounds)

    def stage(name: str, words: str, events: int) -> Stage:
        cut = f", first {events} events" if events else ""
        told = f"{words}, Google's cluster trace{cut}"
        return Stage(WorkloadSpec(folder=inputs.workloads[name]), inputs.traces[name], events, told)

    events = 60 if quick else 0
    facebook = stage("fb1k", "SNAP ego-Facebook, 1000 users", events)
    has_twitter, has_large = "tw1k" in inputs.workloads, "sd10k" in inputs.workloads and not quick
    twitter = stage("tw1k", "Higgs followers, 1000 users", events) if has_twitter else facebook
    large = stage("sd10k", "Slashdot, 10000 users", LARGE_EVENTS) if has_large else None
    return Effort(seeds, facebook, twitter, large, rounds)


def _told(one: WorkloadSpec, rounds: int) -> str:
    return f"synthetic: {one.nodes} nodes, {one.topics} topics, Zipf 0.8, 10 to 60 topics per node, {rounds} rounds"


def replay_cell(
    stage: Stage, system: str, coverage: int = DEFAULT, spidercast: Mapping[str, Value] = SPIDERCAST
) -> Cell:
    """All systems start from Low-ODA's overlay. SpiderCast is the paper's (3,1) unless told otherwise."""
    told: dict[str, Value] = {"lambda": coverage} if system in ("omen", "omen-g", "shadow") else {}
    told |= spidercast if system == "spidercast" else {}
    settings: dict[str, Value] = {"verify": "end", "diameters": True, **stage.churn}
    return Cell("replay", stage.graph, system, pairs(told), pairs(settings))


def wide_cell(stage: Stage, system: str) -> Cell:
    """The same, with a look at diameters every so many events."""
    cell = replay_cell(stage, system)
    settings: dict[str, Value] = {"verify": "end", "diameters_every": LOOKS_EVERY, **stage.churn}
    return replace(cell, settings=pairs(settings))


def large_cell(stage: Stage, system: str) -> Cell:
    return replace(replay_cell(stage, system), settings=pairs({"verify": "end", **stage.churn}))


def rebuild_cell(stage: Stage) -> Cell:
    """Low-ODA from scratch, in some of the rounds."""
    return Cell("rebuild", stage.graph, "low-oda", settings=pairs({"every": REBUILT_EVERY, **stage.churn}))


def views_cell(effort: Effort, coverage: int) -> Cell:
    options: dict[str, Value] = {"lambda": coverage, "resilience": 1}
    return Cell("views", effort.facebook.graph, "omen", pairs(options), pairs({"rounds": effort.view_rounds}))


def cells(effort: Effort) -> list[Cell]:
    """All that the claims and figures are made from."""
    facebook, twitter, large = effort.facebook, effort.twitter, effort.large
    return [
        *(replay_cell(facebook, "omen", coverage) for coverage in COVERAGES.values()),
        *(replay_cell(facebook, system) for system in SYSTEMS if system != "omen"),
        replay_cell(facebook, "spidercast", spidercast=SPIDERCAST_4_0),
        *(wide_cell(twitter, system) for system in ("omen", "spidercast")),
        *([large_cell(large, "omen"), large_cell(large, "spidercast"), rebuild_cell(large)] if large else []),
        *(views_cell(effort, coverage) for coverage in VIEWS.values()),
        *(
            shadows.backups_cell(seed, rule, popularity)
            for seed in effort.seeds
            for popularity in DISTRIBUTIONS.values()
            for rule in RULES
        ),
    ]

"""Chen, Vitenberg, Jacobsen, "OMen: Overlay Mending ...": section 6, claims O01-O24 and O27-O29.

The paper's Facebook and Twitter graphs are not the ones we have: "other data" below. Degrees there are compared in
ratio: ours are scaled so that both start from the paper's 232, and views so that both have its size at lambda 5.
`greedy` is the rule that covers most topics first (`greedy-cover`), as in the claims on shadows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from omen.churn import Crash, Event, Join, Trace
from omen.interests import Interests

from .claims import Deviation, Measured, Measures
from .omen_backups import POPULARITIES, BackupSets, backup_sets
from .omen_cells import Cell, NotThere, Store, first_events, mean_of, rebuild_cell, replay_cell, views_cell
from .shadows import workload

COVERAGES = (0, 1, 3, 5, 7, 9)
VIEW_COVERAGES = (1, 3, 5, 9)
VIEW_ROUNDS, SYNTHETIC_ROUNDS = 100, 30
PAPER_START, PAPER_VIEW = 232, 48.40  # the paper's D before churn, and its mean view, FB 1K at lambda 5


@dataclass(frozen=True)
class Effort:
    """`graph`: the social graph, or "drawn" for a small one like it, with so many nodes and events of churn.

    `seeds`: workloads of 2000 nodes and 200 topics for the claims on backup sets. `large_nodes`, `large_events`: of the
    larger graph, and how many events of its trace.
    """

    graph: str
    nodes: int
    events: int
    view_rounds: int
    seeds: int
    large_nodes: int
    large_events: int


QUICK = Effort(graph="drawn", nodes=120, events=40, view_rounds=15, seeds=1, large_nodes=480, large_events=10)
FULL = Effort(
    graph="fb1k", nodes=1000, events=1741, view_rounds=VIEW_ROUNDS, seeds=3, large_nodes=10_000, large_events=40
)

MEASURES = Measures()
STORE = Store(Path(".cache/claims"))  # where FULL keeps its cells; `measure` says where

FEW = (
    "Nearly every node has one of the most chosen among its backups: they are the widest, and each set takes the widest"
    " first. Read otherwise, as the places in all backup sets that the busiest 1% of the nodes fill, ours are 0.35"
    " (Unif) and 0.48 (Zipf), near the paper's, and 0.92 for Expo, or 0.58 with SpiderCast's Expo on a single workload;"
    " that reading was tried after the result was seen."
)
STEPS = (
    "The maximum degree moves in steps of a link or two, ours from a start of 45 where the paper's is 232; how many"
    " steps fall into a trace says little."
)
FASTER = (
    "The ratio is to a faster Low-ODA: ours takes 50 ms on 1,000 users, and OMen's repair half a millisecond, most of"
    " it for handing lists to compiled code."
)
DEVIATIONS = {
    "O04": Deviation(0.9, 1.0, FEW),
    "O05": Deviation(0.9, 1.0, FEW),
    "O06": Deviation(0.9, 1.0, FEW),
    "O09": Deviation(
        10,
        60,
        "A guess, not tested: our users are friends of friends, so that a few nodes have most of what one wants,"
        " and five covers are small. Nor does the paper say for which L its views are; ours are for L 1.",
    ),
    "O10": Deviation(
        57,
        90,
        "Other data, scaled by the view at lambda 5. Ours go on growing with lambda. A guess, not tested: with views a"
        " third as large as the paper's at lambda 5 there are more subscribers left to take in.",
    ),
    "O12": Deviation(
        200,
        480,
        "Other data, scaled by the degree at the start, 45 where the paper's is 232. A guess, not tested: without"
        " covers the few former neighbours of a lost node must be linked with each other, and ours have fewer.",
    ),
    "O23": Deviation(-0.1, 0.6, STEPS),
    "O24": Deviation(-0.05, 0.11, STEPS),
    "O27": Deviation(
        0.3,
        2.5,
        "Our OMen-G has its backup sets ready as OMen has, and runs the same repair on a shadow set of the same size."
        " What the paper's does that takes twenty times as long is not said.",
    ),
    "O28": Deviation(0.0, 0.8, FASTER),
    "O29": Deviation(0.0, 0.1, FASTER),
}


@cache
def drawn_graph(nodes: int) -> tuple[Interests, Trace]:
    """For tests: friends of friends become friends, a few have many; and crashes and returns of random users."""
    import networkx

    graph = networkx.powerlaw_cluster_graph(nodes, 4, 0.7, seed=2)
    pairs = [pair for u, v in graph.edges for pair in ((u, v), (v, u))]
    interests = Interests.from_pairs(pairs, nodes=list(graph.nodes))
    chance, present, absent = random.Random(2), set(range(nodes)), set[int]()
    events: list[Event] = []
    for number in range(QUICK.events):
        back = bool(absent) and chance.random() < 0.5
        node = chance.choice(sorted(absent if back else present))
        (absent if back else present).remove(node)
        (present if back else absent).add(node)
        events.append(Join(60.0 * number, node) if back else Crash(60.0 * number, node))
    return interests, Trace(tuple(events))


def _input(effort: Effort) -> tuple[Interests, Trace]:
    return drawn_graph(effort.nodes) if effort.graph == "drawn" else STORE.trace(effort.graph)


_in_memory: dict[str, Cell] = {}


def replayed(effort: Effort, system: str, **options: Any) -> Cell:
    """A replay of the trace, kept by name."""

    def compute(events: int | None = None, notes: Path | None = None) -> Cell:
        interests, trace = _input(effort)
        return replay_cell(interests, Trace(trace.events[:events]), system, notes=notes, **options)

    words = [f"{key.rstrip('_')}{value}" for key, value in sorted(options.items())]
    name = "-".join(["replay", effort.graph, system, *words])
    return _cell(effort, name, compute) if effort.graph == "drawn" else STORE.replay(name, compute)


def views(effort: Effort, coverage: int, resilience: int = 1) -> Cell:
    def compute() -> Cell:
        return views_cell(_input(effort)[0], coverage, resilience, effort.view_rounds)

    return _cell(effort, f"views-{effort.graph}-lambda{coverage}-L{resilience}", compute)


def synthetic_views(name: str) -> Cell:
    """View sizes on one of the synthetic workloads, lambda 5."""
    return STORE.get(
        f"views-{name.lower()}-lambda5-L1",
        lambda: views_cell(workload(0, POPULARITIES[name]), 5, 1, SYNTHETIC_ROUNDS),
    )


def large(effort: Effort, system: str) -> Cell:
    """The first events of the trace on the larger graph; Low-ODA is timed on the whole workload instead."""

    def compute() -> Cell:
        drawn = drawn_graph(effort.large_nodes) if effort.graph == "drawn" else None
        if system == "lowoda-re":
            return rebuild_cell(drawn[0] if drawn else STORE.workload("slashdot10k"), 3)
        interests, trace = drawn or STORE.trace("slashdot10k")
        return replay_cell(interests, Trace(trace.events[: effort.large_events]), system, "end")

    return _cell(effort, f"replay-slashdot10k-{system}", compute)


def _cell(effort: Effort, name: str, compute: Any) -> Cell:
    if effort.graph != "drawn":
        return STORE.get(name, compute)
    if name not in _in_memory:
        _in_memory[name] = compute()
    return _in_memory[name]


def last_views(cell: Cell) -> Sequence[int]:
    """The sizes after the last round measured."""
    return list(cell["sizes"].values())[-1]


def _backups(effort: Effort, popularity: str, rule: str = "greedy-cover") -> list[BackupSets]:
    return [backup_sets(seed, POPULARITIES[popularity], rule) for seed in range(effort.seeds)]


@MEASURES.of("O01")
def highest_in_degree(effort: Effort) -> Measured:
    rules = {rule: _backups(effort, "Unif", rule) for rule in ("greedy-cover", "greedy-weight", "pd-weight")}
    highest = {rule: fmean(float(one.in_degrees.max()) for one in those) for rule, those in rules.items()}
    others = ", ".join(f"{rule} {value:.0f}" for rule, value in highest.items() if rule != "greedy-cover")
    return Measured(highest["greedy-cover"], f"greedy-cover; {others}")


@MEASURES.of("O02", "O03")
def share_of_low_in_degrees(claim_id: str, effort: Effort) -> Measured:
    those = _backups(effort, {"O02": "Zipf", "O03": "Expo"}[claim_id])
    return Measured(fmean(float((one.in_degrees < 5).mean()) for one in those))


@MEASURES.of("O04", "O05", "O06")
def share_served_by_few(claim_id: str, effort: Effort) -> Measured:
    those = _backups(effort, {"O04": "Unif", "O05": "Zipf", "O06": "Expo"}[claim_id])
    few = fmean(float((one.in_degrees > 100).mean()) for one in those)
    busiest = fmean(one.share_of_busiest for one in those)
    note = f"they are {few:.2%} of the nodes; of the places in all backup sets the busiest 1% fill {busiest:.3f}"
    return Measured(fmean(one.share_served_by_few for one in those), note)


@MEASURES.of("O07", "O08", "O09", "O10")
def mean_view(claim_id: str, effort: Effort) -> Measured:
    coverage = {"O07": 1, "O08": 3, "O09": 5, "O10": 9}[claim_id]
    mean = fmean(last_views(views(effort, coverage)))
    at_five = fmean(last_views(views(effort, 5)))
    if effort.graph == "drawn" or coverage != 5:
        return Measured(
            mean / at_five * PAPER_VIEW, f"other data, scaled: {mean:.2f}, and {at_five:.2f} at lambda 5; L 1"
        )
    return Measured(mean, "other data; L 1")


@MEASURES.of("O11")
def share_of_small_views(effort: Effort) -> Measured:
    """Below 5% of the paper's 1,000 nodes, whatever the size of ours."""
    sizes = last_views(views(effort, 5))
    return Measured(fmean(size < 50 for size in sizes), f"fewer than 50, L 1; the mean is {fmean(sizes):.1f}")


@MEASURES.of("O12", "O13", "O14", "O15", "O16", "O17")
def last_maximum_degree(claim_id: str, effort: Effort) -> Measured:
    coverage = dict(zip(("O12", "O13", "O14", "O15", "O16", "O17"), COVERAGES, strict=True))[claim_id]
    cell = replayed(effort, "omen", **({} if coverage == 5 else {"lambda_": coverage}))
    start, end = cell["start"]["max_degree"], cell["max_degree"][-1]
    average = f"d {cell['start']['avg_degree']:.2f} to {cell['avg_degree'][-1]:.2f}"
    note = f"other data, scaled: D {start} to {end}; {average}; {cell['events']} events"
    return Measured(end / start * PAPER_START, note)


@MEASURES.of("O18")
def share_of_views_up_to_80(effort: Effort) -> Measured:
    sizes = last_views(views(effort, 5))
    return Measured(fmean(size <= 80 for size in sizes), f"other data; the largest has {max(sizes)}; L 1")


def _means(cell: Cell) -> tuple[float, float]:
    return mean_of(cell, "max_degree"), mean_of(cell, "avg_degree")


@MEASURES.of("O19", "O20")
def degrees_next_to_rebuilding(claim_id: str, effort: Effort) -> Measured:
    return _next_to(claim_id == "O19", replayed(effort, "omen"), replayed(effort, "lowoda-re"))


@MEASURES.of("O21", "O22")
def degrees_next_to_global_views(claim_id: str, effort: Effort) -> Measured:
    return _next_to(claim_id == "O21", replayed(effort, "omen"), replayed(effort, "omen-g"))


def _next_to(maximum: bool, ours: Cell, theirs: Cell) -> Measured:
    """Over the events that both replays have."""
    events = min(ours["events"], theirs["events"])
    ours, theirs = first_events(ours, events), first_events(theirs, events)
    (ours_max, ours_mean), (theirs_max, theirs_mean) = _means(ours), _means(theirs)
    name = "max_degree" if maximum else "avg_degree"
    note = f"means {ours_max:.1f} and {theirs_max:.1f}" if maximum else f"means {ours_mean:.2f} and {theirs_mean:.2f}"
    value = ours_max / theirs_max if maximum else ours_mean - theirs_mean
    return Measured(value, f"{note}; at the end {ours[name][-1]:.4g} and {theirs[name][-1]:.4g}; {events} events")


@MEASURES.of("O23")
def maximum_degree_gained(effort: Effort) -> Measured:
    cell = replayed(effort, "omen")
    start, end = cell["start"]["max_degree"], cell["max_degree"][-1]
    gained = (end - start) / cell["events"]
    return Measured(
        gained / start * PAPER_START, f"other data, scaled: {gained:.4f}, {start} to {end} in {cell['events']}"
    )


def _large_name(effort: Effort) -> str:
    return "a drawn graph" if effort.graph == "drawn" else "Slashdot 10K instead"


@MEASURES.of("O24")
def maximum_degree_gained_on_10k(effort: Effort) -> Measured:
    cell = large(effort, "omen")
    start, end = cell["start"]["max_degree"], cell["max_degree"][-1]
    gained = (end - start) / cell["events"]
    return Measured(gained, f"{_large_name(effort)}, the first {cell['events']} events: D {start} to {end}")


@MEASURES.of("O27")
def repair_time_next_to_global_views(effort: Effort) -> Measured:
    return _time_next_to(effort, "omen-g")


@MEASURES.of("O28")
def repair_time_next_to_rebuilding(effort: Effort) -> Measured:
    return _time_next_to(effort, "lowoda-re")


def _time_next_to(effort: Effort, other: str) -> Measured:
    """Processor time of the repair algorithm itself."""
    ours, theirs = (mean_of(replayed(effort, system), "repair_s") for system in ("omen", other))
    return Measured(ours / theirs, f"{1e3 * ours:.2f} and {1e3 * theirs:.2f} ms of processor time a repair")


@MEASURES.of("O29")
def repair_time_next_to_rebuilding_10k(effort: Effort) -> Measured:
    ours, theirs = mean_of(large(effort, "omen"), "repair_s"), min(large(effort, "lowoda-re")["rebuild_s"])
    return Measured(ours / theirs, f"{_large_name(effort)}: {1e3 * ours:.2f} ms and {theirs:.2f} s of processor time")


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "OMen, lambda 0": ("omen", {"lambda_": 0}),
    "lambda 1": ("omen", {"lambda_": 1}),
    "lambda 3": ("omen", {"lambda_": 3}),
    "lambda 5 (default)": ("omen", {}),
    "lambda 7": ("omen", {"lambda_": 7}),
    "lambda 9": ("omen", {"lambda_": 9}),
    "no links spared": ("omen", {"removals": 0}),
    "halo of one hop": ("omen", {"halo_hops": 1}),
    "halo of one hop, no links spared": ("omen", {"halo_hops": 1, "removals": 0}),
    "OMen-G": ("omen-g", {}),
    "LowODA-Re": ("lowoda-re", {}),
    "LowODA-Inc": ("lowoda-inc", {}),
    "Shadow, lambda 5": ("shadow", {"lambda_": 5}),
}


def tables(effort: Effort) -> Iterator[dict[str, Any]]:
    """All replays of the Facebook trace that were made."""
    rows = []
    for name, (system, options) in VARIANTS.items():
        try:
            rows.append([name, *_variant_row(replayed(effort, system, **options))])
        except NotThere:
            continue
    yield {
        "title": "Facebook 1K under the Google trace, all of its events or the first",
        "header": [
            "system",
            "events",
            "D at the end",
            "mean D",
            "d at the end",
            "mean d",
            "mean |S|",
            "messages",
            "kB",
        ],
        "rows": rows,
    }


def _variant_row(cell: Cell) -> list[str]:
    rows = [str(cell["events"]), str(cell["max_degree"][-1]), f"{mean_of(cell, 'max_degree'):.1f}"]
    rows += [f"{cell['avg_degree'][-1]:.2f}", f"{mean_of(cell, 'avg_degree'):.2f}"]
    for name, factor in (("shadow_size", 1), ("messages", 1), ("bytes", 1e-3)):
        rows.append(f"{factor * mean_of(cell, name):.0f}" if any(v is not None for v in cell[name]) else "")
    return rows


def cells(effort: Effort) -> dict[str, Any]:
    """Every cell that the claims are made from, by name; calling one makes it."""
    found: dict[str, Any] = {}
    for system, options in VARIANTS.values():
        words = [f"{key.rstrip('_')}{value}" for key, value in options.items()]
        found["-".join([system, *words])] = lambda system=system, options=options: replayed(effort, system, **options)
    for coverage in VIEW_COVERAGES:
        found[f"views-lambda{coverage}"] = lambda coverage=coverage: views(effort, coverage)
    for system in ("omen", "lowoda-re"):
        found[f"10k-{system}"] = lambda system=system: large(effort, system)
    for name in POPULARITIES:
        found[f"views-{name.lower()}"] = lambda name=name: synthetic_views(name)
    return found

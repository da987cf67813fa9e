"""Chockler, Melamed, Tock, Vitenberg, "SpiderCast": section 3, Figs. 6-8, 10, 12-14, all its claims, P01-P25.

RSS is Zipf with exponent 0.5, NYSE is `expo`. Claims that need node counts beyond those run are not run at that scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from omen.pipeline.sweep_cells import Cell, Value, WorkloadSpec, pairs
from omen.report.experiments.lines import line_of
from omen.report.experiments.results import NotRun, Results
from omen.report.figures import Drawing, Panel, PaperValue
from omen.report.ledger import Deviation, Measured, Measures, ordered

RSS, ZIPF1, NYSE, UNIF, ZIPF2 = "zipf:0.5", "zipf:1", "expo", "uniform", "zipf:2"
FOUR = {"Uniform": UNIF, "RSS": RSS, "Zipf 1": ZIPF1, "NYSE": NYSE}
SIZES = (10, 15, 20, 30, 40)
TOPICS = (100, 400, 1000)
VIEWED = (4000, 8000)
TDI_NODES = 4000
RIVALS: dict[str, tuple[str, dict[str, Value]]] = {
    "similarity(10,0)": ("similarity", {"x": 10, "y": 0}),
    "similarity(7,3)": ("similarity", {"x": 7, "y": 3}),
    "random(10)": ("random", {"y": 10}),
}
AT_1K_10K = dict(zip("abcdef", (1000, 2000, 4000, 6000, 8000, 10000), strict=True))
PAPER_DEGREES = {
    "spidercast (3,0)": (10.81, 10.11, 9.53, 9.24, 9.08, 8.95),
    "random(10)": (10.82, 10.54, 10.34, 10.12, 10.08, 10.11),
}


@dataclass(frozen=True)
class Effort:
    """Node counts of 3.3, 3.4 and 3.9; `fixed` nodes where the paper varies something else (it has 10,000).

    Churn goes on for `churn_s` seconds; the paper's for 1000.
    """

    node_counts: tuple[int, ...]
    fixed: int
    seeds: tuple[int, ...]
    churn_s: float

    def alone(self) -> list[Effort]:
        """The same with each seed by itself."""
        return [replace(self, seeds=(seed,)) for seed in self.seeds]


QUICK = Effort((1000, 2000, 4000, 6000, 8000, 10000), 2000, (0,), 100.0)
FULL = Effort((1000, 2000, 4000, 6000, 8000, 10000), 10000, (0,), 1000.0)

MEASURES = Measures()
DEVIATIONS: dict[str, Deviation] = {
    claim_id: Deviation(0, 0, "Ours leaves no topic split there, with fewer links than the paper's. Why is not known.")
    for claim_id in ("P02", "P03", "P22")
}
LIVES_S = (100.0, 500.0)
CHURNED = {"P16": 1250, "P17": 2500, "P24a": 1250, "P24b": 2500}
"""Nodes so that four fifths of them, those up at a time, are the paper's 1000 and 2000."""


def workload(nodes: int, popularity: str, seed: int, topics: int = 100, size: int = 10) -> WorkloadSpec:
    return WorkloadSpec(nodes, topics, popularity, str(size), seed)


def spider_cell(one: WorkloadSpec, kg: int = 3, kr: int = 0) -> Cell:
    return _cell(one, "spidercast", kg=kg, kr=kr)


def _cell(one: WorkloadSpec, name: str, **options: Value) -> Cell:
    told = options if name == "ring-pt" else {**options, "seed": one.seed}
    return Cell("design", one, name, pairs(told), pairs({"diameters": True}))


def view_cell(nodes: int, seed: int) -> Cell:
    """Every node knows 5% of the others."""
    return _cell(workload(nodes, RSS, seed), "spidercast", kg=3, kr=0, view=0.05)


def tdi_cell(popularity: str, seed: int) -> Cell:
    """How alike nodes are; rings are only there to have something designed."""
    return Cell("design", workload(TDI_NODES, popularity, seed), "ring-pt", settings=pairs({"tdi": 20}))


def churn_cell(effort: Effort, nodes: int, mean_up: float, seed: int) -> Cell:
    """Lives of this mean length and absences of a quarter of it."""
    settings: dict[str, Value] = {"mean_up": mean_up, "duration": effort.churn_s}
    return Cell("lives", workload(nodes, RSS, seed), "spidercast", pairs({"kg": 3, "kr": 0}), pairs(settings))


def cells(effort: Effort) -> list[Cell]:
    """All that the claims and figures are made from."""
    wanted: list[Cell] = []
    for seed in effort.seeds:
        for nodes in effort.node_counts:
            zipf, rss = workload(nodes, ZIPF2, seed), workload(nodes, RSS, seed)
            wanted += [spider_cell(zipf), spider_cell(zipf, 3, 1), spider_cell(zipf, 4, 0)]
            wanted += [spider_cell(workload(nodes, popularity, seed)) for popularity in FOUR.values()]
            wanted += [spider_cell(workload(nodes, RSS, seed, topics=200)), _cell(rss, "ring-pt")]
            wanted += [_cell(rss, name, **options) for name, options in RIVALS.values()]
        wanted += [view_cell(nodes, seed) for nodes in VIEWED]
        wanted += [churn_cell(effort, nodes, mean_up, seed) for nodes in (1250, 2500) for mean_up in LIVES_S]
        wanted += [tdi_cell(popularity, seed) for popularity in FOUR.values()]
        wanted += [spider_cell(workload(effort.fixed, RSS, seed, size=size)) for size in SIZES]
        wanted += [spider_cell(workload(effort.fixed, RSS, seed, topics, 20)) for topics in TOPICS]
    return list(dict.fromkeys(wanted))


def number(
    found: Results, effort: Effort, measure: str, nodes: int, popularity: str, kg: int = 3, kr: int = 0
) -> float:
    return fmean(
        found.of(spider_cell(workload(nodes, popularity, seed), kg, kr)).values[measure] for seed in effort.seeds
    )


def _counts(effort: Effort, low: int, high: int) -> list[int]:
    """Those of the effort between these; a claim about all of them is not run where some are missing."""
    if missing := [nodes for nodes in AT_1K_10K.values() if low <= nodes <= high and nodes not in effort.node_counts]:
        raise NotRun(f"needs {', '.join(map(str, missing))} nodes")
    return [nodes for nodes in effort.node_counts if low <= nodes <= high]


@MEASURES.of("P01", "P02", "P03", "P04", "P22")
def partitioned_topics(claim_id: str, found: Results, effort: Effort) -> Measured:
    low, high = {"P01": (1000, 4000), "P02": (6000, 6000), "P03": (8000, 10000)}.get(claim_id, (6000, 10000))
    kg, kr = {"P04": (3, 1), "P22": (4, 0)}.get(claim_id, (3, 0))
    counts = list(effort.node_counts) if claim_id == "P04" else _counts(effort, low, high)
    row = [number(found, effort, "split_topics", nodes, ZIPF2, kg, kr) for nodes in counts]
    pick = {"P01": max, "P04": max, "P22": min}.get(claim_id, fmean)
    return Measured(float(pick(row)), f"nodes {counts}: {row}")


@MEASURES.of("P05", "P06")
def degree_under_skew(claim_id: str, found: Results, effort: Effort) -> Measured:
    row = [number(found, effort, "avg_degree", n, ZIPF2, 3, int(claim_id == "P06")) for n in effort.node_counts]
    return Measured(fmean(row), f"nodes {list(effort.node_counts)}: {[round(one, 2) for one in row]}")


@MEASURES.of("P07", "P08")
def over_distributions(claim_id: str, found: Results, effort: Effort) -> Measured:
    measure = "split_topics" if claim_id == "P07" else "avg_degree"
    rows = {
        name: [number(found, effort, measure, nodes, popularity) for nodes in effort.node_counts]
        for name, popularity in FOUR.items()
    }
    told = "; ".join(f"{name} {' '.join(f'{one:.4g}' for one in row)}" for name, row in rows.items())
    return Measured(max(map(max, rows.values())), f"nodes {list(effort.node_counts)}: {told}")


@MEASURES.of("P09a", "P09b", "P09c", "P09d")
def highest_diameter(claim_id: str, found: Results, effort: Effort) -> Measured:
    popularity = {"P09a": UNIF, "P09b": RSS, "P09c": ZIPF1, "P09d": NYSE}[claim_id]
    row = [number(found, effort, "max_diameter", nodes, popularity) for nodes in effort.node_counts]
    return Measured(max(row), f"nodes {list(effort.node_counts)}: {' '.join(f'{one:.3g}' for one in row)}")


@MEASURES.of("P10")
def order_of_degrees(found: Results, effort: Effort) -> Measured:
    rows = {
        name: [number(found, effort, "avg_degree", nodes, popularity) for nodes in effort.node_counts]
        for name, popularity in FOUR.items()
    }
    across = [
        pair
        for place in range(len(effort.node_counts))
        for name in ("RSS", "Zipf 1")
        for pair in ((rows["NYSE"][place], rows[name][place]), (rows[name][place], rows["Uniform"][place]))
    ]
    told = "; ".join(f"{name} {' '.join(f'{one:.2f}' for one in row)}" for name, row in rows.items())
    falling = [row[::-1] for row in rows.values() if len(row) > 1]
    return ordered([*across, *falling], f"nodes {list(effort.node_counts)}: {told}")


@MEASURES.of("P11a", "P11b")
def maximum_degree(claim_id: str, found: Results, effort: Effort) -> Measured:
    topics = 100 if claim_id == "P11a" else 200
    row = [
        fmean(
            found.of(spider_cell(workload(nodes, RSS, seed, topics=topics))).values["max_degree"]
            for seed in effort.seeds
        )
        for nodes in effort.node_counts
    ]
    return Measured(max(row), f"highest of nodes {list(effort.node_counts)}: {row}")


def _fixed(found: Results, effort: Effort, measure: str, topics: int, size: int) -> float:
    return fmean(
        found.of(spider_cell(workload(effort.fixed, RSS, seed, topics, size))).values[measure] for seed in effort.seeds
    )


@MEASURES.of("P12")
def degree_by_topics(found: Results, effort: Effort) -> Measured:
    degrees = [_fixed(found, effort, "avg_degree", topics, 20) for topics in TOPICS]
    wide = [_fixed(found, effort, "max_diameter", topics, 20) for topics in TOPICS]
    note = f"{effort.fixed} nodes, topics {TOPICS}: d {[round(one, 2) for one in degrees]}, diameters {wide}"
    return ordered([degrees, wide[::-1]], note)


@MEASURES.of("P13")
def degree_by_size(found: Results, effort: Effort) -> Measured:
    row = [_fixed(found, effort, "avg_degree", 100, size) for size in SIZES]
    return ordered([row[:3], row[2:][::-1]], f"{effort.fixed} nodes, s {SIZES}: {[round(one, 2) for one in row]}")


@MEASURES.of("P14")
def partial_views(found: Results, effort: Effort) -> Measured:
    results = [found.of(view_cell(nodes, seed)).values for nodes in VIEWED for seed in effort.seeds]
    degrees = " ".join(f"{one['avg_degree']:.2f}" for one in results)
    return Measured(max(one["split_topics"] for one in results), f"RSS, nodes {VIEWED}: average degree {degrees}")


@MEASURES.of("P15")
def split_under_churn(found: Results, effort: Effort) -> Measured:
    results = [one for nodes in (1250, 2500) for one in _churned(found, effort, nodes)]
    events = sum(one["events"] for one in results)
    return Measured(max(one["split_topics"] for one in results), f"{events:.0f} joins and leaves, five snapshots each")


@MEASURES.of("P16", "P17", "P24a", "P24b")
def under_churn(claim_id: str, found: Results, effort: Effort) -> Measured:
    measure = "control_messages" if claim_id in ("P16", "P17") else "avg_degree"
    row = [one[measure] for one in _churned(found, effort, CHURNED[claim_id])]
    told = " ".join(f"{value:.2f}" for value in row)
    return Measured(fmean(row), f"lives of 100 and 500 s, {effort.churn_s:g} s each: {told}")


def _churned(found: Results, effort: Effort, nodes: int) -> list[Mapping[str, float]]:
    return [found.of(churn_cell(effort, nodes, mean_up, seed)).values for mean_up in LIVES_S for seed in effort.seeds]


@MEASURES.of("P25")
def likeness_and_degree(found: Results, effort: Effort) -> Measured:
    alike = {
        name: fmean(found.of(tdi_cell(popularity, seed)).values["tdi"] for seed in effort.seeds)
        for name, popularity in FOUR.items()
    }
    degrees = {name: number(found, effort, "avg_degree", TDI_NODES, FOUR[name]) for name in alike}
    by_likeness = sorted(alike, key=alike.__getitem__)
    told = ", ".join(f"{name} {alike[name]:.1f}% and {degrees[name]:.2f}" for name in by_likeness)
    return ordered(
        [[degrees[name] for name in reversed(by_likeness)]], f"{TDI_NODES} nodes, tdi(20) and degree: {told}"
    )


@MEASURES.of(*(f"P18{letter}" for letter in AT_1K_10K), *(f"P19{letter}" for letter in AT_1K_10K))
def degree_at(claim_id: str, found: Results, effort: Effort) -> Measured:
    nodes = AT_1K_10K[claim_id[-1]]
    if claim_id.startswith("P18"):
        return Measured(number(found, effort, "avg_degree", nodes, RSS))
    return Measured(_rival(found, effort, "avg_degree", nodes, "random(10)"))


def _rival(found: Results, effort: Effort, measure: str, nodes: int, rival: str) -> float:
    name, options = RIVALS[rival]
    return fmean(found.of(_cell(workload(nodes, RSS, seed), name, **options)).values[measure] for seed in effort.seeds)


@MEASURES.of("P20")
def components(found: Results, effort: Effort) -> Measured:
    ours = [number(found, effort, "components", nodes, RSS) for nodes in effort.node_counts]
    rows = {
        rival: [_rival(found, effort, "components", nodes, rival) for nodes in effort.node_counts] for rival in RIVALS
    }
    holds = all(one == 100 for one in ours) and all(min(row) > 100 and row == sorted(row) for row in rows.values())
    told = "; ".join(f"{rival} {' '.join(f'{one:.0f}' for one in row)}" for rival, row in rows.items())
    return Measured(holds, f"nodes {list(effort.node_counts)}: SpiderCast {ours}; {told}")


def _ring(found: Results, effort: Effort, nodes: int) -> float:
    return fmean(found.of(_cell(workload(nodes, RSS, seed), "ring-pt")).values["avg_degree"] for seed in effort.seeds)


@MEASURES.of("P21a", "P21b")
def rings_above(claim_id: str, found: Results, effort: Effort) -> Measured:
    row = [_ring(found, effort, n) / number(found, effort, "avg_degree", n, RSS) - 1 for n in effort.node_counts]
    pick = min if claim_id == "P21a" else max
    return Measured(pick(row), f"nodes {list(effort.node_counts)}: {' '.join(f'{one:.3f}' for one in row)}")


@MEASURES.of("P23")
def rings_do_not_change(found: Results, effort: Effort) -> Measured:
    row = [_ring(found, effort, nodes) for nodes in effort.node_counts]
    return Measured(max(row) - min(row) < 0.05 * min(row), f"{' '.join(f'{one:.2f}' for one in row)}, within 5%")


def _skewed(found: Results, effort: Effort) -> Drawing:
    panels = []
    for measure, said in (("split_topics", "partitioned topics"), ("avg_degree", "average degree")):
        lines = [
            line_of(
                f"({kg},{kr})-coverage",
                {n: [number(found, effort, measure, n, ZIPF2, kg, kr)] for n in effort.node_counts},
            )
            for kg, kr in ((3, 0), (3, 1), (4, 0))
        ]
        panels.append(Panel("nodes", said, tuple(lines)))
    caption = "Zipf 2, 100 topics, 10 a node: heavy skew splits topics unless some links are random."
    return Drawing("spidercast-fig6", "SpiderCast, Fig. 6: heavy skew", caption, tuple(panels))


def _distributions(found: Results, effort: Effort) -> Drawing:
    lines = [
        line_of(name, {n: [number(found, effort, "avg_degree", n, popularity)] for n in effort.node_counts})
        for name, popularity in FOUR.items()
    ]
    panel = Panel("nodes", "average degree", tuple(lines), (PaperValue("below 12", 12.0),))
    caption = "(3,0)-coverage, 100 topics, 10 a node."
    return Drawing("spidercast-fig7", "SpiderCast, Fig. 7a: four distributions", caption, (panel,))


def _rivals(found: Results, effort: Effort) -> Drawing:
    counts = effort.node_counts
    degrees = [line_of("spidercast (3,0)", {n: [number(found, effort, "avg_degree", n, RSS)] for n in counts})]
    pieces = [line_of("spidercast (3,0)", {n: [number(found, effort, "components", n, RSS)] for n in counts})]
    for rival in RIVALS:
        degrees.append(line_of(rival, {n: [_rival(found, effort, "avg_degree", n, rival)] for n in counts}))
        pieces.append(line_of(rival, {n: [_rival(found, effort, "components", n, rival)] for n in counts}))
    degrees.append(line_of("ring-pt", {n: [_ring(found, effort, n)] for n in counts}))
    paper = tuple(
        PaperValue("", value, float(nodes))
        for row in PAPER_DEGREES.values()
        for nodes, value in zip(AT_1K_10K.values(), row, strict=True)
        if nodes in counts
    )
    panels = (
        Panel("nodes", "average degree", tuple(degrees), paper),
        Panel("nodes", "components over all topics", tuple(pieces), (PaperValue("SpiderCast 100", 100.0),), log_y=True),
    )
    caption = "RSS, 100 topics, 10 a node. Crosses: the paper's SpiderCast and random(10)."
    return Drawing("spidercast-fig12-14", "SpiderCast, Figs. 12 to 14: rivals", caption, panels)


DRAWINGS = (_skewed, _distributions, _rivals)

"""Chen, Vitenberg, Jacobsen, "Constructing fault-tolerant overlay networks": VIII and appendix D, claims K01-K23.

The paper does not say what its exponential distribution is. With p(t) ~ exp(-0.1 t) its numbers come out; with the one
SpiderCast describes (NYSE) several do not. Expo is the former here; docs/claims.md has what the latter gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from omen.report.experiments.results import Results, design_cell, mean, shown, value
from omen.report.ledger import Deviation, Measured, Measures
from omen.sweep.cells import Cell, WorkloadSpec

UNIF, ZIPF, EXPO, NYSE = "uniform", "zipf:2", "expo:0.1", "expo"
EXPO_BY_TOPICS = "expo:20/T"  # exp(-20 t / |T|): the same as EXPO at |T| = 200
LARGEST_K = 14
Those = Sequence[WorkloadSpec]


@dataclass(frozen=True)
class Effort:
    """The means are over workloads of these seeds; `expo` is the distribution called Expo."""

    node_counts: tuple[int, ...]
    topic_counts: tuple[int, ...]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    expo: str = EXPO

    @property
    def distributions(self) -> tuple[str, str, str]:
        return UNIF, ZIPF, self.expo

    def alone(self) -> list[Effort]:
        """The same with each seed by itself."""
        return [replace(self, seeds=(seed,)) for seed in self.seeds]


QUICK = Effort((100, 400, 700, 1000), (100, 400, 1000), (10, 20, 50, 100), (0,))
FULL = Effort(tuple(range(100, 1001, 100)), tuple(range(100, 1001, 100)), tuple(range(10, 101, 10)), tuple(range(5)))

MEASURES = Measures()

DEVIATIONS = {
    "K01": Deviation(
        1.62,
        1.70,
        "Above the bound by half a percent. Most likely ties, which the paper leaves open: we give them to the"
        " lowest pair, and drawn at random, tried at |V|=200, they lower the ratio by far more than that. The ratio"
        " of mean degrees, instead of the mean of ratios, is below the bound too (see other readings).",
    ),
    "K02": Deviation(
        1.63,
        1.72,
        "Above the bound by less than two percent. Most likely ties, as in K01; and an Expo that flattens as |T|"
        " grows gives a lower ratio (see other readings).",
    ),
    "K20": Deviation(
        12,
        16,
        "Not known. Diam(GM) under Zipf stays the same with ties drawn at random (see other readings). The gaps"
        " under Unif and Expo (K15, K19) and all ratios (K13, K14, K17, K18) do reproduce.",
    ),
    "K22": Deviation(
        0.60,
        0.72,
        "Ours needs fewer links than the paper says. K06 wants k=12 for the links of CyclePT under Expo at"
        " |T|=200, so k=6 must come much cheaper there; both hold if Expo flattens as |T| grows. With exp(-20"
        " t/|T|), the same at |T|=200, the claim reproduces, and K05 comes to 43.17 where the paper has 43.1 (see"
        " other readings). The paper does not say what its Expo is.",
    ),
}


def workloads(
    effort: Effort, popularity: str, nodes: int = 800, topics: int = 200, size: int = 30
) -> list[WorkloadSpec]:
    if popularity == EXPO_BY_TOPICS:
        popularity = f"expo:{20 / topics:.6g}"
    return [WorkloadSpec(nodes, topics, popularity, str(size), seed) for seed in effort.seeds]


def cells(effort: Effort) -> list[Cell]:
    """All that the claims and figures are made from."""
    wanted: list[Cell] = []
    for popularity in effort.distributions:
        by_nodes = [one for nodes in effort.node_counts for one in workloads(effort, popularity, nodes=nodes)]
        by_topics = [one for topics in effort.topic_counts for one in workloads(effort, popularity, topics=topics)]
        by_size = [one for size in effort.sizes for one in workloads(effort, popularity, size=size)]
        wanted += [design_cell(one, name, diameters=True) for one in by_nodes for name in ("gm", "gm2")]
        wanted += [design_cell(one, name) for one in by_topics for name in ("gm", "gm2")]
        for one in (*by_nodes, *by_topics, *by_size, *workloads(effort, popularity, nodes=1000)):
            wanted += [design_cell(one, "cycle-pt"), design_cell(one, "harary-pt", k=2)]
        wanted += [design_cell(one, "harary-pt", k=k) for one in (*by_topics, *by_size) for k in (6, 10, 12)]
        largest = workloads(effort, popularity, nodes=1000)
        wanted += [design_cell(one, "harary-pt", k=k) for one in largest for k in range(2, LARGEST_K + 1)]
        wanted += [design_cell(one, name, diameters=True) for one in largest for name in ("gm", "gm2")]
        widest = workloads(effort, popularity, size=100)
        wanted += [design_cell(one, "harary-pt", k=12) for one in widest]
        wanted += [design_cell(one, "cycle-pt") for one in widest]
    ends = [one for topics in (100, 1000) for one in workloads(effort, UNIF, topics=topics)]
    wanted += [design_cell(one, "harary-pt", k=10) for one in ends]
    return list(dict.fromkeys(wanted))


def mean_by_distribution(effort: Effort, measure: Callable[[str], float]) -> Measured:
    row = [measure(popularity) for popularity in effort.distributions]
    return Measured(fmean(row), f"Unif/Zipf/Expo {shown(row)}")


def over_nodes(effort: Effort, measure: Callable[[Those], float]) -> Callable[[str], float]:
    """The mean of a measure over |V|, |T| = 200, s = 30, for a distribution."""
    return lambda popularity: fmean(measure(workloads(effort, popularity, nodes=nodes)) for nodes in effort.node_counts)


def over_topics(effort: Effort, measure: Callable[[Those], float]) -> Callable[[str], float]:
    """The mean of a measure over |T|, |V| = 800, s = 30, for a distribution."""
    return lambda popularity: fmean(
        measure(workloads(effort, popularity, topics=topics)) for topics in effort.topic_counts
    )


def ratio(found: Results, measure: str, one: str, other: str, **options: int) -> Callable[[Those], float]:
    """How many times the number of the other; options are the first one's."""
    return lambda those: mean(found, those, measure, one, **options) / mean(found, those, measure, other)


@MEASURES.of("K01", "K02")
def degree_ratio(claim_id: str, found: Results, effort: Effort) -> Measured:
    over = over_nodes if claim_id == "K01" else over_topics
    return mean_by_distribution(effort, over(effort, ratio(found, "avg_degree", "gm2", "gm")))


@MEASURES.of("K03")
def cycle_degree_to_size(found: Results, effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, over_nodes(effort, lambda those: mean(found, those, "avg_degree", "cycle-pt") / 30)
    )


@MEASURES.of("K04")
def cycle_degree_to_gm2_degree(found: Results, effort: Effort) -> Measured:
    return mean_by_distribution(effort, over_nodes(effort, ratio(found, "avg_degree", "cycle-pt", "gm2")))


@MEASURES.of("K05")
def cycle_degree_above_gm2_degree(found: Results, effort: Effort) -> Measured:
    def gap(those: Those) -> float:
        return mean(found, those, "avg_degree", "cycle-pt") - mean(found, those, "avg_degree", "gm2")

    return mean_by_distribution(effort, over_topics(effort, gap))


@MEASURES.of("K06", "K07", "K08")
def largest_k_below_cycles(claim_id: str, found: Results, effort: Effort) -> Measured:
    popularity = {"K06": effort.expo, "K07": ZIPF, "K08": UNIF}[claim_id]
    those = workloads(effort, popularity, nodes=1000)
    row = [ratio(found, "edges", "harary-pt", "cycle-pt", k=k)(those) for k in range(2, LARGEST_K + 1)]
    largest = max((k for k, one in enumerate(row, start=2) if one < 1), default=0)
    return Measured(largest, f"links HararyPT / CyclePT for k=2..{LARGEST_K}: {shown(row)}")


@MEASURES.of("K09", "K10")
def harary_degree_at_10(claim_id: str, found: Results, effort: Effort) -> Measured:
    those = workloads(effort, UNIF, topics={"K09": 100, "K10": 1000}[claim_id])
    return Measured(mean(found, those, "avg_degree", "harary-pt", k=10))


@MEASURES.of("K11")
def harary_degree_at_12(found: Results, effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, lambda popularity: mean(found, workloads(effort, popularity, size=100), "avg_degree", "harary-pt", k=12)
    )


@MEASURES.of("K12")
def cycle_degree_at_100(found: Results, effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, lambda popularity: mean(found, workloads(effort, popularity, size=100), "avg_degree", "cycle-pt")
    )


@MEASURES.of("K13", "K14")
def diameter_ratio_under_unif(claim_id: str, found: Results, effort: Effort) -> Measured:
    measure = {"K13": "max_diameter", "K14": "mean_diameter"}[claim_id]
    row = [ratio(found, measure, "gm2", "gm")(workloads(effort, UNIF, nodes=nodes)) for nodes in effort.node_counts]
    first, *_, last = effort.node_counts
    return Measured(fmean(row), f"|V|={first}..{last}: {shown(row)}")


@MEASURES.of("K15", "K16", "K19", "K20")
def diameter_gap(claim_id: str, found: Results, effort: Effort) -> Measured:
    measure = "mean_diameter" if claim_id == "K16" else "max_diameter"
    popularity = {"K15": UNIF, "K16": UNIF, "K19": effort.expo, "K20": ZIPF}[claim_id]
    those = workloads(effort, popularity, nodes=1000)
    gm, gm2 = mean(found, those, measure, "gm"), mean(found, those, measure, "gm2")
    return Measured(gm - gm2, f"GM {gm:.2f}, GM2 {gm2:.2f}")


@MEASURES.of("K17", "K18")
def diameter_ratio(claim_id: str, found: Results, effort: Effort) -> Measured:
    measure = {"K17": "max_diameter", "K18": "mean_diameter"}[claim_id]
    return mean_by_distribution(effort, over_nodes(effort, ratio(found, measure, "gm2", "gm")))


@MEASURES.of("K21")
def harary_links_to_cycle_links(found: Results, effort: Effort) -> Measured:
    those = [
        one
        for popularity in effort.distributions
        for group in (
            *(workloads(effort, popularity, nodes=nodes) for nodes in effort.node_counts),
            *(workloads(effort, popularity, topics=topics) for topics in effort.topic_counts),
            *(workloads(effort, popularity, size=size) for size in effort.sizes),
        )
        for one in group
    ]
    row = [value(found, one, "edges", "harary-pt", k=2) / value(found, one, "edges", "cycle-pt") for one in those]
    return Measured(max(row), f"highest of {len(row)} workloads; mean {fmean(row):.2f}")


@MEASURES.of("K22")
def harary_links_at_6(found: Results, effort: Effort) -> Measured:
    measure = ratio(found, "edges", "harary-pt", "cycle-pt", k=6)
    row = [over_topics(effort, measure)(popularity) for popularity in (ZIPF, effort.expo)]
    return Measured(fmean(row), f"Zipf/Expo {shown(row)}")


@MEASURES.of("K23")
def harary_degree_by_size(found: Results, effort: Effort) -> Measured:
    """For k = 10, the highest the paper plots. Near means within one step of 10 in s; what falls never rises again."""
    peaks = {}
    falls = True
    notes = []
    for popularity, name in ((ZIPF, "Zipf"), (UNIF, "Unif")):
        row = {
            size: mean(found, workloads(effort, popularity, size=size), "avg_degree", "harary-pt", k=10)
            for size in effort.sizes
        }
        peaks[name] = max(row, key=row.__getitem__)
        after = [row[size] for size in effort.sizes if size >= peaks[name]]
        falls &= after == sorted(after, reverse=True) and len(after) > 1
        notes.append(f"{name} {shown(row.values(), 1)}")
    holds = abs(peaks["Zipf"] - 50) <= 10 and abs(peaks["Unif"] - 20) < 10
    note = f"peaks at s={peaks['Zipf']} (Zipf) and s={peaks['Unif']} (Unif); k=10: {'; '.join(notes)}"
    return Measured(holds and falls, note)

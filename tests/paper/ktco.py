"""Chen, Vitenberg, Jacobsen, "Constructing fault-tolerant overlay networks": VIII and appendix D, claims K01-K23.

The paper does not say what its exponential distribution is. With p(t) ~ exp(-0.1 t) its numbers come out; with the one
SpiderCast describes (NYSE) several do not. Expo is the former here; `readings` has what the latter gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from .claims import Deviation, Measured, Measures
from .instances import Instance, average_degree, degrees, diameters, links, shown

UNIF, ZIPF, EXPO, NYSE = "uniform", "zipf:2", "expo:0.1", "expo"
EXPO_BY_TOPICS = "expo:20/T"  # exp(-20 t / |T|): the same as EXPO at |T| = 200
LARGEST_K = 14


@dataclass(frozen=True)
class Effort:
    """The means are over workloads of as many seeds; `expo` is the distribution called Expo."""

    node_counts: tuple[int, ...]
    topic_counts: tuple[int, ...]
    sizes: tuple[int, ...]
    seeds: int
    expo: str = EXPO

    @property
    def distributions(self) -> tuple[str, str, str]:
        return UNIF, ZIPF, self.expo


QUICK = Effort(node_counts=(100, 400, 700, 1000), topic_counts=(100, 400, 1000), sizes=(10, 20, 50, 100), seeds=1)
FULL = Effort(
    node_counts=tuple(range(100, 1001, 100)),
    topic_counts=tuple(range(100, 1001, 100)),
    sizes=tuple(range(10, 101, 10)),
    seeds=5,
)

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


def instances(effort: Effort, popularity: str, nodes: int = 800, topics: int = 200, size: int = 30) -> list[Instance]:
    if popularity == EXPO_BY_TOPICS:
        popularity = f"expo:{20 / topics:.6g}"
    return [Instance(nodes, topics, popularity, size, seed) for seed in range(effort.seeds)]


def mean_by_distribution(effort: Effort, measure: Callable[[str], float]) -> Measured:
    row = [measure(popularity) for popularity in effort.distributions]
    return Measured(fmean(row), f"Unif/Zipf/Expo {shown(row)}")


def over_nodes(effort: Effort, measure: Callable[[list[Instance]], float]) -> Callable[[str], float]:
    """The mean of a measure over |V|, |T| = 200, s = 30, for a distribution."""
    return lambda popularity: fmean(measure(instances(effort, popularity, nodes=nodes)) for nodes in effort.node_counts)


def over_topics(effort: Effort, measure: Callable[[list[Instance]], float]) -> Callable[[str], float]:
    """The mean of a measure over |T|, |V| = 800, s = 30, for a distribution."""
    return lambda popularity: fmean(
        measure(instances(effort, popularity, topics=topics)) for topics in effort.topic_counts
    )


def _gm2_to_gm(those: list[Instance]) -> float:
    return average_degree(those, "gm2") / average_degree(those, "gm")


@MEASURES.of("K01")
def degree_ratio_over_nodes(effort: Effort) -> Measured:
    return mean_by_distribution(effort, over_nodes(effort, _gm2_to_gm))


@MEASURES.of("K02")
def degree_ratio_over_topics(effort: Effort) -> Measured:
    return mean_by_distribution(effort, over_topics(effort, _gm2_to_gm))


@MEASURES.of("K03")
def cycle_degree_to_size(effort: Effort) -> Measured:
    return mean_by_distribution(effort, over_nodes(effort, lambda those: average_degree(those, "cycle-pt") / 30))


@MEASURES.of("K04")
def cycle_degree_to_gm2_degree(effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, over_nodes(effort, lambda those: average_degree(those, "cycle-pt") / average_degree(those, "gm2"))
    )


@MEASURES.of("K05")
def cycle_degree_above_gm2_degree(effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, over_topics(effort, lambda those: average_degree(those, "cycle-pt") - average_degree(those, "gm2"))
    )


@MEASURES.of("K06", "K07", "K08")
def largest_k_below_cycles(claim_id: str, effort: Effort) -> Measured:
    popularity = {"K06": effort.expo, "K07": ZIPF, "K08": UNIF}[claim_id]
    those = instances(effort, popularity, nodes=1000)
    row = [links(those, "harary-pt", k=k) / links(those, "cycle-pt") for k in range(2, LARGEST_K + 1)]
    largest = max((k for k, ratio in enumerate(row, start=2) if ratio < 1), default=0)
    return Measured(largest, f"links HararyPT / CyclePT for k=2..{LARGEST_K}: {shown(row)}")


@MEASURES.of("K09", "K10")
def harary_degree_at_10(claim_id: str, effort: Effort) -> Measured:
    those = instances(effort, UNIF, topics={"K09": 100, "K10": 1000}[claim_id])
    return Measured(average_degree(those, "harary-pt", k=10))


@MEASURES.of("K11")
def harary_degree_at_12(effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, lambda popularity: average_degree(instances(effort, popularity, size=100), "harary-pt", k=12)
    )


@MEASURES.of("K12")
def cycle_degree_at_100(effort: Effort) -> Measured:
    return mean_by_distribution(
        effort, lambda popularity: average_degree(instances(effort, popularity, size=100), "cycle-pt")
    )


def highest_diameter(those: list[Instance], algorithm: str) -> float:
    return fmean(diameters(one, algorithm).maximum for one in those)


def mean_diameter(those: list[Instance], algorithm: str) -> float:
    return fmean(diameters(one, algorithm).mean for one in those)


def _diameter_ratio(measure: Callable[[list[Instance], str], float]) -> Callable[[list[Instance]], float]:
    return lambda those: measure(those, "gm2") / measure(those, "gm")


@MEASURES.of("K13", "K14")
def diameter_ratio_under_unif(claim_id: str, effort: Effort) -> Measured:
    measure = {"K13": highest_diameter, "K14": mean_diameter}[claim_id]
    row = [_diameter_ratio(measure)(instances(effort, UNIF, nodes=nodes)) for nodes in effort.node_counts]
    first, *_, last = effort.node_counts
    return Measured(fmean(row), f"|V|={first}..{last}: {shown(row)}")


@MEASURES.of("K15", "K16", "K19", "K20")
def diameter_gap(claim_id: str, effort: Effort) -> Measured:
    measure = mean_diameter if claim_id == "K16" else highest_diameter
    popularity = {"K15": UNIF, "K16": UNIF, "K19": effort.expo, "K20": ZIPF}[claim_id]
    those = instances(effort, popularity, nodes=1000)
    gm, gm2 = measure(those, "gm"), measure(those, "gm2")
    return Measured(gm - gm2, f"GM {gm:.2f}, GM2 {gm2:.2f}")


@MEASURES.of("K17", "K18")
def diameter_ratio(claim_id: str, effort: Effort) -> Measured:
    measure = {"K17": highest_diameter, "K18": mean_diameter}[claim_id]
    return mean_by_distribution(effort, over_nodes(effort, _diameter_ratio(measure)))


@MEASURES.of("K21")
def harary_links_to_cycle_links(effort: Effort) -> Measured:
    those = [
        one
        for popularity in effort.distributions
        for group in (
            *(instances(effort, popularity, nodes=nodes) for nodes in effort.node_counts),
            *(instances(effort, popularity, topics=topics) for topics in effort.topic_counts),
            *(instances(effort, popularity, size=size) for size in effort.sizes),
        )
        for one in group
    ]
    row = [degrees(one, "harary-pt", k=2).links / degrees(one, "cycle-pt").links for one in those]
    return Measured(max(row), f"highest of {len(row)} workloads; mean {fmean(row):.2f}")


@MEASURES.of("K22")
def harary_links_at_6(effort: Effort) -> Measured:
    def ratio(those: list[Instance]) -> float:
        return links(those, "harary-pt", k=6) / links(those, "cycle-pt")

    row = [over_topics(effort, ratio)(popularity) for popularity in (ZIPF, effort.expo)]
    return Measured(fmean(row), f"Zipf/Expo {shown(row)}")


@MEASURES.of("K23")
def harary_degree_by_size(effort: Effort) -> Measured:
    """For k = 10, the highest the paper plots. Near means within one step of 10 in s; what falls never rises again."""
    peaks = {}
    falls = True
    notes = []
    for popularity, name in ((ZIPF, "Zipf"), (UNIF, "Unif")):
        row = {
            size: average_degree(instances(effort, popularity, size=size), "harary-pt", k=10) for size in effort.sizes
        }
        peaks[name] = max(row, key=row.__getitem__)
        after = [row[size] for size in effort.sizes if size >= peaks[name]]
        falls &= after == sorted(after, reverse=True) and len(after) > 1
        notes.append(f"{name} {shown(row.values(), 1)}")
    holds = abs(peaks["Zipf"] - 50) <= 10 and abs(peaks["Unif"] - 20) < 10
    note = f"peaks at s={peaks['Zipf']} (Zipf) and s={peaks['Unif']} (Unif); k=10: {'; '.join(notes)}"
    return Measured(holds and falls, note)

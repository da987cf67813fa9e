"""Chen, Jacobsen, Vitenberg, "Reinforce your overlay with shadows": section VI, claims S01-S28.

`primal-dual` is Alg. 12 (`pd-weight`). `greedy` is the rule that covers most topics first (`greedy-cover`): Alg. 11 as
printed spreads its choices evenly and cannot give the skew of Fig. 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import numpy.typing as npt

from omen.report.experiments.results import Results
from omen.report.ledger import Deviation, Measured, Measures
from omen.sweep.cells import Cell, CellResult, Value, WorkloadSpec, pairs

NODES, TOPICS, SIZES = 2000, 200, "powerlaw:10:90"
PRIMAL_DUAL, GREEDY = "pd-weight", "greedy-cover"
RULES = ("pd-weight", "pd-cover", "greedy-weight", "greedy-cover")
UNIF, ZIPF, EXPO = "uniform", "zipf:2", "expo:0.1"
COVERAGES = (1, 2, 3, 4)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """Rounds of churn, workloads of these seeds, and how many rounds apart Low-ODA is computed anew.

    `variants`: those that no claim is about as well, for a table of them all.
    """

    rounds: int
    seeds: tuple[int, ...]
    rebuilt_every: int
    variants: bool = False

    def alone(self) -> list[Effort]:
        """The same with each seed by itself."""
        return [replace(self, seeds=(seed,)) for seed in self.seeds]


QUICK = Effort(1000, (0,), 100)
FULL = Effort(1000, (0, 1, 2), 10, variants=True)

MEASURES = Measures()

OF_S = (
    "Lower than the paper's. The reading we had settled on spares the maximum degree of S in a repair; sparing that"
    " of the whole overlay (table below) brings it within the tolerance, at a slightly lower average degree."
)
UNSTABLE = (
    "From scratch, one node more or less changes over two fifths of our links in the mean. Why the paper sees a tenth"
    " is not known. A guess, not tested: our ties go to the lowest pair, so that an early change moves all that follow."
    " Shadow's own ratios (S24, S25) reproduce."
)

DEVIATIONS = {
    "S01": Deviation(
        0.015,
        0.020,
        "The paper averages across all nodes, and so do we. Averaged over numbers of subscriptions, the axis of its"
        " Fig. 3, ours is 0.024, within the tolerance; that reading was tried after the result was seen. Across nodes"
        " S01 and S20 exclude each other, since S holds the backups.",
    ),
    "S02": Deviation(
        0.0035,
        0.0052,
        "Neither of our two greedy rules takes as many: greedy-weight (Alg. 11) 0.0057. Why is not known.",
    ),
    "S03": Deviation(
        0.80,
        0.90,
        "Neither greedy rule gives it. greedy-cover, taken here, is skewed twice as much; Alg. 11 as printed, with"
        " weights, leaves no such node at all.",
    ),
    "S04": Deviation(28, 33, "Ours is better balanced, 31 to 39 where the paper has 21 to 59. Why is not known."),
    "S05": Deviation(36, 43, "Ours is better balanced, 31 to 39 where the paper has 21 to 59. Why is not known."),
    "S06": Deviation(25, 60, "Far above primal-dual's (S07), as claimed, but half as far. Why is not known."),
    "S08": Deviation(
        19,
        27,
        "Lower than the paper's, whichever maximum degree is spared (21.0 with the whole overlay's). Not known why.",
    ),
    "S09": Deviation(13, 20, OF_S),
    "S10": Deviation(14, 20, OF_S),
    "S11": Deviation(13, 20, OF_S),
    "S13": Deviation(
        0.7,
        1.1,
        "A sixth above the paper's. The gap grows with the rounds: at the end d is 7.96 for Shadow, 7.02 for Naive and"
        " 6.37 for Low-ODA. Why is not known.",
    ),
    "S15": Deviation(15, 20, f"Naive's reproduces. {OF_S}"),
    "S16": Deviation(
        0.0,
        0.01,
        "The ratio is to a faster Low-ODA: the paper's takes 18.76 s, over a hundred times as long as ours, its join"
        " 2.69 ms, some sixteen times as long as ours.",
    ),
    "S18": Deviation(
        0.0,
        0.002,
        "As S16; the paper's join of Naive takes 7.93 ms. Measured on a busy machine, and near enough that a quiet one"
        " may decide otherwise.",
    ),
    "S22": Deviation(0.2, 0.5, UNSTABLE),
    "S23": Deviation(0.4, 0.75, UNSTABLE),
    "S26": Deviation(2000, 4000, UNSTABLE),
}


VARIANTS: dict[str, dict[str, Value]] = {
    "Shadow: pd-weight, exact, degree of S": {},
    "backups pd-cover": {"backups": "pd-cover"},
    "backups greedy-weight": {"backups": "greedy-weight"},
    "backups greedy-cover": {"backups": "greedy-cover"},
    "components halo": {"components": "halo"},
    "components halo-near": {"components": "halo-near"},
    "components literal": {"components": "literal"},
    "degree of the whole overlay": {"degree_of": "overlay"},
    "lambda 0": {"lambda": 0},
    "lambda 1": {"lambda": 1},
    "lambda 2": {"lambda": 2},
    "lambda 4": {"lambda": 4},
    "lambda 1, degree of the whole overlay": {"lambda": 1, "degree_of": "overlay"},
    "lambda 2, degree of the whole overlay": {"lambda": 2, "degree_of": "overlay"},
    "lambda 4, degree of the whole overlay": {"lambda": 4, "degree_of": "overlay"},
    "Naive": {"system": "naive"},
    "Zipf 2": {"popularity": ZIPF},
    "Expo 0.1": {"popularity": EXPO},
}
CLAIMED: tuple[dict[str, Value], ...] = (
    {},
    {"backups": GREEDY},
    {"lambda": 1},
    {"lambda": 2},
    {"lambda": 4},
    {"system": "naive"},
)


def workload(seed: int, popularity: str = UNIF) -> WorkloadSpec:
    return WorkloadSpec(NODES, TOPICS, popularity, SIZES, seed)


def replay_cell(effort: Effort, seed: int, **variant: Value) -> Cell:
    """Churn, and how systems repair it. The case of the paper is judged after every round, variants at the end."""
    system = str(variant.pop("system", "shadow")) if variant else "shadow"
    popularity = str(variant.pop("popularity", UNIF))
    options: dict[str, Value] = {"seed": seed, **variant} if system == "shadow" else {}
    plain = system == "shadow" and not variant and popularity == UNIF
    settings: dict[str, Value] = {"rounds": effort.rounds, "verify": "every" if plain else "end"}
    return Cell("replay", workload(seed, popularity), system, pairs(options), pairs(settings))


def rebuild_cell(effort: Effort, seed: int) -> Cell:
    settings: dict[str, Value] = {"rounds": effort.rounds, "every": effort.rebuilt_every}
    return Cell("rebuild", workload(seed), "low-oda", settings=pairs(settings))


def backups_cell(seed: int, rule: str, popularity: str = UNIF) -> Cell:
    options: dict[str, Value] = {"backups": rule, "lambda": 3, "seed": seed}
    return Cell("backups", workload(seed, popularity), "shadow", pairs(options))


def cells(effort: Effort) -> list[Cell]:
    """All that the claims and figures are made from."""
    variants = (*CLAIMED, *VARIANTS.values()) if effort.variants else CLAIMED
    wanted = [
        *(replay_cell(effort, seed, **dict(variant)) for seed in effort.seeds for variant in variants),
        *(rebuild_cell(effort, seed) for seed in effort.seeds),
        *(backups_cell(seed, rule) for seed in effort.seeds for rule in RULES),
    ]
    return list(dict.fromkeys(wanted))


def sampled(effort: Effort) -> str:
    every = effort.rebuilt_every
    return f"Low-ODA built anew around one in {every} of {effort.rounds} rounds (S12, S13, S16-S19, S22, S23, S26)"


@dataclass(frozen=True)
class History:
    """What a case came to, a value a round."""

    joins: npt.NDArray[np.bool_]
    nodes: Floats
    links_before: Floats
    changed: Floats
    shadow: Floats
    maximum: Floats
    average: Floats
    repair_s: Floats

    @classmethod
    def of(cls, result: CellResult) -> History:
        columns = {name: np.array(values) for name, values in result.series.items()}
        joins = columns["join"].astype(bool)
        nothing = np.zeros(joins.size)
        return cls(
            joins,
            columns.get("nodes", nothing),
            columns["links_before"],
            columns["changed"],
            columns.get("shadow_size", nothing),
            columns["max_degree"],
            columns["avg_degree"],
            columns["repair_s"],
        )

    @property
    def repair_ratio(self) -> Floats:
        return self.changed / self.links_before

    @property
    def shadow_share(self) -> Floats:
        return self.shadow / self.nodes


def histories(found: Results, effort: Effort, **variant: Value) -> list[History]:
    return [History.of(found.of(replay_cell(effort, seed, **dict(variant)))) for seed in effort.seeds]


def rebuilt(found: Results, effort: Effort) -> list[tuple[npt.NDArray[np.int64], History]]:
    """(rounds looked at, counted from 0; Low-ODA from scratch there) for each seed."""
    results = [found.of(rebuild_cell(effort, seed)) for seed in effort.seeds]
    return [(np.array(one.series["round"], dtype=np.int64) - 1, History.of(one)) for one in results]


def backups(found: Results, effort: Effort, rule: str, measure: str) -> float:
    return fmean(found.of(backups_cell(seed, rule)).values[measure] for seed in effort.seeds)


@MEASURES.of("S01", "S02")
def backup_set_size(claim_id: str, found: Results, effort: Effort) -> Measured:
    rule = PRIMAL_DUAL if claim_id == "S01" else GREEDY
    by_subscriptions = backups(found, effort, rule, "size_mean_by_subscriptions") / NODES
    return Measured(
        backups(found, effort, rule, "size_mean") / NODES,
        f"averaged over numbers of subscriptions, as Figs. 2 and 3 have them on their axis, {by_subscriptions:.4f}",
    )


@MEASURES.of("S03")
def share_with_few_primaries(found: Results, effort: Effort) -> Measured:
    other = backups(found, effort, "greedy-weight", "share_below_5")
    return Measured(backups(found, effort, GREEDY, "share_below_5"), f"{GREEDY}; greedy-weight (Alg. 11) {other:.4f}")


@MEASURES.of("S04", "S05")
def primary_degree(claim_id: str, found: Results, effort: Effort) -> Measured:
    return Measured(backups(found, effort, PRIMAL_DUAL, "primaries_min" if claim_id == "S04" else "primaries_max"))


def last_maximum(found: Results, effort: Effort, **variant: Value) -> float:
    return fmean(float(one.maximum[-1]) for one in histories(found, effort, **variant))


@MEASURES.of("S06")
def maximum_degree_with_greedy_backups(found: Results, effort: Effort) -> Measured:
    return Measured(last_maximum(found, effort, backups=GREEDY), GREEDY)


@MEASURES.of("S07")
def primal_dual_is_below_greedy(found: Results, effort: Effort) -> Measured:
    primal_dual, greedy = last_maximum(found, effort), last_maximum(found, effort, backups=GREEDY)
    return Measured(primal_dual < greedy, f"{PRIMAL_DUAL} {primal_dual:.1f}, {GREEDY} {greedy:.1f}")


@MEASURES.of("S08", "S09", "S10", "S11")
def maximum_degree_by_coverage(claim_id: str, found: Results, effort: Effort) -> Measured:
    covers = {"S08": 1, "S09": 2, "S10": 3, "S11": 4}[claim_id]
    return Measured(last_maximum(found, effort, **by_coverage(covers)))


def by_coverage(covers: int) -> dict[str, Value]:
    return {} if covers == 3 else {"lambda": covers}


@MEASURES.of("S12", "S13")
def degree_above_rebuilt(claim_id: str, found: Results, effort: Effort) -> Measured:
    name = "maximum" if claim_id == "S12" else "average"
    pairs_ = list(zip(histories(found, effort), rebuilt(found, effort), strict=True))
    shadows = [getattr(one, name)[rounds] for one, (rounds, _) in pairs_]
    fresh = [getattr(new, name) for _, (_, new) in pairs_]
    gap = fmean(float((ours - new).mean()) for ours, new in zip(shadows, fresh, strict=True))
    ends = f"{fmean(float(one[-1]) for one in shadows):.2f} and {fmean(float(one[-1]) for one in fresh):.2f}"
    return Measured(gap, f"at the end {ends}")


@MEASURES.of("S14", "S15")
def maximum_degree_of_shadow_and_naive(claim_id: str, found: Results, effort: Effort) -> Measured:
    place = 0 if claim_id == "S14" else -1
    variants: tuple[dict[str, Value], ...] = ({}, {"system": "naive"})
    shadow, naive = (
        fmean(float(one.maximum[place]) for one in histories(found, effort, **variant)) for variant in variants
    )
    return Measured(shadow, f"naive {naive:.1f}")


@MEASURES.of("S16", "S17", "S18", "S19")
def time_to_rebuilding(claim_id: str, found: Results, effort: Effort) -> Measured:
    """Processor time, taken while other cells ran on the other cores."""
    variant: dict[str, Value] = {} if claim_id in ("S16", "S17") else {"system": "naive"}
    repairs = [_chosen(one, one.repair_s, claim_id in ("S16", "S18")) for one in histories(found, effort, **variant)]
    fresh = [new.repair_s for _, new in rebuilt(found, effort)]
    ours, whole = float(np.concatenate(repairs).mean()), float(np.concatenate(fresh).mean())
    return Measured(ours / whole, f"{1e6 * ours:.0f} µs to {1e3 * whole:.0f} ms")


@MEASURES.of("S20", "S21")
def shadow_set_size(claim_id: str, found: Results, effort: Effort) -> Measured:
    those = histories(found, effort)
    pick = np.mean if claim_id == "S20" else np.max
    joins = fmean(float(one.shadow_share[one.joins].mean()) for one in those)
    leaves = fmean(float(one.shadow_share[~one.joins].mean()) for one in those)
    shares = np.concatenate([one.shadow_share for one in those])
    return Measured(float(pick(shares)), f"mean of joins {joins:.4f}, of leaves {leaves:.4f}")


@MEASURES.of("S22", "S23")
def repair_ratio_of_rebuilding(claim_id: str, found: Results, effort: Effort) -> Measured:
    values = np.concatenate([_chosen(new, new.repair_ratio, claim_id == "S22") for _, new in rebuilt(found, effort)])
    return Measured(float(values.mean()), f"{values.size} rounds")


@MEASURES.of("S24", "S25")
def repair_ratio_of_shadow(claim_id: str, found: Results, effort: Effort) -> Measured:
    values = [_chosen(one, one.repair_ratio, claim_id == "S24") for one in histories(found, effort)]
    return Measured(float(np.concatenate(values).mean()))


@MEASURES.of("S26")
def changes_of_rebuilding(found: Results, effort: Effort) -> Measured:
    values = np.concatenate([new.changed for _, new in rebuilt(found, effort)])
    return Measured(float(values.mean()), f"{values.size} rounds")


@MEASURES.of("S27", "S28")
def changes_of_shadow(claim_id: str, found: Results, effort: Effort) -> Measured:
    values = [_chosen(one, one.changed, claim_id == "S27") for one in histories(found, effort)]
    note = "" if claim_id == "S27" else "the leaver's own links counted"
    return Measured(float(np.concatenate(values).mean()), note)


def _chosen(one: History, column: Floats, joins: bool) -> Floats:
    return column[one.joins if joins else ~one.joins]

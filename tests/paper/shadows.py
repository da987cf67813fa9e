"""Chen, Jacobsen, Vitenberg, "Reinforce your overlay with shadows": section VI, claims S01-S28.

`primal-dual` is Alg. 12 (`pd-weight`). `greedy` is the rule that covers most topics first (`greedy-cover`): Alg. 11 as
printed spreads its choices evenly and cannot give the skew of Fig. 2. Ratios of times are taken from bench/results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from omen.churn import Join, Trace
from omen.interests import Interests
from omen.mend import start_maintainer
from omen.quality import check_overlay
from omen.runs import design_overlay
from omen.workloads import Distribution, Popularity, Sizes, generate_interests, random_rounds

from .claims import Deviation, Measured, Measures

NODES, TOPICS, SIZES = 2000, 200, "powerlaw:10:90"
PRIMAL_DUAL, GREEDY = "pd-weight", "greedy-cover"
UNIF, ZIPF, EXPO = "uniform", "zipf:2", "expo:0.1"
BENCH = Path(__file__).parents[2] / "bench" / "results" / "mend.json"


@dataclass(frozen=True)
class Effort:
    """Rounds of churn, workloads of as many seeds, and how many rounds apart Low-ODA is computed anew."""

    rounds: int
    seeds: int
    rebuilt_every: int


QUICK = Effort(rounds=1000, seeds=1, rebuilt_every=100)
FULL = Effort(rounds=1000, seeds=3, rebuilt_every=10)

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


@dataclass(frozen=True)
class Case:
    """A workload, its churn, and who mends it how. Every overlay on the way is judged."""

    seed: int
    rounds: int
    system: str = "shadow"
    backups: str = PRIMAL_DUAL
    covers: int = 3
    components: str = "exact"
    degree_of: str = "s"
    popularity: str = UNIF
    rebalance: int = 0

    @property
    def options(self) -> dict[str, Any]:
        if self.system != "shadow":
            return {"rebalance": self.rebalance}
        return {
            "backups": self.backups,
            "lambda_": self.covers,
            "components": self.components,
            "degree_of": self.degree_of,
            "seed": self.seed,
            "rebalance": self.rebalance,
        }


@dataclass(frozen=True)
class History:
    """What a case came to, a value a round."""

    joins: np.ndarray
    nodes: np.ndarray
    links_before: np.ndarray
    changed: np.ndarray
    shadow: np.ndarray
    maximum: np.ndarray
    average: np.ndarray


@lru_cache(maxsize=4)
def workload(seed: int, popularity: str = UNIF) -> Interests:
    return generate_interests(NODES, TOPICS, popularity, SIZES, seed=seed)


@lru_cache(maxsize=4)
def churn(seed: int, rounds: int, popularity: str = UNIF) -> Trace:
    distribution = Distribution(TOPICS, Popularity.parse(popularity), Sizes.parse(SIZES))
    return random_rounds(workload(seed, popularity), rounds, 0.5, seed + 1000, distribution)


@cache
def history(case: Case, judged_every: int = 1) -> History:
    """Mends through all rounds. A number about an overlay that is not topic-connected would mean nothing."""
    maintainer = start_maintainer(case.system, workload(case.seed, case.popularity), **case.options)
    rows = []
    for number, event in enumerate(churn(case.seed, case.rounds, case.popularity), start=1):
        links = maintainer.link_count
        change = maintainer.apply([event])
        rows.append(
            (
                isinstance(event, Join),
                maintainer.node_count,
                links,
                change.links_changed,
                len(change.shadow),
                maintainer.max_degree,
                maintainer.average_degree,
            )
        )
        if number % judged_every == 0:
            assert check_overlay(maintainer.interests(), maintainer.overlay()).holds
    return History(*(np.array(column) for column in zip(*rows, strict=True)))


def cases(effort: Effort, **variant: Any) -> list[Case]:
    return [Case(seed, effort.rounds, **variant) for seed in range(effort.seeds)]


def histories(effort: Effort, **variant: Any) -> list[History]:
    """The case of the paper is judged after every round, variants after every fiftieth."""
    return [history(case, 50 if variant else 1) for case in cases(effort, **variant)]


@dataclass(frozen=True)
class Rebuilt:
    """Low-ODA computed anew around some rounds: degrees after the round, and the links that differ from before it."""

    rounds: np.ndarray
    joins: np.ndarray
    maximum: np.ndarray
    average: np.ndarray
    changed: np.ndarray
    links_before: np.ndarray


@cache
def rebuilt(seed: int, rounds: int, every: int) -> Rebuilt:
    """Before and after every so many-th round. Interests are all that matters here, so any maintainer will do."""
    maintainer = start_maintainer("naive", workload(seed))
    rows = []
    for number, event in enumerate(churn(seed, rounds), start=1):
        looks = number % every == every // 2
        before = design_overlay(maintainer.interests(), "low-oda") if looks else None
        maintainer.apply([event])
        if before is None:
            continue
        after = design_overlay(maintainer.interests(), "low-oda")
        degrees = after.degrees
        changed = len(set(before.links()) ^ set(after.links()))
        row = (number, isinstance(event, Join), degrees.max(), degrees.mean(), changed, before.link_count)
        rows.append(row)
    return Rebuilt(*(np.array(column) for column in zip(*rows, strict=True)))


def rebuilts(effort: Effort) -> list[Rebuilt]:
    return [rebuilt(seed, effort.rounds, effort.rebuilt_every) for seed in range(effort.seeds)]


@dataclass(frozen=True)
class Backups:
    """Backup sets before any churn: their mean size, and how many primaries each node has."""

    size: float
    size_by_subscriptions: float  # each number of subscriptions counted once, as the axis of Figs. 2 and 3 has them
    primaries: np.ndarray


@cache
def initial_backups(seed: int, rule: str, popularity: str = UNIF) -> Backups:
    interests = workload(seed, popularity)
    snapshot = start_maintainer("shadow", interests, **Case(seed, 0, backups=rule).options).snapshot()
    sizes = np.bincount(snapshot.primary, minlength=NODES)
    subscriptions = np.diff(interests.node_offsets)
    by_subscriptions = fmean(float(sizes[subscriptions == number].mean()) for number in np.unique(subscriptions))
    return Backups(float(sizes.mean()), by_subscriptions, np.bincount(snapshot.backup, minlength=NODES))


def backups(effort: Effort, rule: str) -> list[Backups]:
    return [initial_backups(seed, rule) for seed in range(effort.seeds)]


def share_of_few(those: Sequence[Backups]) -> float:
    return fmean(float((one.primaries < 5).mean()) for one in those)


@MEASURES.of("S01", "S02")
def backup_set_size(claim_id: str, effort: Effort) -> Measured:
    those = backups(effort, PRIMAL_DUAL if claim_id == "S01" else GREEDY)
    by_subscriptions = fmean(one.size_by_subscriptions for one in those) / NODES
    return Measured(
        fmean(one.size for one in those) / NODES,
        f"averaged over numbers of subscriptions, as Figs. 2 and 3 have them on their axis, {by_subscriptions:.4f}",
    )


@MEASURES.of("S03")
def share_with_few_primaries(effort: Effort) -> Measured:
    return Measured(
        share_of_few(backups(effort, GREEDY)),
        f"{GREEDY}; greedy-weight (Alg. 11) {share_of_few(backups(effort, 'greedy-weight')):.4f}",
    )


@MEASURES.of("S04", "S05")
def primary_degree(claim_id: str, effort: Effort) -> Measured:
    pick = np.min if claim_id == "S04" else np.max
    return Measured(fmean(float(pick(one.primaries)) for one in backups(effort, PRIMAL_DUAL)))


def last_maximum(effort: Effort, **variant: Any) -> float:
    return fmean(float(one.maximum[-1]) for one in histories(effort, **variant))


@MEASURES.of("S06")
def maximum_degree_with_greedy_backups(effort: Effort) -> Measured:
    return Measured(last_maximum(effort, backups=GREEDY), GREEDY)


@MEASURES.of("S07")
def primal_dual_is_below_greedy(effort: Effort) -> Measured:
    primal_dual, greedy = last_maximum(effort), last_maximum(effort, backups=GREEDY)
    return Measured(primal_dual < greedy, f"{PRIMAL_DUAL} {primal_dual:.1f}, {GREEDY} {greedy:.1f}")


@MEASURES.of("S08", "S09", "S10", "S11")
def maximum_degree_by_coverage(claim_id: str, effort: Effort) -> Measured:
    covers = {"S08": 1, "S09": 2, "S10": 3, "S11": 4}[claim_id]
    return Measured(last_maximum(effort, **({} if covers == 3 else {"covers": covers})))


@MEASURES.of("S12", "S13")
def degree_above_rebuilt(claim_id: str, effort: Effort) -> Measured:
    name = "maximum" if claim_id == "S12" else "average"
    shadows = [getattr(one, name)[new.rounds - 1] for one, new in zip(histories(effort), rebuilts(effort), strict=True)]
    fresh = [getattr(new, name) for new in rebuilts(effort)]
    gap = fmean(float((ours - new).mean()) for ours, new in zip(shadows, fresh, strict=True))
    ends = f"{fmean(float(one[-1]) for one in shadows):.2f} and {fmean(float(one[-1]) for one in fresh):.2f}"
    return Measured(gap, f"at the end {ends}")


@MEASURES.of("S14", "S15")
def maximum_degree_of_shadow_and_naive(claim_id: str, effort: Effort) -> Measured:
    place = 0 if claim_id == "S14" else -1
    shadow, naive = (
        fmean(float(one.maximum[place]) for one in histories(effort, **variant))
        for variant in ({}, {"system": "naive"})
    )
    return Measured(shadow, f"naive {naive:.1f}")


@MEASURES.of("S16", "S17", "S18", "S19")
def time_to_rebuilding(claim_id: str, effort: Effort) -> Measured:
    """Measured by `python -m bench mend`, never in a test."""
    found = json.loads(BENCH.read_text(encoding="utf-8"))["ratios"][claim_id]
    return Measured(found["ratio"], f"bench: {found['note']}")


@MEASURES.of("S20", "S21")
def shadow_set_size(claim_id: str, effort: Effort) -> Measured:
    shares = [one.shadow / one.nodes for one in histories(effort)]
    pick = np.mean if claim_id == "S20" else np.max
    joins = fmean(float((one.shadow / one.nodes)[one.joins].mean()) for one in histories(effort))
    leaves = fmean(float((one.shadow / one.nodes)[~one.joins].mean()) for one in histories(effort))
    return Measured(float(pick(np.concatenate(shares))), f"mean of joins {joins:.4f}, of leaves {leaves:.4f}")


@MEASURES.of("S22", "S23")
def repair_ratio_of_rebuilding(claim_id: str, effort: Effort) -> Measured:
    ratios = [
        (new.changed / new.links_before)[new.joins if claim_id == "S22" else ~new.joins] for new in rebuilts(effort)
    ]
    values = np.concatenate(ratios)
    return Measured(float(values.mean()), f"{values.size} rounds")


@MEASURES.of("S24", "S25")
def repair_ratio_of_shadow(claim_id: str, effort: Effort) -> Measured:
    values = [
        (one.changed / one.links_before)[one.joins if claim_id == "S24" else ~one.joins] for one in histories(effort)
    ]
    return Measured(float(np.concatenate(values).mean()))


@MEASURES.of("S26")
def changes_of_rebuilding(effort: Effort) -> Measured:
    values = np.concatenate([new.changed for new in rebuilts(effort)])
    return Measured(float(values.mean()), f"{values.size} rounds")


@MEASURES.of("S27", "S28")
def changes_of_shadow(claim_id: str, effort: Effort) -> Measured:
    chosen = [one.changed[one.joins if claim_id == "S27" else ~one.joins] for one in histories(effort)]
    note = "" if claim_id == "S27" else "the leaver's own links counted"
    return Measured(float(np.concatenate(chosen).mean()), note)


VARIANTS: dict[str, dict[str, Any]] = {
    "Shadow: pd-weight, exact, degree of S": {},
    "backups pd-cover": {"backups": "pd-cover"},
    "backups greedy-weight": {"backups": "greedy-weight"},
    "backups greedy-cover": {"backups": "greedy-cover"},
    "components halo": {"components": "halo"},
    "components halo-near": {"components": "halo-near"},
    "components literal": {"components": "literal"},
    "degree of the whole overlay": {"degree_of": "overlay"},
    "lambda 0": {"covers": 0},
    "lambda 1": {"covers": 1},
    "lambda 2": {"covers": 2},
    "lambda 4": {"covers": 4},
    "lambda 1, degree of the whole overlay": {"covers": 1, "degree_of": "overlay"},
    "lambda 2, degree of the whole overlay": {"covers": 2, "degree_of": "overlay"},
    "lambda 4, degree of the whole overlay": {"covers": 4, "degree_of": "overlay"},
    "Naive": {"system": "naive"},
    "Zipf 2": {"popularity": ZIPF},
    "Expo 0.1": {"popularity": EXPO},
}


def tables(effort: Effort) -> Iterator[dict[str, Any]]:
    """What variants of the algorithm come to after the same churn, and what the four rules make of backup sets."""
    yield {
        "title": f"The same churn by variant: means over {effort.seeds} workloads, after {effort.rounds} rounds",
        "header": ["variant", "D", "d", "mean |S| / |V'|", "links changed by a join", "by a leave"],
        "rows": [[name, *_variant_row(effort, variant)] for name, variant in VARIANTS.items()],
    }
    rules = ("pd-weight", "pd-cover", "greedy-weight", "greedy-cover")
    yield {
        "title": "Backup sets before any churn, lambda 3",
        "header": ["rule", "mean |B| / |V|", "primaries of a node, lowest", "highest", "nodes with fewer than 5"],
        "rows": [[rule, *_rule_row(backups(effort, rule))] for rule in rules],
    }


def _variant_row(effort: Effort, variant: dict[str, Any]) -> list[str]:
    those = histories(effort, **variant)
    shadow = fmean(float((one.shadow / one.nodes).mean()) for one in those)
    return [
        f"{fmean(float(one.maximum[-1]) for one in those):.1f}",
        f"{fmean(float(one.average[-1]) for one in those):.2f}",
        f"{shadow:.4f}" if shadow else "",
        f"{fmean(float(one.changed[one.joins].mean()) for one in those):.2f}",
        f"{fmean(float(one.changed[~one.joins].mean()) for one in those):.2f}",
    ]


def _rule_row(those: Sequence[Backups]) -> list[str]:
    return [
        f"{fmean(one.size for one in those) / NODES:.4f}",
        f"{fmean(float(one.primaries.min()) for one in those):.0f}",
        f"{fmean(float(one.primaries.max()) for one in those):.0f}",
        f"{share_of_few(those):.3f}",
    ]

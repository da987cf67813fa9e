"""What other readings of a paper would give, where ours does not reproduce it: docs/claims-readings.md.

    .venv/bin/python -m tests.paper.readings

Slow and plain on purpose; nothing in the package uses this.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import networkx
import numpy as np

from omen.interests import Interests
from omen.overlay import Overlay
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.quality import degree_summary, diameter_summary, topic_diameters
from omen.report.experiments import spidercast
from omen.report.experiments.results import InProcess, mean
from omen.sweep.cells import WorkloadSpec
from omen.sweep.kinds import interests_of
from omen.sweep.simulated import measure_lives
from omen.systems import design_overlay
from omen.systems.spidercast import run_to_quiescence

from . import ktco, low_oda

FOUND = InProcess()
PAGE = Path(__file__).parents[2] / "docs" / "claims-readings.md"
INTRODUCTION = """\
# Other readings

What the papers leave open, read otherwise. No verdict of [the ledger](claims.md) uses any of it. Made, in minutes, by

    .venv/bin/python -m tests.paper.readings

| claims | other reading | gives |
| --- | --- | --- |
"""


def average_degree(those: Sequence[WorkloadSpec], algorithm: str) -> float:
    return mean(FOUND, those, "avg_degree", algorithm)


def maximum_degree(those: Sequence[WorkloadSpec], algorithm: str) -> float:
    return mean(FOUND, those, "max_degree", algorithm)


@dataclass(frozen=True)
class Reading:
    claims: str
    reading: str
    result: str


def all_readings() -> Iterator[Reading]:
    yield _subscriptions_by_probability()
    yield _ratio_of_means()
    yield from _other_expo()
    yield from _random_ties()
    yield _random_ties_zipf_diameter()
    yield _parting_as_printed()
    yield _parting_as_printed_under_churn()


def _subscriptions_by_probability() -> Reading:
    """Section VI-D read as every node wanting every topic with probability s / |T|: sizes then differ between nodes."""
    ratios: dict[str, list[float]] = {"CD-ODA/GM": [], "II/GM": [], "II/CD-ODA": [], "II/I": []}
    for size in low_oda.FULL.sizes:
        gm, cd, first, second = (
            fmean(design_overlay(_bernoulli(size, seed), name).link_count for seed in range(100))
            for name in ("gm", "cd-oda", "cd-oda-i", "cd-oda-ii")
        )
        for name, ratio in zip(ratios, (cd / gm, second / gm, second / cd, second / first), strict=True):
            ratios[name].append(ratio)
    shown = (
        f"highest CD-ODA / GM {max(ratios['CD-ODA/GM']):.3f}, highest CD-ODA-II / GM {max(ratios['II/GM']):.3f}, mean"
        f" CD-ODA-II / CD-ODA {fmean(ratios['II/CD-ODA']):.3f}, mean CD-ODA-II / CD-ODA-I {fmean(ratios['II/I']):.3f}"
    )
    return Reading("L05-L08", "each node wants each topic with probability s/100, so sizes differ", shown)


def _bernoulli(size: int, seed: int) -> Interests:
    wanted = np.random.default_rng((size, seed)).random((100, 100)) < size / 100
    nodes, topics = (codes.astype(np.int32) for codes in np.nonzero(wanted))
    return Interests.from_codes(np.arange(100), np.arange(100), nodes, topics)


def _ratio_of_means() -> Reading:
    effort = ktco.FULL

    def ratio(**varied: tuple[int, ...]) -> float:
        ((name, values),) = varied.items()
        those = [
            one
            for popularity in effort.distributions
            for value in values
            for one in ktco.workloads(effort, popularity, **{name: value})
        ]
        return average_degree(those, "gm2") / average_degree(those, "gm")

    over_nodes, over_topics = ratio(nodes=effort.node_counts), ratio(topics=effort.topic_counts)
    shown = f"K01 {over_nodes:.3f}, K02 {over_topics:.3f}"
    return Reading("K01, K02", "the mean degree of GM2 over all workloads to that of GM, not the mean of ratios", shown)


def _other_expo() -> Iterator[Reading]:
    for popularity, said, ids in (
        (
            ktco.NYSE,
            "Expo as SpiderCast's NYSE: a tenth of the topics hold 0.55 of the probability",
            "K01 K02 K04 K05 K06 K11 K17 K18 K19 K22",
        ),
        (
            ktco.EXPO_BY_TOPICS,
            "Expo with a rate that falls with |T|: exp(-20 t/|T|), the same at |T|=200",
            "K02 K05 K22",
        ),
    ):
        effort = replace(ktco.FULL, expo=popularity)
        shown = ", ".join(f"{one} {ktco.MEASURES[one](effort).shown}" for one in ids.split())
        yield Reading(ids.replace(" ", ", "), said, shown)


def _random_ties() -> Iterator[Reading]:
    effort = replace(ktco.FULL, seeds=(0, 1, 2))
    lowest, drawn = [], []
    for popularity in effort.distributions:
        those = ktco.workloads(effort, popularity, nodes=200)
        lowest.append(average_degree(those, "gm2") / average_degree(those, "gm"))
        links = [[_greedy_random_ties(one, blocks).link_count for blocks in (True, False)] for one in those]
        drawn.append(sum(row[0] for row in links) / sum(row[1] for row in links))
    shown = f"d(GM2) / d(GM) {fmean(drawn):.3f} where the lowest pair gives {fmean(lowest):.3f}, at |V|=200"
    yield Reading("K01, K02", "ties between equally good links drawn at random", shown)

    those = low_oda.zipf_workloads(100, range(10))
    overlays = [_greedy_random_ties(one, blocks=False) for one in those]
    summaries = [degree_summary(overlay) for overlay in overlays]
    drawn_shown = f"D {fmean(one.maximum for one in summaries):.2f}, d {fmean(one.average for one in summaries):.2f}"
    lowest_shown = f"D {maximum_degree(those, 'gm'):.2f}, d {average_degree(those, 'gm'):.2f}"
    shown = f"GM at |V|=100: {drawn_shown}; the lowest pair gives {lowest_shown}"
    yield Reading("L01, L03", "ties between equally good links drawn at random", shown)


def _random_ties_zipf_diameter() -> Reading:
    found = []
    for one in ktco.workloads(replace(ktco.FULL, seeds=(0, 1)), ktco.ZIPF, nodes=1000):
        interests = interests_of(one)
        found.append(diameter_summary(interests, topic_diameters(interests, _greedy_random_ties(one, blocks=False))))
    shown = f"Diam(GM) {fmean(one.maximum for one in found):.1f} under Zipf, |V|=1000"
    return Reading("K20", "ties between equally good links drawn at random", shown)


def _parting_as_printed() -> Reading:
    """Fig. 3 line 9: a covered node parts with neighbours above their target, not with those that have reached it."""
    found = []
    for nodes in (1000, 2000, 4000):
        one = spidercast.workload(nodes, spidercast.RSS, 0)
        printed = run_to_quiescence(interests_of(one), SpiderConfig(coverage(3, 0), part_above=True), 1.0, 0)
        ours = FOUND.of(spidercast.spider_cell(one)).values
        summary = degree_summary(printed)
        found.append(
            f"d {summary.average:.2f}, D {summary.maximum} at {nodes} nodes, where ours has"
            f" {ours['avg_degree']:.2f} and {ours['max_degree']:.0f}"
        )
    return Reading("P11, P18", "SpiderCast parts only with those above their target, as printed", "; ".join(found))


def _parting_as_printed_under_churn() -> Reading:
    cell = spidercast.churn_cell(spidercast.FULL, 1250, 500.0, 0)
    printed, _ = measure_lives(cell, interests_of(cell.workload), part_above=True)
    ours = FOUND.of(cell).values
    shown = (
        f"{printed['control_messages']:.1f} control messages and d {printed['avg_degree']:.2f} where ours has"
        f" {ours['control_messages']:.1f} and {ours['avg_degree']:.2f}; 1250 nodes, lives of 500 s"
    )
    return Reading("P16, P24a", "SpiderCast parts only with those above their target, as printed", shown)


def _greedy_random_ties(instance: WorkloadSpec, blocks: bool) -> Overlay:
    """GM, or GM2 with `blocks`, with ties drawn at random: a matrix of what each pair would contribute."""
    interests = interests_of(instance)
    draws = np.random.default_rng(instance.seed)
    gains = np.zeros((interests.node_count, interests.node_count), dtype=np.int16)
    members = np.split(interests.topic_nodes, interests.topic_offsets[1:-1])
    for one in members:
        gains[np.ix_(one, one)] += 1
    np.fill_diagonal(gains, 0)
    wanted = [set(one.tolist()) for one in np.split(interests.node_topics, interests.node_offsets[1:-1])]
    join = (_Blocks if blocks else _Components)(members, gains)
    chosen = []
    while (best := gains.max()) > 0:
        ties = np.flatnonzero(gains == best)
        u, v = sorted(divmod(int(draws.choice(ties)), interests.node_count))
        chosen.append((u, v))
        for topic in sorted(wanted[u] & wanted[v]):
            join.link(topic, u, v)
    ends = np.array(chosen, dtype=np.int32)
    return Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


class _Components:
    """Which subscribers of a topic are connected; a pair that becomes so gains one less."""

    def __init__(self, members: list[np.ndarray], gains: np.ndarray) -> None:
        self.pieces = [{int(node): [int(node)] for node in one} for one in members]
        self.gains = gains

    def link(self, topic: int, u: int, v: int) -> None:
        pieces = self.pieces[topic]
        larger, smaller = sorted((pieces[u], pieces[v]), key=len, reverse=True)
        if larger is smaller:
            return
        self.gains[np.ix_(larger, smaller)] -= 1
        self.gains[np.ix_(smaller, larger)] -= 1
        larger.extend(smaller)
        pieces.update(dict.fromkeys(smaller, larger))


class _Blocks:
    """Which subscribers of a topic share a block, by networkx, afresh after each link."""

    def __init__(self, members: list[np.ndarray], gains: np.ndarray) -> None:
        self.graphs = [networkx.Graph() for _ in members]
        self.together = [np.eye(len(gains), dtype=bool) for _ in members]
        self.gains = gains

    def link(self, topic: int, u: int, v: int) -> None:
        graph, together = self.graphs[topic], self.together[topic]
        graph.add_edge(u, v)
        if together[u, v]:
            return
        for block in networkx.biconnected_components(graph):
            if u in block and v in block:
                pairs = np.ix_(sorted(block), sorted(block))
                self.gains[pairs] -= ~together[pairs]
                together[pairs] = True


def main() -> None:
    argparse.ArgumentParser(prog="python -m tests.paper.readings", description=__doc__).parse_args()
    lines = []
    for one in all_readings():
        cells = (one.claims, one.reading, one.result)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
        print(lines[-1], end="", flush=True)
    PAGE.write_text(INTRODUCTION + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

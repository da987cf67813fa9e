"""The figures of the k-topic-connected overlays: Figs. 3 to 6, 8, and those of appendix D."""

from __future__ import annotations

from collections.abc import Callable

from omen.report.experiments.ktco import LARGEST_K, UNIF, ZIPF, Effort, workloads
from omen.report.experiments.lines import line_of
from omen.report.experiments.results import Results, spread, value
from omen.report.figures import Drawing, Panel, PaperValue
from omen.sweep.cells import WorkloadSpec

NAMES = {UNIF: "Unif", ZIPF: "Zipf"}
Varied = Callable[[int], list[WorkloadSpec]]


def _named(popularity: str) -> str:
    return NAMES.get(popularity, "Expo")


def _panels(found: Results, effort: Effort, x_label: str, xs: tuple[int, ...], vary: str) -> tuple[Panel, ...]:
    panels = []
    for popularity in effort.distributions:
        lines = [
            line_of(
                name, {x: spread(found, workloads(effort, popularity, **{vary: x}), "avg_degree", name) for x in xs}
            )
            for name in ("gm", "gm2", "cycle-pt")
        ]
        panels.append(Panel(x_label, "average degree", tuple(lines), title=_named(popularity), log_y=True))
    return tuple(panels)


def _degrees_by_nodes(found: Results, effort: Effort) -> Drawing:
    panels = _panels(found, effort, "nodes", effort.node_counts, "nodes")
    caption = (
        "200 topics, 30 a node: what surviving a crash costs. GM2 needs about 1.66 times GM's links, rings far more."
    )
    return Drawing("ktco-fig3", "k-TCO, Fig. 3: average degree by number of nodes", caption, panels)


def _degrees_by_topics(found: Results, effort: Effort) -> Drawing:
    panels = _panels(found, effort, "topics", effort.topic_counts, "topics")
    return Drawing(
        "ktco-fig4", "k-TCO, Fig. 4: average degree by number of topics", "800 nodes, 30 topics per node.", panels
    )


def _harary_by_size(found: Results, effort: Effort) -> Drawing:
    lines = [
        line_of(
            _named(popularity),
            {
                s: spread(found, workloads(effort, popularity, size=s), "avg_degree", "harary-pt", k=10)
                for s in effort.sizes
            },
        )
        for popularity in effort.distributions
    ]
    panel = Panel("topics a node wants", "average degree of HararyPT, k = 10", tuple(lines))
    caption = "800 nodes, 200 topics: a link of the common order serves more topics the more of them nodes want."
    return Drawing("ktco-fig5", "k-TCO, Fig. 5 and D-B: HararyPT by subscription size", caption, (panel,))


def _harary_by_k(found: Results, effort: Effort) -> Drawing:
    ks = range(2, LARGEST_K + 1)
    lines = []
    for popularity in effort.distributions:
        those = workloads(effort, popularity, nodes=1000)
        by_k = {
            k: [value(found, one, "edges", "harary-pt", k=k) / value(found, one, "edges", "cycle-pt") for one in those]
            for k in ks
        }
        lines.append(line_of(_named(popularity), by_k))
    paper = tuple(PaperValue(name, 1.0, k) for name, k in (("Expo 12", 12), ("Zipf 7", 7), ("Unif 5", 5)))
    panel = Panel("k", "links, as a multiple of CyclePT's", tuple(lines), paper)
    caption = "1000 nodes, 200 topics, 30 a node: up to which k HararyPT needs fewer links than a ring for each topic."
    return Drawing("ktco-d-a", "k-TCO, D-A: HararyPT by k", caption, (panel,))


def _diameters(found: Results, effort: Effort) -> Drawing:
    panels = []
    for measure, said in (("max_diameter", "widest topic"), ("mean_diameter", "mean topic diameter")):
        lines = [
            line_of(
                f"{name} {_named(popularity)}",
                {n: spread(found, workloads(effort, popularity, nodes=n), measure, name) for n in effort.node_counts},
                "mean",
            )
            for popularity in effort.distributions
            for name in ("gm", "gm2")
        ]
        panels.append(Panel("nodes", said, tuple(lines)))
    caption = "200 topics, 30 a node: the second way also halves the distances."
    return Drawing("ktco-fig6-8", "k-TCO, Figs. 6 and 8: topic diameters", caption, tuple(panels))


DRAWINGS = (_degrees_by_nodes, _degrees_by_topics, _harary_by_size, _harary_by_k, _diameters)

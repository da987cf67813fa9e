"""SpiderCast's figures: degrees under skew, over distributions, and next to other rules."""

from __future__ import annotations

from omen.report.experiments.lines import line_of
from omen.report.experiments.results import Results
from omen.report.experiments.spidercast import (
    AT_1K_10K,
    FOUR,
    RSS,
    ZIPF2,
    Effort,
    number,
    ring_degree,
    rival_value,
)
from omen.report.figures import Drawing, Panel, PaperValue

PAPER_DEGREES = {
    "spidercast (3,0)": (10.81, 10.11, 9.53, 9.24, 9.08, 8.95),
    "random(10)": (10.82, 10.54, 10.34, 10.12, 10.08, 10.11),
}


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
    for rival in effort.rivals:
        degrees.append(line_of(rival, {n: [rival_value(found, effort, "avg_degree", n, rival)] for n in counts}))
        pieces.append(line_of(rival, {n: [rival_value(found, effort, "components", n, rival)] for n in counts}))
    degrees.append(line_of("ring-pt", {n: [ring_degree(found, effort, n)] for n in counts}))
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

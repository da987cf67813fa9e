"""The OMen paper's figures: backup in-degrees, local views, degrees by coverage, systems under churn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from omen.report.experiments import shadows
from omen.report.experiments.lines import line_of, over_rounds
from omen.report.experiments.omen import PAPER_START
from omen.report.experiments.omen_cells import (
    COVERAGES,
    DISTRIBUTIONS,
    SYSTEMS,
    VIEWS,
    Effort,
    replay_cell,
    views_cell,
    wide_cell,
)
from omen.report.experiments.results import NotRun, Results
from omen.report.figures import Drawing, Line, Panel, PaperValue
from omen.sweep.cells import CellResult

PAPER_DEGREES = {0: 333, 1: 313, 3: 302, 5: 283, 7: 277, 9: 274}


def _in_degrees(found: Results, effort: Effort) -> Drawing:
    panels = []
    for name, popularity in DISTRIBUTIONS.items():
        lines = []
        for rule in ("greedy-cover", "pd-weight"):
            series = found.of(shadows.backups_cell(effort.seeds[0], rule, popularity)).series
            lines.append(_at_least(rule, series["primary_degree"], series["nodes_of_primary_degree"]))
        panels.append(Panel("backup in-degree", "share of nodes with it or more", tuple(lines), (), name, log_y=True))
    caption = "2000 nodes, 200 topics, lambda 3: for how many a node is a backup. Greedy leans on a few."
    return Drawing("omen-fig4", "OMen, Figs. 3 to 5: backup in-degrees", caption, tuple(panels))


def _at_least(label: str, degrees: list[float], counts: list[float]) -> Line:
    total, left, shares = sum(counts), sum(counts), []
    for count in counts:
        shares.append(left / total)
        left -= count
    return Line(label, tuple(degrees), tuple(shares))


def _views(found: Results, effort: Effort) -> Drawing:
    by_round, by_size = [], []
    for coverage in VIEWS.values():
        series = found.of(views_cell(effort, coverage)).series
        by_round.append(Line(f"lambda {coverage}", tuple(series["round"]), tuple(series["view_mean"])))
        views = series["views"]
        shares = {size: [(place + 1) / len(views)] for place, size in enumerate(views)}
        by_size.append(line_of(f"lambda {coverage}", shares, "mean"))
    panels = (
        Panel("gossip round", "mean local view", tuple(by_round)),
        Panel("nodes in a local view", "share of nodes with at most so many", tuple(by_size)),
    )
    return Drawing("omen-fig6-8a", "OMen, Figs. 6 and 8a: local views", f"On {effort.facebook.words}; L = 1.", panels)


def _coverage(found: Results, effort: Effort) -> Drawing:
    ratios: dict[float, list[float]] = {}
    for coverage in COVERAGES.values():
        values = found.of(replay_cell(effort.facebook, "omen", coverage)).values
        ratios[coverage] = [values["max_degree"] / values["start_max_degree"]]
    paper = tuple(PaperValue("", value / PAPER_START, float(key)) for key, value in PAPER_DEGREES.items())
    panel = Panel("lambda", "maximum degree, last to first", (line_of("ours", ratios),), paper)
    caption = f"Crosses: the paper's, after its 2000 events. Ours on {effort.facebook.words}."
    return Drawing("omen-fig8b", "OMen, Fig. 8b: maximum degree by coverage", caption, (panel,))


def _systems(found: Results, effort: Effort) -> Drawing:
    results: dict[str, CellResult] = {}
    for system in SYSTEMS:
        with suppress(NotRun):
            results[system] = found.of(replay_cell(effort.facebook, system))
    if not results:
        raise NotRun("no system was run")
    panels = [
        Panel("event", said, tuple(over_rounds(system, [one.series[name]]) for system, one in results.items()))
        for name, said in (("max_degree", "maximum degree"), ("avg_degree", "average degree"))
    ]
    timed = {system: one for system, one in results.items() if "repair_s" in one.series}
    panels.append(_times(timed))
    return Drawing(
        "omen-fig9-10", "OMen, Figs. 9 and 10: systems under churn", f"On {effort.facebook.words}.", tuple(panels)
    )


def _times(results: Mapping[str, CellResult]) -> Panel:
    lines = tuple(_at_most(system, one.series["repair_s"], 1e3) for system, one in results.items())
    return Panel("share of events", "repair time, ms", lines, log_y=True)


def _next_to_spidercast(found: Results, effort: Effort) -> Drawing:
    results = {system: found.of(wide_cell(effort.twitter, system)) for system in ("omen", "spidercast")}
    panels = []
    for name, said in (("looked_max_diameter", "highest topic diameter"), ("looked_mean_diameter", "mean of topics")):
        lines = [
            Line(system, tuple(one.series["looked_after"]), tuple(one.series[name])) for system, one in results.items()
        ]
        panels.append(Panel("event", said, tuple(lines)))
    sent = [_at_most(system, one.series["messages"]) for system, one in results.items()]
    panels.append(Panel("share of events", "messages, gossip included", tuple(sent), log_y=True))
    caption = f"On {effort.twitter.words}. Failure detection is not counted, and SpiderCast's heartbeats are that."
    return Drawing("omen-fig11-12", "OMen, Figs. 11 and 12: next to SpiderCast", caption, tuple(panels))


def _at_most(label: str, values: list[float], scale: float = 1.0) -> Line:
    ordered = sorted(scale * value for value in values if value == value)
    return Line(label, tuple((place + 1) / len(ordered) for place in range(len(ordered))), tuple(ordered))


DRAWINGS = (_in_degrees, _views, _coverage, _systems, _next_to_spidercast)

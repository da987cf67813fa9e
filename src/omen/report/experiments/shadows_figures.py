"""The figures of the paper on shadows, Figs. 2 to 8, and the tables of variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from statistics import fmean
from typing import Any

import numpy as np

from omen.report.experiments.lines import line_of, over_rounds
from omen.report.experiments.results import NotRun, Results
from omen.report.experiments.shadows import (
    COVERAGES,
    GREEDY,
    NODES,
    PRIMAL_DUAL,
    RULES,
    VARIANTS,
    Effort,
    backups,
    backups_cell,
    by_coverage,
    histories,
    rebuilt,
)
from omen.report.figures import Drawing, Line, Panel, PaperValue
from omen.report.ledger_text import Table
from omen.sweep.cells import Value


def _backup_sets(found: Results, effort: Effort) -> Drawing:
    sizes, degrees = [], []
    for rule in (GREEDY, PRIMAL_DUAL):
        series = [found.of(backups_cell(seed, rule)).series for seed in effort.seeds]
        by_size: dict[float, list[float]] = {}
        for one in series:
            for x, y in zip(one["subscriptions"], one["size_by_subscriptions"], strict=True):
                by_size.setdefault(x, []).append(y)
        sizes.append(line_of(rule, by_size, "mean"))
        shares = np.cumsum(series[0]["nodes_of_primary_degree"]) / NODES  # of one workload: degrees differ between them
        degrees.append(Line(rule, tuple(series[0]["primary_degree"]), tuple(shares.tolist())))
    paper = (PaperValue("42.9% below 5, greedy", 0.429, 5.0),)
    panels = (
        Panel("topics a node wants", "backups of a node", tuple(sizes)),
        Panel("primaries of a node", "share of nodes with at most so many", tuple(degrees), paper),
    )
    caption = "2000 nodes, 200 topics, lambda 3: backup sets before any churn. The greedy rule leans on few nodes."
    return Drawing("shadows-fig2-3", "Shadows, Figs. 2 and 3: backup sets by rule", caption, panels)


def _evolving(found: Results, effort: Effort, cases: Sequence[tuple[str, dict[str, Value]]]) -> list[Panel]:
    panels = []
    for name, said in (("maximum", "maximum degree"), ("average", "average degree")):
        lines = [
            over_rounds(label, [getattr(one, name).tolist() for one in histories(found, effort, **variant)])
            for label, variant in cases
        ]
        panels.append(Panel("round of churn", said, tuple(lines)))
    return panels


def _by_rule(found: Results, effort: Effort) -> Drawing:
    panels = _evolving(found, effort, [(PRIMAL_DUAL, {}), (GREEDY, {"backups": GREEDY})])
    panels[0] = _with_paper(panels[0], PaperValue("greedy, 84", 84.0, float(effort.rounds)))
    caption = (
        "A join or a leave a round: with greedy backups few nodes take most of the repairs, and their degree grows."
    )
    return Drawing("shadows-fig4", "Shadows, Fig. 4: degrees under churn by backup rule", caption, tuple(panels))


def _by_coverage(found: Results, effort: Effort) -> Drawing:
    panels = _evolving(found, effort, [(f"lambda {covers}", by_coverage(covers)) for covers in COVERAGES])
    ends = zip((31, 25, 24), ("1", "2", "3 and 4"), strict=True)
    paper = [PaperValue(f"lambda {name}, {value}", float(value), float(effort.rounds)) for value, name in ends]
    panels[0] = _with_paper(panels[0], *paper)
    caption = "More covers of its topics among a node's backups bring the average degree down."
    return Drawing("shadows-fig5", "Shadows, Fig. 5: degrees under churn by coverage", caption, tuple(panels))


def _evolution(found: Results, effort: Effort) -> Drawing:
    panels = _evolving(found, effort, [("shadow", {}), ("naive", {"system": "naive"})])
    with_fresh = []
    for panel, name in zip(panels, ("maximum", "average"), strict=True):
        those = rebuilt(found, effort)
        rounds = those[0][0]
        values = [fmean(float(getattr(new, name)[place]) for _, new in those) for place in range(rounds.size)]
        fresh = Line("Low-ODA from scratch", tuple((rounds + 1.0).tolist()), tuple(values))
        with_fresh.append(Panel(panel.x_label, panel.y_label, (*panel.lines, fresh)))
    ends = (PaperValue("13", 13.0, 1.0), PaperValue("22", 22.0, float(effort.rounds)))
    with_fresh[0] = _with_paper(with_fresh[0], *ends)
    caption = "Repair stays near what building anew would give, at a small part of its work."
    return Drawing("shadows-fig6", "Shadows, Fig. 6: degrees under churn by system", caption, tuple(with_fresh))


def _times(found: Results, effort: Effort) -> Drawing:
    fresh = fmean(float(new.repair_s.mean()) for _, new in rebuilt(found, effort))
    panels = []
    for joins, said in ((True, "joins"), (False, "leaves")):
        lines = []
        variants: tuple[tuple[str, dict[str, Value]], ...] = (("shadow", {}), ("naive", {"system": "naive"}))
        sizes = np.concatenate([one.shadow[one.joins == joins] for one in histories(found, effort)])
        for label, variant in variants:
            those = histories(found, effort, **variant)
            ratios = np.concatenate([one.repair_s[one.joins == joins] for one in those]) / fresh
            lines.append(_binned(label, sizes, ratios))
        panels.append(Panel("nodes in the shadow set", f"time of {said}, to Low-ODA's", tuple(lines), log_y=True))
    caption = "The naive repair looks at all nodes, the shadow repair at its shadow set; sets of equal size averaged."
    return Drawing("shadows-fig7", "Shadows, Fig. 7: time of a repair to that of building anew", caption, tuple(panels))


def _repairs(found: Results, effort: Effort) -> Drawing:
    panels = []
    for joins, said, ours, theirs in ((True, "joins", 0.00068, 0.113), (False, "leaves", 0.0017, 0.075)):
        shadow = [one.repair_ratio[one.joins == joins] for one in histories(found, effort)]
        fresh = [new.repair_ratio[new.joins == joins] for _, new in rebuilt(found, effort)]
        lines = (_sorted("shadow", np.concatenate(shadow)), _sorted("Low-ODA from scratch", np.concatenate(fresh)))
        paper = (PaperValue(f"mean, Shadow {ours:g}", ours), PaperValue(f"mean, Low-ODA {theirs:g}", theirs))
        panels.append(Panel("share of rounds", f"links changed by {said}, to all links", lines, paper, log_y=True))
    caption = "How many links have to change: rounds in order of how much they change."
    return Drawing("shadows-fig8", "Shadows, Fig. 8: repair ratios", caption, tuple(panels))


def _binned(label: str, x: Any, y: Any) -> Line:
    values = {float(size): y[x == size].tolist() for size in np.unique(x) if size > 0}
    return line_of(label, values, "mean")


def _sorted(label: str, values: Any) -> Line:
    ordered = np.sort(values)
    places = np.unique(np.linspace(0, ordered.size - 1, min(100, ordered.size)).astype(int))
    return Line(label, tuple(((places + 1) / ordered.size).tolist()), tuple(ordered[places].tolist()))


def _with_paper(panel: Panel, *paper: PaperValue) -> Panel:
    return Panel(panel.x_label, panel.y_label, panel.lines, paper, panel.title, panel.log_x, panel.log_y)


DRAWINGS = (_backup_sets, _by_rule, _by_coverage, _evolution, _times, _repairs)


def tables(found: Results, effort: Effort) -> Iterator[Table]:
    """What variants of the algorithm come to after the same churn, and what the four rules make of backup sets."""
    rows = []
    for name, variant in VARIANTS.items() if effort.variants else ():
        with suppress(NotRun):
            rows.append((name, *_variant_row(found, effort, variant)))
    if rows:
        yield Table(
            f"The same churn by variant: means over {len(effort.seeds)} workloads, after {effort.rounds} rounds",
            ("variant", "D", "d", "mean |S| / |V'|", "links changed by a join", "by a leave"),
            tuple(rows),
        )
    yield Table(
        "Backup sets before any churn, lambda 3",
        ("rule", "mean |B| / |V|", "primaries of a node, lowest", "highest", "nodes with fewer than 5"),
        tuple((rule, *_rule_row(found, effort, rule)) for rule in RULES),
    )


def _variant_row(found: Results, effort: Effort, variant: dict[str, Value]) -> list[str]:
    those = histories(found, effort, **variant)
    shadow = fmean(float(one.shadow_share.mean()) for one in those)
    return [
        f"{fmean(float(one.maximum[-1]) for one in those):.1f}",
        f"{fmean(float(one.average[-1]) for one in those):.2f}",
        f"{shadow:.4f}" if shadow else "",
        f"{fmean(float(one.changed[one.joins].mean()) for one in those):.2f}",
        f"{fmean(float(one.changed[~one.joins].mean()) for one in those):.2f}",
    ]


def _rule_row(found: Results, effort: Effort, rule: str) -> list[str]:
    return [
        f"{backups(found, effort, rule, 'size_mean') / NODES:.4f}",
        f"{backups(found, effort, rule, 'primaries_min'):.0f}",
        f"{backups(found, effort, rule, 'primaries_max'):.0f}",
        f"{backups(found, effort, rule, 'share_below_5'):.3f}",
    ]

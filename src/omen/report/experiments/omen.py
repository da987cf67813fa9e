"""Chen, Vitenberg, Jacobsen, "OMen: overlay mending for topic-based publish/subscribe", 2016.

Section 6, Figs. 3-12, claims O01-O32.

Degrees after churn are compared in ratio: ours are scaled so that both start from the paper's 232, and views so that
both have its size at lambda 5. Next to SpiderCast they are told as they are, since its highest degree follows the
largest interest and not the degree at the start. `greedy` is the rule that covers most topics first (`greedy-cover`),
as in the claims on shadows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from statistics import fmean

from omen.report.experiments import shadows
from omen.report.experiments.omen_cells import (
    COVERAGES,
    DISTRIBUTIONS,
    LOOKS_EVERY,
    REBUILT_EVERY,
    SPIDERCAST_4_0,
    SYSTEMS,
    VIEWS,
    Effort,
    Stage,
    cells,
    effort_at,
    large_cell,
    rebuild_cell,
    replay_cell,
    views_cell,
    wide_cell,
)
from omen.report.experiments.results import NotRun, Results
from omen.report.ledger import Deviation, Measured, Measures
from omen.report.ledger_text import Table
from omen.sweep.cells import CellResult

__all__ = ["DEVIATIONS", "MEASURES", "cells", "effort_at", "sampled", "stand_ins", "tables"]

PAPER_START, PAPER_VIEW = 232.0, 48.40  # the paper's D before churn, and its mean view, FB 1K at lambda 5
SMALL_VIEW = 50  # 5% of the paper's 1,000 nodes
POPULAR = 100
HEADER = ("system", "events", "D at the end", "mean D", "d at the end", "mean d", "mean |S|", "messages", "kB")

MEASURES = Measures()
ON_BACKUPS = ("O01", "O02", "O03", "O04", "O05", "O06")
ON_TWITTER = ("O30", "O31", "O32")
ON_LARGE = ("O24", "O26", "O29")

_FEW = (
    "Nearly every node has one of the most chosen among its backups: they are the widest, and each set takes the widest"
    " first. Read otherwise, as the places in all backup sets that the busiest 1% of the nodes fill, ours are 0.35"
    " (Unif) and 0.48 (Zipf), near the paper's, and 0.92 for Expo, or 0.58 with SpiderCast's Expo on a single workload;"
    " that reading was tried after the result was seen."
)
_STEPS = (
    "The maximum degree moves in steps of a link or two, ours from a start of 45 where the paper's is 232; how many"
    " steps fall into a trace says little."
)
_FASTER = (
    "The ratio is to a faster Low-ODA: ours takes 50 ms on 1,000 users, and OMen's repair half a millisecond, most of"
    " it for handing lists to compiled code."
)
DEVIATIONS: dict[str, Deviation] = {
    "O04": Deviation(0.9, 1.0, _FEW),
    "O05": Deviation(0.9, 1.0, _FEW),
    "O06": Deviation(0.9, 1.0, _FEW),
    "O09": Deviation(
        10,
        60,
        "A guess, not tested: our users are friends of friends, so that a few nodes have most of what one wants,"
        " and five covers are small. Nor does the paper say for which L its views are; ours are for L 1.",
    ),
    "O10": Deviation(
        57,
        90,
        "Scaled by the view at lambda 5. Ours go on growing with lambda. A guess, not tested: with views a third as"
        " large as the paper's at lambda 5 there are more subscribers left to take in.",
    ),
    "O12": Deviation(
        200,
        480,
        "Scaled by the degree at the start, 45 where the paper's is 232. A guess, not tested: without covers the few"
        " former neighbours of a lost node must be linked with each other, and ours have fewer.",
    ),
    "O23": Deviation(-0.1, 0.6, _STEPS),
    "O24": Deviation(-0.05, 0.11, _STEPS),
    "O25": Deviation(
        20,
        270,
        "SpiderCast's highest degree, that of a user with hundreds of friends whose topics few others want, is five"
        " times OMen's all the same.",
    ),
    "O27": Deviation(
        0.3,
        2.5,
        "Our OMen-G has its backup sets ready as OMen has, and runs the same repair on a shadow set of the same size."
        " What the paper's does that takes twenty times as long is not said.",
    ),
    "O28": Deviation(0.0, 0.8, _FASTER),
    "O29": Deviation(0.0, 0.1, _FASTER),
    "O30": Deviation(1, 20, "The longest topic spans 17 hops with OMen and 5 with SpiderCast. The means (O31) agree."),
    "O32": Deviation(
        0,
        0.5,
        "What is counted decides. Gossip for local views makes up nearly all of OMen's messages; SpiderCast's views"
        " come from a membership service that is assumed, and its heartbeats are failure detection. With one of them a"
        " second on each link it is far above OMen.",
    ),
}


def stand_ins(effort: Effort) -> dict[str, str]:
    """Claims on graphs we do not have, and what was taken instead."""
    told = {claim_id: effort.facebook.words for claim_id in MEASURES if claim_id not in ON_BACKUPS}
    told |= dict.fromkeys(ON_TWITTER, effort.twitter.words)
    return told | dict.fromkeys(ON_LARGE, effort.large.words if effort.large else "")


def sampled(effort: Effort) -> str:
    if effort.large is None:
        return ""
    return (
        f"of the largest graph the first {effort.large.events} events (O24, O26, O29), Low-ODA built anew around one in"
        f" {REBUILT_EVERY} of them (O29); diameters after one in {LOOKS_EVERY} events (O30, O31)"
    )


def _large(effort: Effort) -> Stage:
    if effort.large is None:
        raise NotRun("10,000 users are for the full scale, and need data")
    return effort.large


def _backups(found: Results, effort: Effort, distribution: str, rule: str = "greedy-cover") -> list[CellResult]:
    popularity = DISTRIBUTIONS[distribution]
    return [found.of(shadows.backups_cell(seed, rule, popularity)) for seed in effort.seeds]


@MEASURES.of("O01")
def highest_in_degree(found: Results, effort: Effort) -> Measured:
    highest = {
        rule: fmean(one.values["primaries_max"] for one in _backups(found, effort, "Unif", rule))
        for rule in ("greedy-cover", "greedy-weight", "pd-weight")
    }
    others = ", ".join(f"{rule} {value:.0f}" for rule, value in highest.items() if rule != "greedy-cover")
    return Measured(highest["greedy-cover"], f"greedy-cover; {others}")


@MEASURES.of("O02", "O03")
def share_of_low_in_degrees(claim_id: str, found: Results, effort: Effort) -> Measured:
    those = _backups(found, effort, {"O02": "Zipf", "O03": "Expo"}[claim_id])
    return Measured(fmean(one.values["share_below_5"] for one in those))


@MEASURES.of("O04", "O05", "O06")
def share_leaning_on_few(claim_id: str, found: Results, effort: Effort) -> Measured:
    those = _backups(found, effort, {"O04": "Unif", "O05": "Zipf", "O06": "Expo"}[claim_id])
    few, busiest = (fmean(column) for column in zip(*map(_busy, those), strict=True))
    note = f"they are {few:.2%} of the nodes; of the places in all backup sets the busiest 1% fill {busiest:.3f}"
    return Measured(fmean(one.values["share_leaning_on_popular"] for one in those), note)


def _busy(one: CellResult) -> tuple[float, float]:
    """The share of the nodes that are chosen often, and what the busiest hundredth has of all places."""
    degrees, counts = one.series["primary_degree"], one.series["nodes_of_primary_degree"]
    pairs = sorted(zip(degrees, counts, strict=True), reverse=True)
    nodes, places = sum(counts), sum(degree * count for degree, count in pairs)
    most = nodes / 100
    before = accumulate((count for _, count in pairs), initial=0.0)
    filled = sum(degree * max(0.0, min(count, most - at)) for (degree, count), at in zip(pairs, before, strict=False))
    return sum(count for degree, count in pairs if degree > POPULAR) / nodes, filled / max(places, 1.0)


@MEASURES.of("O07", "O08", "O09", "O10")
def mean_view(claim_id: str, found: Results, effort: Effort) -> Measured:
    """At lambda 5 as it is; at others next to that."""
    mean, at_five = (found.of(views_cell(effort, one)).values["view_mean"] for one in (VIEWS[claim_id], 5))
    if claim_id == "O09":
        return Measured(mean, "L 1")
    return Measured(mean / at_five * PAPER_VIEW, f"scaled: {mean:.2f}, and {at_five:.2f} at lambda 5; L 1")


@MEASURES.of("O11")
def share_of_small_views(found: Results, effort: Effort) -> Measured:
    """Below 5% of the paper's 1,000 nodes, whatever the size of ours."""
    sizes = found.of(views_cell(effort, 5)).series["views"]
    return Measured(
        fmean(size < SMALL_VIEW for size in sizes), f"fewer than {SMALL_VIEW}, L 1; the mean is {fmean(sizes):.1f}"
    )


@MEASURES.of("O18")
def share_of_views_up_to_80(found: Results, effort: Effort) -> Measured:
    values = found.of(views_cell(effort, 5)).values
    return Measured(values["share_up_to_80"], f"the largest has {values['view_max']:.0f}; L 1")


@MEASURES.of("O12", "O13", "O14", "O15", "O16", "O17")
def last_maximum_degree(claim_id: str, found: Results, effort: Effort) -> Measured:
    values = found.of(replay_cell(effort.facebook, "omen", COVERAGES[claim_id])).values
    start, end = values["start_max_degree"], values["max_degree"]
    average = f"d {values['start_avg_degree']:.2f} to {values['avg_degree']:.2f}"
    note = f"scaled: D {start:.0f} to {end:.0f}; {average}; {values['events']:.0f} events"
    return Measured(end / start * PAPER_START, note)


@MEASURES.of("O19", "O20", "O21", "O22")
def degrees_next_to(claim_id: str, found: Results, effort: Effort) -> Measured:
    """Means over the trace."""
    other = "lowoda-re" if claim_id in ("O19", "O20") else "omen-g"
    ours, theirs = (found.of(replay_cell(effort.facebook, system)).values for system in ("omen", other))
    name = "max_degree" if claim_id in ("O19", "O21") else "avg_degree"
    one, two = ours[f"{name}_mean"], theirs[f"{name}_mean"]
    note = f"means {one:.4g} and {two:.4g}; at the end {ours[name]:.4g} and {theirs[name]:.4g}"
    return Measured(one / two if name == "max_degree" else one - two, f"{note}; {ours['events']:.0f} events")


@MEASURES.of("O23", "O24")
def maximum_degree_gained(claim_id: str, found: Results, effort: Effort) -> Measured:
    cell = replay_cell(effort.facebook, "omen") if claim_id == "O23" else large_cell(_large(effort), "omen")
    values = found.of(cell).values
    start, end, events = values["start_max_degree"], values["max_degree"], values["events"]
    gained, told = (end - start) / events, f"D {start:.0f} to {end:.0f} in {events:.0f} events"
    if claim_id == "O24":
        return Measured(gained, told)
    return Measured(gained / start * PAPER_START, f"scaled: {gained:.4f}, {told}")


@MEASURES.of("O25", "O26")
def degree_of_spidercast_above(claim_id: str, found: Results, effort: Effort) -> Measured:
    """SpiderCast's nodes cover their topics before the first event; in the paper those act that an event cut off."""
    if claim_id == "O25":
        those = {
            "OMen": replay_cell(effort.facebook, "omen"),
            "SpiderCast(3,1)": replay_cell(effort.facebook, "spidercast"),
            "(4,0)": replay_cell(effort.facebook, "spidercast", spidercast=SPIDERCAST_4_0),
        }
    else:
        large = _large(effort)
        those = {"OMen": large_cell(large, "omen"), "SpiderCast(3,1)": large_cell(large, "spidercast")}
    values = {name: found.of(cell).values for name, cell in those.items()}
    omen = values["OMen"]
    gap = values["SpiderCast(3,1)"]["max_degree_mean"] - omen["max_degree_mean"]
    start, events = omen["start_max_degree"], omen["events"]
    means = ", ".join(f"{name} D {v['max_degree_mean']:.0f} d {v['avg_degree_mean']:.1f}" for name, v in values.items())
    scaled = f"D {start:.0f} at the start (scaled to {PAPER_START:.0f}: {gap / start * PAPER_START:.0f})"
    return Measured(gap, f"{scaled}; {means}; {events:.0f} events")


@MEASURES.of("O27", "O28")
def repair_time_next_to(claim_id: str, found: Results, effort: Effort) -> Measured:
    """Processor time of the repair algorithm itself, taken while other cells ran on the other cores."""
    names = ("omen", "omen-g" if claim_id == "O27" else "lowoda-re")
    ours, theirs = (found.of(replay_cell(effort.facebook, name)).values["repair_s_mean"] for name in names)
    return Measured(ours / theirs, f"{1e3 * ours:.2f} and {1e3 * theirs:.2f} ms of processor time a repair")


@MEASURES.of("O29")
def repair_time_next_to_rebuilding_10k(found: Results, effort: Effort) -> Measured:
    """Low-ODA is built anew in a few rounds alone: in all of them it would take days."""
    large = _large(effort)
    ours, rebuilt = found.of(large_cell(large, "omen")).values["repair_s_mean"], found.of(rebuild_cell(large))
    theirs = rebuilt.values["repair_s_mean"]
    note = f"{1e3 * ours:.2f} ms, and {1e3 * theirs:.4g} ms in {rebuilt.values['looks']:.0f} sampled rounds"
    return Measured(ours / theirs, f"{note}, of processor time")


@MEASURES.of("O30", "O31")
def diameters_above_spidercast(claim_id: str, found: Results, effort: Effort) -> Measured:
    name = "max_diameter_mean" if claim_id == "O30" else "mean_diameter_mean"
    ours, theirs = (found.of(wide_cell(effort.twitter, system)).values for system in ("omen", "spidercast"))
    split = f"topics split at {ours['split_at_looks']:.0f} and {theirs['split_at_looks']:.0f} of them"
    looks = f"{ours['looks']:.0f} looks in {ours['events']:.0f} events, {split}"
    return Measured(ours[name] - theirs[name], f"{ours[name]:.2f} and {theirs[name]:.2f}; {looks}")


@MEASURES.of("O32")
def messages_of_spidercast(found: Results, effort: Effort) -> Measured:
    """As everywhere, failure detection is not counted, and SpiderCast's heartbeats are that."""
    ours, theirs = (found.of(wide_cell(effort.twitter, system)) for system in ("omen", "spidercast"))
    one, two = theirs.values["messages_an_event"], ours.values["messages_an_event"]
    ends = theirs.values["avg_degree"] * theirs.series["nodes"][-1]  # of links: one per second each way
    beats = ends * theirs.values["simulated_s"] / theirs.values["events"]
    note = f"{one:.0f} and {two:.0f} messages per event; a heartbeat per second on each link would be {beats:.0f} more"
    return Measured(one / two, note)


def tables(found: Results, effort: Effort) -> Iterator[Table]:
    """All replays of the Facebook trace that were made."""
    wanted = {
        f"OMen, lambda {coverage}": replay_cell(effort.facebook, "omen", coverage) for coverage in (0, 1, 3, 5, 7, 9)
    }
    wanted |= {_NAMES[system]: replay_cell(effort.facebook, system) for system in SYSTEMS if system != "omen"}
    wanted["SpiderCast(4,0)"] = replay_cell(effort.facebook, "spidercast", spidercast=SPIDERCAST_4_0)
    rows = []
    for name, cell in wanted.items():
        try:
            rows.append((name, *_row(found.of(cell).values)))
        except NotRun:
            continue
    if rows:
        yield Table(f"All systems on {effort.facebook.words}", HEADER, tuple(rows))


_NAMES = {
    "omen-g": "OMen-G, lambda 5",
    "lowoda-re": "LowODA-Re",
    "lowoda-inc": "LowODA-Inc",
    "shadow": "Shadow, lambda 5",
    "spidercast": "SpiderCast(3,1)",
}


def _row(values: Mapping[str, float]) -> list[str]:
    row = [f"{values['events']:.0f}", f"{values['max_degree']:.0f}", f"{values['max_degree_mean']:.1f}"]
    row += [f"{values['avg_degree']:.2f}", f"{values['avg_degree_mean']:.2f}"]
    for name, factor in (("shadow_size_mean", 1.0), ("messages_mean", 1.0), ("bytes_mean", 1e-3)):
        row.append(f"{factor * values[name]:.0f}" if name in values else "")
    return row

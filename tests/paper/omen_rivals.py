"""Chen, Vitenberg, Jacobsen, "OMen": claims O25, O26 and O30-O32, OMen next to SpiderCast on the same trace.

The graphs are other ones than the paper's; numbers are told as they are, since SpiderCast's highest degree follows the
largest interest and not the degree at the start. Both systems begin with the Low-ODA overlay. SpiderCast's nodes then
cover their topics before the first event, where the paper has only those act that an event has cut off from a topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from omen.churn import Trace
from omen.interests import Interests
from omen.protocol.events import SECOND
from omen.quality import diameter_summary, topic_components, topic_diameters
from omen.runs import design_overlay
from omen.runs.systems import find_system, resolve_settings

from . import omen as alone
from .claims import Deviation, Measured, Measures
from .omen import PAPER_START, drawn_graph
from .omen_cells import Cell, Store

SPIDERCAST = {"(3,1)": {"kg": 3, "kr": 1}, "(4,0)": {"kg": 4, "kr": 0}}
FACEBOOK, TWITTER, LARGE = "fb1k", "higgs1k", "slashdot10k"
LARGER = 4  # times as many nodes in the large graph of the tests


@dataclass(frozen=True)
class Effort:
    """The first `events` of each trace (`large_events` on 10K), diameters every so many; 0 nodes: the real graphs."""

    nodes: int
    events: int
    large_events: int
    every: int


QUICK = Effort(nodes=90, events=20, large_events=6, every=10)
FULL = Effort(nodes=0, events=2000, large_events=10, every=15)

MEASURES = Measures()
STORE = Store(Path(".cache/claims"))
DEVIATIONS = {
    "O25": Deviation(
        20,
        270,
        "Other data. SpiderCast's highest degree, that of a user with hundreds of friends whose topics few others want,"
        " is five times OMen's all the same.",
    ),
    "O30": Deviation(
        1,
        20,
        "Other data: the longest topic spans 17 hops with OMen and 5 with SpiderCast. The means (O31) reproduce.",
    ),
    "O32": Deviation(
        0,
        0.5,
        "What is counted decides. Gossip for local views makes up nearly all of OMen's messages; SpiderCast's views"
        " come from a membership service that is assumed, and its heartbeats are failure detection. With one of them a"
        " second on each link it is far above OMen.",
    ),
}

_in_memory: dict[str, Cell] = {}


def run_cell(interests: Interests, trace: Trace, system: str, every: int, **options: Any) -> Cell:
    """A system through a trace: degrees, messages and whether a topic is split after each instant, diameters now and
    then."""
    kind = find_system(system)
    first = design_overlay(interests, "low-oda")
    running = kind.build(interests, first, interests, resolve_settings(kind, options))
    cell: Cell = {"start": int(first.degrees.max()), "max_degree": [], "avg_degree": [], "messages": [], "split": 0}
    cell |= {"diameter": [], "mean_diameter": [], "done": 0}
    for _, instant in groupby(trace, key=lambda event: event.time_s):
        outcomes = running.apply(list(instant))
        cell["max_degree"].append(outcomes[-1].max_degree)
        cell["avg_degree"].append(outcomes[-1].average_degree)
        cell["messages"].append((outcomes[-1].messages or 0) / len(outcomes))
        present, overlay = running.snapshot()
        cell["split"] += int((topic_components(present, overlay) > 1).any())
        before, cell["done"] = cell["done"], cell["done"] + len(outcomes)
        if before // every != cell["done"] // every:
            summary = diameter_summary(present, topic_diameters(present, overlay))
            cell["diameter"].append(summary.maximum)
            cell["mean_diameter"].append(summary.mean)
    world = running.world  # type: ignore[attr-defined]  # both are simulated
    links = running.snapshot()[1].link_count
    cell["heartbeats"] = 2 * links * world.now / SECOND / cell["done"]  # one a second on each link, either way
    return cell


def replayed(effort: Effort, graph: str, system: str, name: str = "", **options: Any) -> Cell:
    events = effort.large_events if graph == LARGE else effort.events

    def compute() -> Cell:
        drawn = effort.nodes * (LARGER if graph == LARGE else 1)
        interests, trace = drawn_graph(drawn) if drawn else STORE.trace(graph)
        return run_cell(interests, Trace(trace.events[:events]), system, min(effort.every, events), **options)

    if system == "omen" and graph == FACEBOOK and not effort.nodes:
        cell = alone.replayed(alone.FULL, "omen")  # the same run, a number for each event
        return {**cell, "start": cell["start"]["max_degree"], "done": cell["events"]}
    kept = f"rivals-{graph}-{system}{name}-{events}"
    if effort.nodes:
        if kept not in _in_memory:
            _in_memory[kept] = compute()
        return _in_memory[kept]
    return STORE.get(kept, compute)


def both(effort: Effort, graph: str) -> tuple[Cell, Cell]:
    return replayed(effort, graph, "omen"), replayed(effort, graph, "spidercast", "(3,1)", **SPIDERCAST["(3,1)"])


@MEASURES.of("O25", "O26")
def degree_above_omen(claim_id: str, effort: Effort) -> Measured:
    graph = FACEBOOK if claim_id == "O25" else LARGE
    omen, spider = both(effort, graph)
    gap = fmean(spider["max_degree"]) - fmean(omen["max_degree"])
    means = ", ".join(
        f"{name} D {fmean(cell['max_degree']):.0f} d {fmean(cell['avg_degree']):.1f}"
        for name, cell in (("OMen", omen), ("SpiderCast(3,1)", spider))
    )
    scaled = gap / omen["start"] * PAPER_START
    note = f"other data, D {omen['start']} at the start (scaled to {PAPER_START}: {scaled:.0f}); {means}"
    return Measured(gap, f"{note}{_other_coverage(effort, graph)}; {omen['done']} events")


def _other_coverage(effort: Effort, graph: str) -> str:
    if graph == LARGE:
        return ""
    cell = replayed(effort, graph, "spidercast", "(4,0)", **SPIDERCAST["(4,0)"])
    return f"; (4,0) D {fmean(cell['max_degree']):.0f} d {fmean(cell['avg_degree']):.1f}"


@MEASURES.of("O30", "O31")
def diameter_above_spidercast(claim_id: str, effort: Effort) -> Measured:
    key = "diameter" if claim_id == "O30" else "mean_diameter"
    omen, spider = both(effort, TWITTER)
    means = fmean(omen[key]), fmean(spider[key])
    split = f"topics split after {omen['split']} and {spider['split']} of {len(omen['max_degree'])} instants"
    note = f"other data: {means[0]:.2f} and {means[1]:.2f}, {len(omen[key])} times in {omen['done']} events; {split}"
    return Measured(means[0] - means[1], note)


@MEASURES.of("O32")
def messages_next_to_omen(effort: Effort) -> Measured:
    """As everywhere, failure detection is not counted, and SpiderCast's heartbeats are that."""
    cells = both(effort, TWITTER)
    omen, spider = (fmean(cell["messages"]) for cell in cells)
    beats = cells[1].get("heartbeats", 0)
    note = f"{spider:.0f} and {omen:.0f} messages an event; a heartbeat a second on each link would be {beats:.0f} more"
    return Measured(spider / omen, note)


def cells(effort: Effort) -> dict[str, Callable[[], Cell]]:
    """All of them by name, to be made one at a time."""
    return {
        f"{graph}-{system}{name}": lambda graph=graph, system=system, name=name, options=options: replayed(
            effort, graph, system, name, **options
        )
        for graph in (FACEBOOK, TWITTER, LARGE)
        for system, name, options in (
            ("omen", "", {}),
            *(("spidercast", name, options) for name, options in SPIDERCAST.items()),
        )
    }

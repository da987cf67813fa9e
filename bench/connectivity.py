"""What connectivity 2 costs, under churn too, and what it spares subscribers: the figures of docs/connectivity.md.

python -m bench.connectivity degrees NAME=WORKLOAD:CHURN... --out DIR: replays each trace with the nodes themselves
(system omen) and with one that sees everything (shadow), for k = 1 and 2, and designs GM2 anew on the way. What is in
DIR is not done again. With --events only so many events of each trace.

python -m bench.connectivity costs 100x20...: messages and bytes in the simulator, of so many nodes and topics.

python -m bench.connectivity stalls FILE...: what `python -m tests.network.stalls` printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyarrow.dataset import dataset

from bench.connectivity_costs import measure_costs
from bench.measure import ROOT
from omen.churn import Trace
from omen.interests import Interests
from omen.maintain import start_maintainer
from omen.protocol.events import SECOND
from omen.quality import check_overlay
from omen.report.canvas import blank_figure, save_figure
from omen.systems import design_overlay
from omen.systems.checkpoint import Checkpoint
from omen.systems.replay import Supervision, find_impossible, only_nodes
from omen.systems.replay import replay as run_replay
from omen.systems.simulated import SimulatedSystem
from omen.systems.summary import columns_of
from omen.systems.system import System
from omen.tables import read_overlay
from omen.tables.churn_table import read_churn
from omen.tables.parts import locate_table
from omen.tables.reading import read_workload
from omen.tables.replay_table import write_replay

SYSTEMS = {"omen": "the nodes themselves", "shadow": "central"}
DEGREES = ROOT / "docs" / "figures" / "connectivity.svg"
STALLS = ROOT / "docs" / "figures" / "stalls.svg"
REBUILDS = 20
SETTLING = 30 * SECOND

Curve = dict[str, npt.NDArray[np.float64]]


class Given(NamedTuple):
    """A workload, and what happens to it."""

    interests: Interests
    trace: Trace


def replay(given: Given, system: str, k: int, out: Path) -> Curve:
    """Average and maximum degree after each event, and the links changed by it."""
    if not out.exists():
        supervision = Supervision(
            skip_impossible=True,
            look=partial(_let_settle, len(given.trace) - len(find_impossible(given.interests, given.trace))),
            checkpoint=Checkpoint(f"{out}.checkpoint", 60.0),
        )
        replayed = run_replay(given.interests, given.trace, system, verify="off", supervision=supervision, k=k)
        seqs = range(len(given.trace))
        write_replay(out, replayed.interests, replayed.overlay, columns_of(replayed, seqs), {"made": "replay", "k": k})
        Path(f"{out}.checkpoint").unlink(missing_ok=True)
    names = {"average": "avg_degree", "maximum": "max_degree", "added": "edges_added", "removed": "edges_removed"}
    table = dataset(locate_table(out, "replay")).to_table(columns=["seq", *names.values()]).sort_by("seq")
    return {name: table[column].fill_null(0).to_numpy().astype(float) for name, column in names.items()}


def _let_settle(events: int, system: System, position: int) -> None:
    """After the last event nodes have the time that they are promised to need until all topics are 2-connected."""
    if position == events and isinstance(system, SimulatedSystem):
        system.world.run_until(system.world.now + SETTLING)


def rebuild(given: Given, out: Path) -> Curve:
    """The degrees of GM2 from scratch, for those who are there, some times on the way."""
    if not out.exists():
        out.write_text(json.dumps(_rebuilt(given)))
    return {name: np.asarray(values) for name, values in json.loads(out.read_text()).items()}


def _rebuilt(given: Given) -> dict[str, list[float]]:
    impossible = {one.position for one in find_impossible(given.interests, given.trace)}
    events = [event for position, event in enumerate(given.trace.events) if position not in impossible]
    absent = given.trace.absent_at_start()
    present = np.array([label not in absent for label in given.interests.nodes.tolist()], dtype=bool)
    maintainer = start_maintainer("shadow", only_nodes(given.interests, present), workload=given.interests)
    found: dict[str, list[float]] = {"event": [], "average": [], "maximum": []}
    for number, event in enumerate(events):
        maintainer.apply([event])
        if number % max(1, len(events) // REBUILDS) == 0 or number == len(events) - 1:
            degrees = design_overlay(maintainer.interests(), "gm2").degrees
            found["event"].append(number)
            found["average"].append(float(degrees.mean()))
            found["maximum"].append(int(degrees.max()))
    return found


def draw_degrees(found: Mapping[str, tuple[dict[tuple[str, int], Curve], Curve]]) -> None:
    figure = blank_figure(12.6, 3.4 * len(found))
    place = 0
    for name, (curves, fresh) in found.items():
        for column in ("average", "maximum"):
            place += 1
            axes = figure.add_subplot(len(found), 2, place)
            for (system, k), curve in curves.items():
                style = "-" if system == "omen" else ":"
                axes.plot(curve[column], style, color=f"C{k - 1}", label=f"k = {k}, {SYSTEMS[system]}")
            axes.plot(fresh["event"], fresh[column], "k--", label="GM2 from scratch")
            axes.set(title=name, xlabel="event of the trace", ylabel=f"{column} degree", ylim=(0, None))
            axes.grid(alpha=0.3)
            axes.legend(fontsize="x-small")
    save_figure(DEGREES, figure)


TABLE = """\
| | kept by | k | average degree, first event | median | last | maximum degree, first event | median | last | highest \
| links changed per event | topics not k-connected in the end |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def print_degrees(name: str, curves: Mapping[tuple[str, int], Curve], fresh: Curve, out: Mapping[Any, Path]) -> None:
    for (system, k), curve in curves.items():
        changed = (curve["added"].sum() + curve["removed"].sum()) / len(curve["added"])
        folder = str(out[system, k])
        interests = read_workload(folder).interests
        failing = len(check_overlay(interests, read_overlay(folder, interests), k=k).failing)
        print(f"| {name} | {SYSTEMS[system]} | {k} | {_degrees(curve)} | {changed:.1f} | {failing} |")
    print(f"| {name} | GM2 from scratch | 2 | {_degrees(fresh)} | | |", flush=True)


def _degrees(curve: Curve) -> str:
    average, top = curve["average"], curve["maximum"]
    shown = [f"{value:.2f}" for value in (average[0], statistics.median(average), average[-1])]
    shown += [f"{value:.0f}" for value in (top[0], statistics.median(top), top[-1], top.max())]
    return " | ".join(shown)


def draw_stalls(runs: Sequence[Mapping[str, Any]]) -> None:
    """For each run the stalls that nine in ten, 99 of 100 and all of the affected deliveries had, on a log scale."""
    figure = blank_figure(7.6, 3.6)
    axes = figure.add_subplot(1, 1, 1)
    labels = [f"{run['nodes']} nodes, k = {run['connectivity']}\n{run['affected']} affected" for run in runs]
    places = np.arange(len(runs))
    for offset, (key, said) in enumerate(
        (("affected_p50_ms", "half of the affected"), ("affected_p99_ms", "99%"), ("longest_ms", "longest"))
    ):
        axes.bar(places + 0.25 * (offset - 1), [max(float(run[key]), 1.0) for run in runs], 0.23, label=said)
    axes.set(ylabel="publication to delivery (ms)", yscale="log")
    axes.set_xticks(places, labels, fontsize="small")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="small")
    save_figure(STALLS, figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("degrees", "costs", "stalls"))
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--events", type=int, help="replay so many events of each trace (all)")
    parser.add_argument("--seed", type=int, default=7, help="of the worlds whose costs are counted (7)")
    parser.add_argument("--out", type=Path, default=Path("connectivity"))
    asked = parser.parse_args(argv)
    if asked.what == "costs":
        for line in measure_costs(asked.inputs, asked.seed):
            print(line, flush=True)
        return
    if asked.what == "stalls":
        lines = [line for path in asked.inputs for line in Path(path).read_text().splitlines()]
        draw_stalls([json.loads(line) for line in lines if line.startswith("{")])
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    found = {}
    print(TABLE)
    for each in asked.inputs:
        name, _, rest = each.partition("=")
        workload, _, churn = rest.partition(":")
        interests = read_workload(workload).interests
        given = Given(interests, Trace(read_churn(churn, interests).trace.events[: asked.events]))
        kept = {(s, k): asked.out / f"{Path(workload).name}-{s}-{k}" for s in SYSTEMS for k in (1, 2)}
        curves = {(s, k): replay(given, s, k, path) for (s, k), path in kept.items()}
        found[name] = (curves, rebuild(given, asked.out / f"{Path(workload).name}-gm2.json"))
        print_degrees(name, *found[name], kept)
    draw_degrees(found)


if __name__ == "__main__":
    main()

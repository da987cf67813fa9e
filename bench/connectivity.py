"""What connectivity 2 costs under churn, and what it spares subscribers: the figures of docs/connectivity.md.

python -m bench.connectivity degrees NAME=WORKLOAD:CHURN... --out DIR: replays each trace with the nodes themselves
(system omen) and with one that sees everything (shadow), for k = 1 and 2, and designs GM2 anew on the way. Replays that
are in DIR are not run again.

python -m bench.connectivity stalls FILE...: what `python -m tests.network.stalls` printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pyarrow.dataset import dataset

from bench.measure import ROOT
from omen.cli.main import main as omen
from omen.maintain import start_maintainer
from omen.report.canvas import blank_figure, save_figure
from omen.systems import design_overlay
from omen.tables.churn_table import read_churn
from omen.tables.parts import locate_table
from omen.tables.reading import read_workload

SYSTEMS = {"omen": "the nodes themselves", "shadow": "central"}
DEGREES = ROOT / "docs" / "figures" / "connectivity.svg"
STALLS = ROOT / "docs" / "figures" / "stalls.svg"
REBUILDS = 20

Curve = dict[str, npt.NDArray[np.float64]]


def replay(workload: str, churn: str, system: str, k: int, out: Path) -> Curve:
    """Average and maximum degree after each event."""
    if not out.exists():
        asked = ["replay", "--workload", workload, "--churn", churn, "--system", system, "--k", str(k)]
        assert omen([*asked, "--skip-impossible", "--out", str(out)]) == 0
    table = dataset(locate_table(out, "replay")).to_table(columns=["seq", "avg_degree", "max_degree"]).sort_by("seq")
    table = table.filter(pc.field("max_degree").is_valid())
    average, maximum = (table[column].to_numpy().astype(float) for column in ("avg_degree", "max_degree"))
    return {"average": average, "maximum": maximum}


def rebuild(workload: str, churn: str) -> Curve:
    """The degrees of GM2 from scratch, for those who are there, some times on the way."""
    interests = read_workload(workload).interests
    events = read_churn(churn, interests).trace.events
    maintainer = start_maintainer("shadow", interests)
    found: dict[str, list[float]] = {"event": [], "average": [], "maximum": []}
    for number, event in enumerate(events, start=1):
        maintainer.apply([event])
        if number % max(1, len(events) // REBUILDS) == 0:
            degrees = design_overlay(maintainer.interests(), "gm2").degrees
            found["event"].append(number)
            found["average"].append(float(degrees.mean()))
            found["maximum"].append(int(degrees.max()))
    return {name: np.asarray(values) for name, values in found.items()}


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


def print_degrees(name: str, curves: Mapping[tuple[str, int], Curve], fresh: Curve) -> None:
    for (system, k), curve in curves.items():
        mean, top = (statistics.fmean(curve[column]) for column in ("average", "maximum"))
        print(f"| {name} | {SYSTEMS[system]} | {k} | {mean:.2f} | {top:.1f} | {curve['maximum'].max():.0f} |")
    mean, top = (statistics.fmean(fresh[column]) for column in ("average", "maximum"))
    print(f"| {name} | GM2 from scratch | 2 | {mean:.2f} | {top:.1f} | {fresh['maximum'].max():.0f} |")


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
    parser.add_argument("what", choices=("degrees", "stalls"))
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("connectivity"))
    asked = parser.parse_args(argv)
    if asked.what == "stalls":
        lines = [line for path in asked.inputs for line in Path(path).read_text().splitlines()]
        draw_stalls([json.loads(line) for line in lines if line.startswith("{")])
        return
    found = {}
    for each in asked.inputs:
        name, _, rest = each.partition("=")
        workload, _, churn = rest.partition(":")
        kept = {(s, k): asked.out / f"{Path(workload).name}-{s}-{k}" for s in SYSTEMS for k in (1, 2)}
        curves = {(s, k): replay(workload, churn, s, k, path) for (s, k), path in kept.items()}
        found[name] = (curves, rebuild(workload, churn))
        print_degrees(name, *found[name])
    draw_degrees(found)


if __name__ == "__main__":
    main()

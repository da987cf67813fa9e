"""What keeping watch costs, how losses are noticed, how links come back, whether anything grows.

python -m bench reliability measures all that takes minutes; python -m bench.reliability PART one part:
costs, detector, links (--workload W), churn (--events N, --minutes M, --save FILE: goes on from there), remedies,
search (--kept FILE: counts of searches that `omen simulate --search --keep FILE` ran). The tables of
docs/reliability.md are filled too.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.measure import RESULTS, Row, machine_facts, peak_mb
from bench.reliability_page import fill_tables
from bench.searches import count_searches, open_remedies

TITLE = "Keeping watch"
INTRODUCTION = (
    "In the simulator, latency 0.5 to 5 ms. Costs are bytes of the wire form, per second and node, while nothing"
    " happens: heartbeats every second, gossip every second (up to eight while views are ready), audit every 20 s,"
    " labels renewed once in 60 periods, which is counted in. How losses are noticed: see docs/reliability.md."
)
RESULT = RESULTS / "reliability.json"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "detector.svg"
SIZES = ((40, 100, 20), (40, 1_000, 200), (20, 10_000, 5_000))
LOSSES = (0.0, 0.05, 0.1, 0.15, 0.2)
PAUSES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0)


def measure_costs(_: argparse.Namespace) -> list[Row]:
    from bench.reliability_runs import measure_cost

    rows = []
    for nodes, topics, size in SIZES:
        started, worked = time.perf_counter(), time.process_time()
        cost = measure_cost(nodes, topics, str(size), 1_260)
        details = {
            "nodes": nodes,
            "links per node": round(cost.links_a_node, 1),
            **{f"{kind} B/s": round(spent, 1) for kind, spent in cost.bytes_a_second.items()},
            "messages per second": round(sum(cost.messages_a_second.values()), 1),
        }
        wall, processor = time.perf_counter() - started, time.process_time() - worked
        rows.append(Row(f"cost, {size:,} topics per node", wall, processor, 1, details=details))
    return rows


def measure_detector(_: argparse.Namespace) -> list[Row]:
    from bench.reliability_runs import measure_detection, measure_pause

    rows = []
    for loss in LOSSES:
        started, worked = time.perf_counter(), time.process_time()
        found = [measure_detection(loss, seed=seed) for seed in range(3)]
        noticed = sorted(took for one in found for took in one.noticed_s)
        hours = sum(one.node_hours for one in found)
        details = {
            "losses noticed": len(noticed),
            "median s": round(statistics.median(noticed), 2),
            "95% s": round(noticed[int(0.95 * len(noticed))], 2),
            "longest s": round(noticed[-1], 2),
            "suspicions per node-hour": round(sum(one.suspicions for one in found) / hours, 2),
            "declared failed wrongly per node-hour": round(sum(one.rejoins for one in found) / hours, 2),
            "whole": all(one.whole for one in found),
        }
        wall, processor = time.perf_counter() - started, time.process_time() - worked
        rows.append(Row(f"detector, {loss:.0%} of messages lost", wall, processor, 3, details=details))
    for pause in PAUSES:
        started, worked = time.perf_counter(), time.process_time()
        calm, rough = measure_pause(pause), measure_pause(pause, 0.05)
        details = {
            "pauses": 10,
            "declared failed wrongly": calm.rejoins + rough.rejoins,
            "whole": calm.whole and rough.whole,
        }
        wall, processor = time.perf_counter() - started, time.process_time() - worked
        rows.append(Row(f"detector, a node stands still for {pause:g} s", wall, processor, 10, details=details))
    draw_figure(rows)
    return rows


def draw_figure(rows: list[Row]) -> None:
    from bench.detector_figure import draw_detector

    lossy, still = rows[: len(LOSSES)], rows[len(LOSSES) :]
    draw_detector(
        FIGURE,
        {loss: row.details for loss, row in zip(LOSSES, lossy, strict=True)},
        {pause: row.details for pause, row in zip(PAUSES, still, strict=True)},
    )


def measure_links(arguments: argparse.Namespace) -> list[Row]:
    from bench.reliability_runs import measure_dropped_links
    from omen.tables import read_workload
    from omen.workloads import generate_interests

    if arguments.workload is None:
        what = "synthetic 300 x 300"
        interests = generate_interests(300, 300, "zipf:0.8", "powerlaw:5:60", 1)
    else:
        what = arguments.name or Path(arguments.workload).name
        interests = read_workload(arguments.workload).interests
    started, worked = time.perf_counter(), time.process_time()
    healing = measure_dropped_links(interests)
    details = {name.replace("_", " "): value for name, value in asdict(healing).items()}
    details = {name: round(value, 2) if isinstance(value, float) else value for name, value in details.items()}
    wall, processor = time.perf_counter() - started, time.process_time() - worked
    return [Row(f"30% of links dropped at once, {what}", wall, processor, 1, peak_mb=peak_mb(), details=details)]


def measure_churn(arguments: argparse.Namespace) -> list[Row]:
    """Goes on from `--save` if that is there, for `--minutes`, and saves again."""
    from bench.reliability_runs import Churn, Sample

    save = Path(arguments.save) if arguments.save else None
    samples: list[Sample] = []
    if save is not None and save.exists():
        churn, samples = pickle.loads(save.read_bytes())
    else:
        churn = Churn(every=500_000)
    started = time.monotonic()
    for sample in churn.run(arguments.events - churn.done, arguments.each):
        samples.append(sample)
        print(json.dumps(asdict(sample)), flush=True)
        if save is not None and time.monotonic() - started > 60 * arguments.minutes:
            break
    if save is not None:
        save.write_bytes(pickle.dumps((churn, samples), protocol=5))
    return [_churn_row(samples)] if samples else []


def _churn_row(samples: list[Any]) -> Row:
    tenth = max(1, len(samples) // 10)
    early, late = samples[tenth : 3 * tenth] or samples, samples[-2 * tenth :]

    def mean(rows: list[Any], name: str) -> float:
        return statistics.fmean(getattr(row, name) for row in rows)

    details: dict[str, Any] = {"events": samples[-1].events, "split at a sample": sum(row.split > 0 for row in samples)}
    for name, what in (
        ("state_bytes", "state MB"),
        ("resident_mb", "resident MB"),
        ("max_degree", "maximum degree"),
        ("average_degree", "average degree"),
        ("seconds_an_event", "ms per event"),
        ("steps_an_event", "steps per event"),
    ):
        scale = {"state_bytes": 1e-6, "seconds_an_event": 1e3}.get(name, 1.0)
        details[what] = f"{scale * mean(early, name):.2f} then {scale * mean(late, name):.2f}"
    done = [0, *(row.events for row in samples)]
    spent = sum(row.seconds_an_event * (row.events - before) for row, before in zip(samples, done, strict=False))
    return Row("churn in one world of 200 nodes, early and late", spent, spent, 1, details=details)


PARTS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "costs": measure_costs,
    "detector": measure_detector,
    "links": measure_links,
    "churn": measure_churn,
    "remedies": open_remedies,
    "search": count_searches,
}
ON_ITS_PAGE = ("remedies", "search")
"""Parts that docs/reliability.md alone has a table of."""


def keep(part: str, rows: list[Row]) -> None:
    """Put the rows of one part in the place of its former ones."""
    RESULTS.mkdir(exist_ok=True)
    found = json.loads(RESULT.read_text()) if RESULT.exists() else {"parts": {}}
    found["parts"][part] = [asdict(row) for row in rows]
    shown = [name for name in PARTS if name not in ON_ITS_PAGE]
    ordered = [row for name in shown for row in found["parts"].get(name, ())]
    found.update(title=TITLE, introduction=INTRODUCTION, machine=machine_facts(), rows=ordered)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    fill_tables(found["parts"])


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reliability", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (costs detector links)")
    parser.add_argument("--workload", metavar="W", help="whose links are dropped (a synthetic one)")
    parser.add_argument("--name", metavar="TEXT", help="what to call it")
    parser.add_argument("--events", type=int, default=50_000, help="of churn (50000)")
    parser.add_argument("--each", type=int, default=500, help="a sample after so many (500)")
    parser.add_argument("--minutes", type=float, default=7.0, help="at most, then save (7)")
    parser.add_argument("--save", metavar="FILE", help="where churn goes on from")
    parser.add_argument("--kept", metavar="[NAME=]FILE", nargs="*", default=[], help="what searches have kept")
    return parser.parse_args(arguments)


def measure(arguments: list[str] | None = None) -> None:
    wanted = parse(arguments or [])
    for part in wanted.parts or ("costs", "detector", "links"):
        rows = PARTS[part](wanted)
        for row in rows:
            print(row.what, row.details, flush=True)
        keep(part, rows)


if __name__ == "__main__":
    measure(sys.argv[1:])

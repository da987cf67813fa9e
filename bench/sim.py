"""The simulator: how fast its event loop is, and what a replay of a real workload by OMen's nodes takes.

python -m bench sim, or python -m bench.sim.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import ROOT, Row, machine_facts, peak_mb, run_apart, write_result

TITLE = "The simulator"
INTRODUCTION = (
    "Single process. The event loop by itself, with nodes that do nothing and with nodes that only answer. Then what"
    " `omen replay --system omen` does: Facebook 1K under the whole Google trace of its sample, lambda 5, L 3, judged"
    " after every event, from reading the tables to the last verdict, warm-up of the views included."
)
DATA = Path(os.environ.get("OMEN_DATA", ROOT.parent / "shared" / "data"))
EDGES, MACHINES = "facebook_combined.txt.gz", "google2011_machine_events.csv.gz"
EVENTS = 500_000
RATE = 100_000  # events per second to reach, with empty handlers


class Silent:
    """A node that does nothing."""

    def start(self, now: int) -> Sequence[Any]:
        return ()

    def handle(self, event: Any, now: int) -> Sequence[Any]:
        return ()


class Echo(Silent):
    """A node that answers every message with one."""

    def handle(self, event: Any, now: int) -> Sequence[Any]:
        from omen.protocol.events import Send

        return (Send(event.sender, "", event.message),)


def run_loop(core: type[Silent]) -> dict[str, Any]:
    """Messages to nodes of this kind, put in the queue and taken out again."""
    from omen.protocol.events import Received
    from omen.protocol.messages.overlay import LinkSeen
    from omen.sim.world import World

    world = World(1)
    for node in range(1000):
        world.add(node, core())
    draw = random.Random(1)
    waiting = EVENTS if core is Silent else 10_000
    targets = [(draw.randrange(1000), draw.randrange(1000), draw.randrange(1_000_000)) for _ in range(waiting)]
    message = LinkSeen()
    started = time.process_time()
    for node, sender, delay in targets:
        world.tell(node, Received(sender, message), delay)
    while world.processed < EVENTS:
        world.run_until(world.now + 1000)
    return {"events": world.processed, "seconds": time.process_time() - started}


def run_replay() -> dict[str, Any]:
    """Facebook 1K, the whole trace, judged after every event."""
    import numpy as np

    from omen.systems.replay import NO_COUNT, replay
    from omen.tables import read_churn, read_workload

    with tempfile.TemporaryDirectory(prefix="omen-bench-") as folder:
        make_inputs(Path(folder))
        wall, worked = time.perf_counter(), time.process_time()
        interests = read_workload(f"{folder}/W").interests
        trace = read_churn(f"{folder}/C", interests).trace
    found = replay(interests, trace, "omen", verify="every")
    columns = {name: values[values != NO_COUNT] for name, values in found.columns.items()}
    handled = found.columns["handled_s"]
    return {
        "wall_s": time.perf_counter() - wall,
        "processor_s": time.process_time() - worked,
        "peak_mb": peak_mb(),
        "events": len(trace),
        "messages": int(columns["messages"].sum()) / len(trace),
        "bytes": int(columns["bytes"].sum()) / len(trace),
        "handled_s": float(np.nanmedian(handled)),
        "judged": found.judged,
        "broken": len(found.splits),
        "maximum": int(found.overlay.degrees.max()),
        "average": float(found.overlay.degrees.mean()),
    }


def make_inputs(folder: Path) -> None:
    """The sample of users, and the events of as many machines."""
    omen = str(Path(sys.executable).parent / "omen")
    sample = ["--edges", str(DATA / EDGES), "--undirected", "--nodes", "1000", "--seed", "7"]
    churn = ["--machine-events", str(DATA / MACHINES), "--workload", str(folder / "W"), "--seed", "7"]
    for command in (
        ["workload", "social", *sample, "--out", str(folder / "W")],
        ["churn", "google", *churn, "--out", str(folder / "C")],
    ):
        subprocess.run([omen, *command], check=True, capture_output=True, cwd=ROOT)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "silent": lambda: run_loop(Silent),
    "echo": lambda: run_loop(Echo),
    "replay": run_replay,
}


def measure_loop() -> Iterator[Row]:
    for case, what, target in (
        ("silent", "Event loop, empty handlers", EVENTS / RATE),
        ("echo", "Event loop, every message answered and its bytes counted", None),
    ):
        runs = sorted((run_apart("bench.sim", "--case", case) for _ in range(3)), key=lambda run: float(run["seconds"]))
        seconds = runs[1]["seconds"]
        details = {"events": runs[1]["events"], "events per second": round(runs[1]["events"] / seconds)}
        yield Row(what, seconds, seconds, 3, target, None, None, details)


def measure_replay() -> Iterator[Row]:
    found = run_apart("bench.sim", "--case", "replay")
    details = {
        "churn events": found["events"],
        "messages per event": round(found["messages"]),
        "bytes per event": round(found["bytes"]),
        "instants judged": found["judged"],
        "of these broken": found["broken"],
        "D at the end": found["maximum"],
        "d at the end": round(found["average"], 2),
        "median time to mend": f"{found['handled_s'] * 1000:.0f} ms of virtual time",
    }
    what = "`omen replay --system omen`, Facebook 1K"
    yield Row(what, found["wall_s"], found["processor_s"], 1, 600.0, found["peak_mb"], 2048.0, details)


def measure() -> None:
    """Everything, kept as bench/results/sim.json."""
    before = machine_facts()
    introduction = INTRODUCTION
    missing = [name for name in (EDGES, MACHINES) if not (DATA / name).is_file()]
    if missing:
        introduction += f" Not measured here: the replay, since {' and '.join(missing)} are not in OMEN_DATA."
    rows = []
    for row in (*measure_loop(), *(() if missing else measure_replay())):
        rows.append(row)
        print(f"{row.what}: {row.wall_s:.3f} s {row.details}", flush=True)
    write_result("sim", TITLE, introduction, before, rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sim", description=__doc__)
    parser.add_argument("--case", choices=tuple(CASES), help="run one case in this process and print it as JSON")
    case = parser.parse_args().case
    if case:
        print(json.dumps(CASES[case]()))
    else:
        measure()
    return 0


if __name__ == "__main__":
    sys.exit(main())

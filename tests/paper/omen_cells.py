"""What the claims on OMen are made from, in pieces ("cells") of minutes: replays, views and backup sets.

A finished cell is kept as a JSON file in a folder, so that a measurement of hours can be made piece by piece, and made
again from what is there. Inputs are made from the raw graphs and the cluster trace of a data folder, with the commands
anybody would use (Spark).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omen.churn import Join, Trace
from omen.interests import Interests
from omen.protocol.config import Config
from omen.runs import design_overlay
from omen.runs.checkpoint import Checkpoint
from omen.runs.replay import Verify, replay
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Network, World

Cell = dict[str, Any]

EDGES = {
    "fb1k": ("facebook_combined.txt.gz", "--undirected", "1000"),
    "higgs1k": ("higgs-social_network.prefix.edgelist.gz", "--directed", "--subscribers-only", "1000"),
    "slashdot10k": ("soc-Slashdot0902.txt.gz", "--undirected", "10000"),
}
MACHINES = "google2011_machine_events.csv.gz"
SEED = "7"
COLUMNS = ("max_degree", "avg_degree", "repair_s", "handled_s", "messages", "bytes", "shadow_size", "edges_added")


class NotThere(Exception):
    """A cell is asked for that is not in the folder, and must not be made now."""


@dataclass
class Store:
    """Cells by name. `make` false: those that are missing are an error; `data` has the raw inputs.

    `events`: replays are made of the first so many events of a trace; one of the whole is taken where there is one.
    """

    folder: Path
    data: Path | None = None
    make: bool = True
    events: int | None = None
    known: dict[str, Cell] = field(default_factory=dict)

    def get(self, name: str, compute: Callable[[], Cell]) -> Cell:
        if name not in self.known:
            path = self.folder / f"{name}.json"
            if path.exists():
                self.known[name] = json.loads(path.read_text(encoding="utf-8"))
            elif self.make:
                print(f"{name}: measuring", flush=True)
                started = time.process_time()
                found = compute() | {"processor_s": round(time.process_time() - started, 1)}
                self.folder.mkdir(parents=True, exist_ok=True)
                path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
                path.with_suffix(".part").replace(path)
                self.known[name] = found
            else:
                raise NotThere(name)
        return self.known[name]

    def replay(self, name: str, compute: Callable[[int | None, Path], Cell]) -> Cell:
        """A replay, of the whole trace or of its beginning; `compute` is told how much, and where to keep notes."""
        if self.events is None or (self.folder / f"{name}.json").exists():
            return self.get(name, lambda: compute(None, self.folder / f"{name}.notes"))
        part = f"{name}-first{self.events}"
        return self.get(part, lambda: compute(self.events, self.folder / f"{part}.notes"))

    def workload(self, name: str) -> Interests:
        from omen.tables import read_workload

        folder = self.folder / "inputs" / name
        if not folder.exists():
            file, *how, nodes = EDGES[name]
            edges = str(self._raw(file))
            self._run("workload", "social", "--edges", edges, *how, "--nodes", nodes, "--seed", SEED, "--out", folder)
        return read_workload(folder).interests

    def trace(self, name: str) -> tuple[Interests, Trace]:
        """A workload and the whole Google trace for its nodes."""
        from omen.tables import read_churn

        interests = self.workload(name)
        folder, machines = self.folder / "inputs", str(self._raw(MACHINES))
        out = folder / f"{name}-churn"
        if not out.exists():
            workload = str(folder / name)
            self._run(
                "churn", "google", "--machine-events", machines, "--workload", workload, "--seed", SEED, "--out", out
            )
        return interests, read_churn(out, interests).trace

    def _raw(self, file: str) -> Path:
        return (self.data or Path("data")) / file

    def _run(self, *words: object) -> None:
        if not self.make:
            raise NotThere(str(words[-1]))
        (self.folder / "inputs").mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "omen.cli", *map(str, words)], check=True)


def replay_cell(
    interests: Interests,
    trace: Trace,
    system: str,
    verify: Verify = "every",
    notes: Path | None = None,
    **options: Any,
) -> Cell:
    """A whole replay in columns. A number about an overlay that is not topic-connected would mean nothing.

    `notes`: where it writes down how far it is; killed, it goes on from there.
    """
    absent = trace.absent_at_start()
    present = [label not in absent for label in interests.nodes.tolist()]
    assert all(present), "the paper starts with all nodes present"
    first = design_overlay(interests, "low-oda")
    checkpoint = Checkpoint(str(notes), 60) if notes else None
    done = replay(interests, trace, system, first, verify=verify, checkpoint=checkpoint, **options)
    if checkpoint:
        checkpoint.remove()
    assert not done.broken, f"{system} {options}: split after event {done.broken[0][0]}"
    return {
        "system": system,
        "options": {name: str(value) for name, value in done.options.items()},
        "events": len(done.events),
        "joins": [isinstance(event, Join) for event in done.events],
        "start": {"max_degree": int(first.degrees.max()), "avg_degree": float(first.degrees.mean())},
        **{name: _plain(done.columns[name]) for name in COLUMNS},
    }


def _plain(column: Any) -> list[Any]:
    """Numbers that were not measured become None."""
    if column.dtype.kind == "f":
        return [None if np.isnan(value) else float(value) for value in column]
    return [None if value == -1 else int(value) for value in column]


def views_cell(interests: Interests, coverage: int, resilience: int, rounds: int, seed: int = 0) -> Cell:
    """The sizes of all local views as gossip goes on, without churn: B and N of the L predecessors (Alg. 4)."""
    config = Config(coverage=coverage, resilience=resilience)
    world = World(seed, Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000)))
    population = Population(world, config, lambda *_: [])
    population.set_up(interests, design_overlay(interests, "low-oda"))
    marks = sorted({1, 2, 5, 10, 20, 50, rounds})
    sizes: dict[str, list[int]] = {}
    for mark in (mark for mark in marks if mark <= rounds):
        world.run_until(mark * config.gossip_period)
        sizes[str(mark)] = [len(population.cores[node].views.get_view()) for node in population.members()]
    ready = [
        all(core.views.is_ready(node) for node in core.views.shadows)
        for core in (population.cores[node] for node in population.members())
    ]
    return {"sizes": sizes, "ready": sum(ready) / len(ready), "messages": sum(world.messages.values())}


def rebuild_cell(interests: Interests, times: int) -> Cell:
    """The processor time that Low-ODA from scratch takes, compiled code loaded beforehand."""
    design_overlay(Interests.from_pairs([(0, 0), (1, 0)]), "low-oda")
    seconds = []
    for _ in range(times):
        before = time.process_time()
        design_overlay(interests, "low-oda")
        seconds.append(time.process_time() - before)
    return {"rebuild_s": seconds}


def first_events(cell: Cell, events: int) -> Cell:
    """A replay as it stood after so many events."""
    return {name: value[:events] if isinstance(value, list) else value for name, value in cell.items()}


def mean_of(cell: Cell, name: str) -> float:
    """The mean of a column over the events that have it."""
    return float(np.mean([value for value in cell[name] if value is not None]))

"""How long subscribers wait when the node with most links ends: real processes, one lost after the other under load.

    python -m tests.network.stalls --nodes 16 --times 20 --connectivity 2
    python -m tests.network.stalls --nodes 16 --times 10 --connectivity 1 --freeze 12

Each process writes what it publishes and delivers by one clock. A delivery is *affected* by a loss if the lost node
carried its topic, it was published by another node at most 0.1 s before the loss or WINDOW_S after it, and it took over
CALM_TIMES the 99th percentile of calm times. At connectivity 2 the next node is lost once none cuts a topic any more:
two losses before that are what connectivity 3 would be for. How long that took is printed. It ends with 1 where
something was lost or came twice, or where 99% of the affected took longer than the goal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omen.net.settings import LIVE, NodeConfig
from omen.net.state import read_states

from .chaos import Chaos, Plan
from .verdict import judge

WINDOW_S = 12.0
RESTORED_WITHIN_S = 30.0
BEFORE_S = 0.1
CALM_S = 4.0
CALM_TIMES = 5
LEAST_US = 20_000
ALGORITHMS = {1: "low-oda", 2: "low-oda-2"}
FROZEN_GOALS_MS = {1: 8_000.0, 2: 1_000.0}
KILLED_GOAL_MS = 1_000.0
SPARED_GOALS_MS = {True: 150.0, False: 300.0}
"""At connectivity 2, of a process that was killed: up to 16 processes, and more."""


@dataclass
class Loss:
    """A node that was ended or frozen, when, by the clock of the logs, and the topics it carried.

    `longest`: of the deliveries that followed, in microseconds, and `what` that was.
    """

    node: str
    at: int
    topics: frozenset[str]
    longest: int = 0
    what: str = ""

    def note(self, took: int, what: str) -> None:
        if took > self.longest:
            self.longest, self.what = took, what


class Stalls(Chaos):
    """The cluster of an end-to-end run; lost is always the node with most links, and a newcomer takes its place."""

    def __init__(self, folder: Path, plan: Plan, connectivity: int, freeze_s: float) -> None:
        super().__init__(folder, plan)
        self._connectivity = connectivity
        self.algorithm = ALGORITHMS[connectivity]
        self._freeze_s = freeze_s
        self.losses: list[Loss] = []
        self.restored_s: list[float] = []

    def config(self, name: str, topics: tuple[str, ...]) -> NodeConfig:
        plain = super().config(name, topics)
        return replace(plain, protocol=replace(LIVE, connectivity=self._connectivity))

    def go(self) -> None:
        self.start()
        try:
            self.wait_until_repaired()
            time.sleep(CALM_S)
            for _ in range(self.plan.kills):
                self._lose_one()
            self.finish()
        finally:
            self.end_all()

    def _wait_until_dispensable(self) -> None:
        """Until every node is, by what all say of their links, or until it should long have been so."""
        begun = time.monotonic()
        while self.cut_nodes(self.look()) and time.monotonic() - begun < 2 * RESTORED_WITHIN_S:
            time.sleep(0.2)
        self.restored_s.append(round(time.monotonic() - begun, 1))

    def _lose_one(self) -> None:
        if self._connectivity > 1:
            self._wait_until_dispensable()
        time.sleep(CALM_S)
        seen = self.look()
        name = max(seen, key=lambda name: (len(seen[name]["links"]), name))
        topics = frozenset(topic["topic"] for topic in seen[name]["topics"])
        process = self.alive[name]
        self.losses.append(Loss(name, time.monotonic_ns() // 1000, topics))
        if self._freeze_s:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self._freeze_s)
        self.alive.pop(name)
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
        self.dead.append(process.config)
        self.told.kills += 1
        self.wait_until_repaired()
        self._replace(process.config)
        self.wait_until_repaired()

    def _replace(self, config: NodeConfig) -> None:
        """By a node of another name: the same is proved to have ended at most once in ten minutes."""
        states = {state["name"]: state for state in read_states(self.folder / "nodes")}
        contacts = sorted(self.alive)[:2]
        join = tuple(states[name]["address"] for name in contacts)
        self._fork(replace(config, name=f"m{self.told.kills}", join=join))


Stream = tuple[str, str, str, str]


Published = dict[Stream, tuple[int, str]]


def read_logs(folder: Path) -> tuple[Published, list[tuple[Stream, int, str]], dict[str, int]]:
    """When each publication was published, and by whom; each delivery, when and where; when each node began."""
    published: dict[Stream, tuple[int, str]] = {}
    delivered: list[tuple[Stream, int, str]] = []
    began: dict[str, int] = {}
    for path in sorted(folder.glob("*.log")):
        me = name = ""
        for line in path.read_text().splitlines():
            match line.split():
                case [at, "I", node, _, who]:
                    me, name = node, who
                    began[name] = int(at)
                case [at, "P", topic, incarnation, sequence]:
                    published[topic, me, incarnation, sequence] = (int(at), name)
                case [at, "D", topic, publisher, incarnation, sequence]:
                    delivered.append(((topic, publisher, incarnation, sequence), int(at), name))
    return published, delivered, began


def delays(folder: Path, losses: Iterable[Loss]) -> tuple[list[int], list[int]]:
    """How long deliveries took, in microseconds: of calm times, and of what followed the losses on their topics."""
    published, delivered, began = read_logs(folder)
    calm: list[int] = []
    touched: list[int] = []
    known = tuple(losses)
    for stream, at, name in delivered:
        if stream not in published or published[stream][1] == name:
            continue
        said, publisher = published[stream]
        if said < began[name]:
            continue  # a newcomer is given what another piece of a topic keeps, however old
        near = [loss for loss in known if -BEFORE_S <= (said - loss.at) / 1e6 <= WINDOW_S]
        if not near:
            calm.append(at - said)
        else:
            concerned = [loss for loss in near if stream[0] in loss.topics and loss.node not in (name, publisher)]
            if concerned:
                touched.append(at - said)
            for loss in concerned:
                loss.note(at - said, f"{publisher} to {name}, {(said - loss.at) / 1e3:.0f} ms after")
    return sorted(calm), sorted(touched)


def quantile(values: list[int], share: float) -> float:
    """In milliseconds."""
    return values[min(len(values) - 1, int(share * len(values)))] / 1000 if values else 0.0


def summary(calm: list[int], touched: list[int]) -> dict[str, Any]:
    bound = max(LEAST_US, int(CALM_TIMES * 1000 * quantile(calm, 0.99)))
    affected = [delay for delay in touched if delay > bound]
    return {
        "calm_p50_ms": quantile(calm, 0.5),
        "calm_p99_ms": quantile(calm, 0.99),
        "deliveries": len(touched),
        "p99_ms": quantile(touched, 0.99),
        "affected": len(affected),
        "affected_share": round(len(affected) / max(len(touched), 1), 5),
        "affected_p50_ms": quantile(affected, 0.5),
        "affected_p99_ms": quantile(affected, 0.99),
        "longest_ms": quantile(touched, 1.0),
    }


def goal_ms(nodes: int, connectivity: int, freeze: float) -> float:
    """Within what 99% of the affected deliveries are to come."""
    if freeze:
        return FROZEN_GOALS_MS[connectivity]
    return KILLED_GOAL_MS if connectivity == 1 else SPARED_GOALS_MS[nodes <= 16]


def _words() -> Iterator[tuple[str, type, Any]]:
    yield from (("--nodes", int, 16), ("--topics", int, 12), ("--times", int, 20), ("--connectivity", int, 2))
    yield from (("--rate", float, 200.0), ("--freeze", float, 0.0), ("--seed", int, 7))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for word, kind, default in _words():
        parser.add_argument(word, type=kind, default=default)
    asked = parser.parse_args()
    plan = Plan(asked.nodes, asked.topics, kills=asked.times, rate=asked.rate, change_s=0.0, seed=asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = Stalls(Path(folder), plan, asked.connectivity, asked.freeze)
        run.go()
        verdict = judge((Path(folder) / "logs").glob("*.log"))
        found = summary(*delays(Path(folder) / "logs", run.losses))
    found |= {"nodes": asked.nodes, "connectivity": asked.connectivity, "times": len(run.losses)}
    found |= {"lost": verdict.lost, "duplicated": verdict.duplicated}
    found["restored_s"] = run.restored_s
    found["longest_of_each"] = [f"{loss.node} {loss.longest / 1e3:.0f} ms: {loss.what}" for loss in run.losses]
    found["goal_ms"] = goal = goal_ms(asked.nodes, asked.connectivity, asked.freeze)
    print(json.dumps(found))
    return int(bool(verdict.lost or verdict.duplicated) or found["affected_p99_ms"] > goal)


if __name__ == "__main__":
    sys.exit(main())

"""A node leaves at the moment at which another crashes, again and again, with the audit off: does a topic stay split?

    python -m tests.network.leave_and_crash --rounds 200

Real processes on loopback. In each round one is killed, and another is told to leave up to 100 ms later: its neighbour,
the next on the ring (so that one coordinator repairs both), or any. When no living node knows of a loss any more, the
links that both ends name must connect every topic. Then two newcomers take their places.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omen.net.settings import LIVE, NodeConfig
from omen.net.state import read_states

from .chaos import Chaos, Plan
from .verdict import Verdict, judge

PAIRS = ("linked", "in a row", "any")
OFFSETS_S = (0.0, 0.01, 0.035, 0.1)
"""How long after the crash the other is told to leave; 35 ms: as in world 900240."""
PATIENCE_S = 60.0
LOOK_S = 0.1


@dataclass
class Told:
    """What was done, and what came of it. `repairs_s`: from the crash until nothing was left to repair."""

    rounds: int = 0
    by_pair: Counter[str] = field(default_factory=Counter)
    repairs_s: list[float] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    unrepaired: int = 0
    unlinked: int = 0


class LeaveAndCrash(Chaos):
    """The cluster of an end-to-end run, with other things done to it."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        super().__init__(folder, plan)
        self.came = Told()
        self._gone: set[str] = set()

    def config(self, name: str, topics: tuple[str, ...]) -> NodeConfig:
        return replace(super().config(name, topics), protocol=replace(LIVE, audit=False))

    def go(self, rounds: int) -> Verdict:
        for part in ("logs", "nodes", "trouble"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self.start()
        try:
            self._wait_until_calm()
            for _ in range(rounds):
                self._round()
            self.finish()
        finally:
            for process in self.alive.values():
                os.kill(process.pid, signal.SIGQUIT)
            self.wait_for_end()
        return judge((self.folder / "logs").glob("*.log"))

    def _round(self) -> None:
        told = self.came
        pair = PAIRS[told.rounds % len(PAIRS)]
        offset = OFFSETS_S[told.rounds // len(PAIRS) % len(OFFSETS_S)]
        crashed, leaving = self._choose(pair)
        gone = [self.alive.pop(crashed), self.alive.pop(leaving)]
        begun = time.monotonic()
        os.kill(gone[0].pid, signal.SIGKILL)
        time.sleep(offset)
        os.kill(gone[1].pid, signal.SIGTERM)
        self._gone |= {crashed, leaving}
        for process in gone:
            os.waitpid(process.pid, 0)
        told.rounds += 1
        told.by_pair[pair] += 1
        what = f"round {told.rounds}: {leaving} left {offset * 1000:.0f} ms after {crashed} crashed ({pair})"
        seen = self._wait_until_calm()
        took = time.monotonic() - begun
        told.repairs_s.append(took)
        if seen is None:
            told.unrepaired += 1
            seen = self.look()
        if split := split_topics(seen):
            told.split.append(f"{what}: {', '.join(split)}")
        self._replace([process.config for process in gone])
        if self._wait_until_calm() is None:
            told.unlinked += 1
        trouble = f", split: {', '.join(split)}" if split else ""
        print(f"{what}, repaired in {took:.2f} s{trouble}", file=sys.stderr, flush=True)

    def _choose(self, pair: str) -> tuple[str, str]:
        """Who crashes, and who leaves."""
        seen = self.look()
        crashed = self.random.choice(sorted(seen))
        near = seen[crashed]["links"] if pair == "linked" else seen[crashed]["successors"][:1]
        others = [name for name in near if name in seen] if pair != "any" else []
        return crashed, self.random.choice(sorted(others or seen.keys() - {crashed}))

    def _wait_until_calm(self) -> dict[str, dict[str, Any]] | None:
        """What all nodes say once none has a loss to repair or a peer that is gone; None if that does not come."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            seen = self.look()
            calm = [node for node in seen.values() if node["status"] == "ok" and not node["losses"]]
            known = {name for node in calm for side in ("predecessors", "successors", "links") for name in node[side]}
            if len(calm) == len(self.alive) and self._gone.isdisjoint(known):
                return seen
            time.sleep(LOOK_S)
        return None

    def _replace(self, configs: list[NodeConfig]) -> None:
        """By nodes of other names: one of the same is proved to have ended at most once in ten minutes."""
        states = {state["name"]: state for state in read_states(self.folder / "nodes")}
        for config in configs:
            contacts = self.random.sample(sorted(name for name in self.alive if name in states), 2)
            join = tuple(states[name]["address"] for name in contacts)
            self._fork(replace(config, name=f"m{self._count}", join=join))


def split_topics(seen: dict[str, dict[str, Any]]) -> list[str]:
    """The topics that links named by both ends do not connect."""
    subscribers: dict[str, set[str]] = {}
    for name, node in seen.items():
        for topic in node["topics"]:
            subscribers.setdefault(topic["topic"], set()).add(name)
    agreed = {
        name: {other for other in node["links"] if other in seen and name in seen[other]["links"]}
        for name, node in seen.items()
    }
    split = []
    for topic, members in sorted(subscribers.items()):
        reached, edge = set(), [min(members)]
        while edge:
            name = edge.pop()
            if name not in reached:
                reached.add(name)
                edge += agreed[name] & members
        if reached != members:
            split.append(topic)
    return split


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--topics", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rate", type=float, default=6.0, help="publications a second, all nodes together")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args(argv)
    plan = Plan(asked.nodes, asked.topics, rate=asked.rate, change_s=0.0, seed=asked.seed)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = LeaveAndCrash(Path(folder), plan)
        verdict = run.go(asked.rounds)
    told, took = run.came, sorted(run.came.repairs_s)
    print(
        f"{told.rounds} rounds in {time.monotonic() - begun:.0f} s, {dict(told.by_pair)};"
        f" repaired in {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (longest);"
        f" not repaired {told.unrepaired}, newcomers not linked {told.unlinked}; a topic split after {len(told.split)}"
    )
    print("\n".join([*told.split, *verdict.lines(), *verdict.examples]))
    return 1 if told.split or told.unrepaired or told.unlinked or verdict.lost else 0


if __name__ == "__main__":
    sys.exit(main())

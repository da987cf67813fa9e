"""Twenty nodes, a thousand publications per second in all, half of them on one topic, and a kill every ten seconds.

    python -m network.busy_chaos --minutes 10 --kills 60
    python -m network.busy_chaos --minutes 2 --kills 12 --window-bytes 200000

Whoever is killed comes back under its name. What counts is what applications were given, as in `network.busy`: each
keeps count of its own streams, for a line per delivery would be more work than the deliveries.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from network.busy import ENDLESS, Fleet, Stream, Verdict, add_up
from omen.net.settings import LIVE

HOT = "hot"
PATIENCE_S = 30.0


@dataclass
class Plan:
    """The size of a run. `window_bytes`: for the windows of a node; None: the default."""

    nodes: int = 20
    rate: float = 1000.0
    seconds: float = 600.0
    kills: int = 60
    payload: int = 100
    topics: int = 10
    window_bytes: int | None = None
    seed: int = 1


def say(what: str) -> None:
    print(f"{time.strftime('%T')} {what}", file=sys.stderr, flush=True)


class Chaos:
    """Everybody wants the hot topic and three of the others, and publishes on what it wants, every other time on it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)
        names = [f"n{number}" for number in range(plan.nodes)]
        others = [f"t{number}" for number in range(plan.topics)]
        self.topics = {name: (HOT, *self.random.sample(others, 3)) for name in names}
        settings: dict[str, Any] = {}
        if plan.window_bytes is not None:
            small = replace(LIVE.dissemination, total_window_bytes=plan.window_bytes)
            settings["protocol"] = replace(LIVE, dissemination=small)
        self.fleet = Fleet(self.topics, **settings)
        self.lacking: list[str] = []

    def run(self) -> Verdict:
        plan, fleet = self.plan, self.fleet
        verdict = Verdict("chaos", plan.rate, plan.payload, plan.topics + 1)
        try:
            names = list(self.topics)
            for first in range(0, len(names), 5):
                fleet.start(*names[first : first + 5])
                say(f"{first + 5} nodes")
            time.sleep(3.0)
            for name in names:
                self.publish(name)
            begun = time.monotonic()
            for kill in range(plan.kills):
                time.sleep(max(0.0, begun + (kill + 0.5) * plan.seconds / plan.kills - time.monotonic()))
                victim = self.random.choice(sorted(fleet.processes))
                fleet.kill(victim)
                time.sleep(1.0)
                fleet.start(victim)
                self.publish(victim)
                say(f"kill {kill + 1}: {victim}")
            time.sleep(max(0.0, begun + plan.seconds - time.monotonic()))
            for name in sorted(fleet.processes):
                fleet.ask(name, "stop")
            self.judge(verdict)
        finally:
            fleet.close()
        return verdict

    def publish(self, name: str) -> None:
        hot, *others = self.topics[name]
        turns = [topic for other in others for topic in (hot, other)]
        self.fleet.tell(name, "rate", self.plan.rate / self.plan.nodes, self.plan.payload, ENDLESS, turns)

    def judge(self, verdict: Verdict) -> None:
        """What survivors published, at all survivors that want it: given or told, from their first on."""
        ended = time.monotonic()
        while True:
            reports = {name: self.fleet.ask(name, "report") for name in sorted(self.fleet.processes)}
            missing = self.missing(reports)
            if not missing or time.monotonic() - ended > PATIENCE_S:
                break
            time.sleep(0.2)
        for line in self.lacking:
            say(line)
        verdict.edge_s = round(time.monotonic() - ended, 2)
        verdict.lost = missing
        late: list[float] = []
        for report in reports.values():
            verdict.published += sum(report["published"].values())
            for stream in report["streams"].values():
                verdict.delivered += stream["delivered"]
                verdict.told += stream["told"]
                verdict.longest_s = round(max(verdict.longest_s, stream["longest_s"]), 2)
            add_up(verdict, report)
            late += report["late_ms"]
        verdict.late_p99_ms = round(sorted(late)[int(len(late) * 0.99)], 1) if late else 0.0

    def missing(self, reports: dict[str, dict[str, Any]]) -> int:
        """The tail that has not come, and the beginning where the subscriber was there before the publisher.

        A subscriber that joined after the last publication of a stream, and was given none of it, lacks nothing.
        """
        count = 0
        self.lacking = []
        for source in reports.values():
            for topic, published in source["published"].items():
                for name, report in reports.items():
                    if topic not in self.topics[name]:
                        continue
                    runs = runs_of(source["me"], topic, report["streams"])
                    if not runs[0].first and report["began"] > source["ended"][topic]:
                        continue
                    lacks = published - runs[-1].last
                    lacks += sum(max(0, later.first - run.last - 1) for run, later in pairwise(runs))
                    if report["began"] < source["began"] and runs[0].first:
                        lacks += runs[0].first - 1
                    if lacks:
                        count += lacks
                        there = report["began"] - source["began"]
                        had = ", ".join(f"{run.first} to {run.last}" for run in runs) + f" of {published}"
                        self.lacking.append(f"{name} has {had} on {topic}/{source['me']}, began {there:.1f} s after it")
        return count + self.uneven(reports)

    def uneven(self, reports: dict[str, dict[str, Any]]) -> int:
        """What others were given of those that are gone, and a subscriber that was there neither got nor was told."""
        heard: dict[str, int] = {}
        for report in reports.values():
            for key, stream in report["streams"].items():
                heard[key] = max(heard.get(key, 0), stream["last"])
        living = {source["me"] for source in reports.values()}
        return sum(
            heard[key] - stream["last"]
            for report in reports.values()
            for key, stream in report["streams"].items()
            if key.partition("/")[2] not in living
        )


def runs_of(me: str, topic: str, streams: dict[str, dict[str, Any]]) -> list[Stream]:
    """What a subscriber has of one process: a stream for each of its incarnations, whose numbers go on."""
    node, _, began = me.partition("/")
    found: dict[int, Stream] = {}
    for key, stream in streams.items():
        wanted, publisher, incarnation = key.rsplit("/", 2)
        if (wanted, publisher) == (topic, node) and int(incarnation) >= int(began):
            found[int(incarnation)] = Stream(**stream)
    return [found[incarnation] for incarnation in sorted(found)] or [Stream()]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m network.busy_chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1000.0, help="publications per second, all nodes together")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--payload", type=int, default=100)
    parser.add_argument("--window-bytes", type=int, help="too small on purpose: everything missing must be told")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args(argv)
    plan = Plan(told.nodes, told.rate, told.minutes * 60, told.kills, told.payload)
    verdict = Chaos(replace(plan, window_bytes=told.window_bytes, seed=told.seed)).run()
    print(json.dumps(asdict(verdict)), flush=True)
    return 0 if verdict.is_kept else 1


if __name__ == "__main__":
    sys.exit(main())

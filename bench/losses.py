"""More losses at once than L: how often a topic stays split without the audit, and how long the audit takes to join it.

python -m bench.losses --worlds N: worlds of 30 nodes and 15 topics, with L + 1 and L + 2 crashes at once: of any nodes,
of nodes that follow each other on the ring, or of nodes that are linked. Prints the table of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass

from omen.protocol.events import NodeId, SplitTopicsLinked, Time
from omen.protocol.membership.ring import place_of
from omen.sim.running import Run
from omen.sim.scenario import BoundsSpec, ConfigSpec, Drawn, EventSpec, NetworkSpec, Scenario
from omen.sim.world import Heard, generator_for

NODES, TOPICS = 30, 15
PATIENCE_S = 20.0
WHICH = ("any nodes", "in a row", "linked")


@dataclass(frozen=True, slots=True)
class Losses:
    """What came of the worlds with so many crashes; `joined_s`: until all was connected, where the audit linked."""

    resilience: int
    over: int
    which: str
    worlds: int
    split: int
    joined_s: tuple[float, ...]
    never: int

    @property
    def row(self) -> str:
        times = self.joined_s
        shown = (f"{statistics.median(times):.1f}", f"{max(times):.1f}") if times else ("", "")
        what = f"L + {self.over} = {self.resilience + self.over}, {self.which}"
        return f"| {what} | {self.worlds} | {self.split} | {len(times)} | {shown[0]} | {shown[1]} | {self.never} |"


class AuditedRun(Run):
    """A run that counts how often the audit linked split topics."""

    linked = 0

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        self.linked += isinstance(heard, SplitTopicsLinked)
        super()._hear(node, heard, time)


def choose_nodes(seed: int, crashes: int, which: str) -> list[str]:
    random = generator_for(seed, "losses", which)
    names = sorted((f"n{number}" for number in range(1, NODES + 1)), key=place_of)
    if which == "in a row":
        first = random.randrange(NODES)
        return [names[(first + step) % NODES] for step in range(crashes)]
    if which == "any nodes":
        return random.sample(names, crashes)
    run = Run(Scenario(drawn=Drawn(NODES, TOPICS)), seed)
    run.set_up()
    labels = run.population.labels
    links = [{str(labels[one]), str(labels[other])} for one, other in run.population.links()]
    lost = [random.choice(names)]
    while len(lost) < crashes:
        around = {end for link in links if not link.isdisjoint(lost) for end in link} - set(lost)
        lost.append(random.choice(sorted(around or set(names) - set(lost))))
    return lost


def make_world(seed: int, resilience: int, lost: list[str], audit: bool) -> Scenario:
    return Scenario(
        f"{len(lost)} crashes at once",
        drawn=Drawn(NODES, TOPICS),
        config=ConfigSpec(resilience=resilience, coverage=1, gossip_ms=200.0, standby_timeout_ms=1500.0, audit=audit),
        network=NetworkSpec(latency_ms=(0.5, 5.0), detection_ms=(20.0, 200.0)),
        bounds=BoundsSpec(connected_s=400.0 if audit else PATIENCE_S, handled_s=0.0, one_sided_s=90.0, idle_s=400.0),
        until_s=None if audit else PATIENCE_S + 5.0,
        events=tuple(EventSpec(at=5.0, crash=name) for name in lost),
    )


def measure(resilience: int, over: int, which: str, worlds: int) -> Losses:
    split, times, never = 0, [], 0
    for seed in range(worlds):
        lost = choose_nodes(seed, resilience + over, which)
        split += bool(Run(make_world(seed, resilience, lost, audit=False), seed).go().split)
        run = AuditedRun(make_world(seed, resilience, lost, audit=True), seed)
        outcome = run.go()
        never += bool(outcome.split)
        if run.linked and not outcome.split:
            times.append(max(outcome.restored) / 1e6)
    return Losses(resilience, over, which, worlds, split, tuple(times), never)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--resilience", type=int, nargs="*", default=(1, 2))
    arguments = parser.parse_args()
    for which in reversed(WHICH):
        for resilience in arguments.resilience:
            for over in (1, 2):
                print(measure(resilience, over, which, arguments.worlds).row, flush=True)


if __name__ == "__main__":
    main()

"""More losses at once than L: how often a topic stays split without the audit, and how long the audit takes to join it.

python -m bench.losses --worlds N: worlds of 30 nodes and 15 topics, L + 0, 1 and 2 crashes at one moment, of any nodes
or of nodes that follow each other on the ring. Prints the table of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass

from omen.protocol.membership.ring import place_of
from omen.sim.running import Run
from omen.sim.scenario import BoundsSpec, ConfigSpec, Drawn, EventSpec, NetworkSpec, Scenario
from omen.sim.world import generator_for

NODES, TOPICS, RESILIENCE = 30, 15, 2
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Losses:
    """What came of the worlds with so many crashes; times until the audit had joined what was split."""

    crashes: int
    which: str
    worlds: int
    split: int
    joined_s: tuple[float, ...]
    never: int

    @property
    def row(self) -> str:
        times = self.joined_s
        shown = (f"{statistics.median(times):.1f}", f"{max(times):.1f}") if times else ("", "")
        over = self.crashes - RESILIENCE
        return (
            f"| {'L' + (f' + {over}' if over else '')}, {self.which} | {self.worlds} | {self.split} |"
            f" {shown[0]} | {shown[1]} | {self.never} |"
        )


def make_world(seed: int, crashes: int, which: str, audit: bool) -> Scenario:
    random = generator_for(seed, "losses", which)
    names = sorted((f"n{number}" for number in range(1, NODES + 1)), key=place_of)
    first = random.randrange(NODES)
    row = [names[(first + step) % NODES] for step in range(crashes)]
    lost = row if which == "in a row" else random.sample(names, crashes)
    return Scenario(
        f"{crashes} crashes at once",
        drawn=Drawn(NODES, TOPICS),
        config=ConfigSpec(resilience=RESILIENCE, coverage=1, gossip_ms=200.0, standby_timeout_ms=1500.0, audit=audit),
        network=NetworkSpec(latency_ms=(0.5, 5.0), detection_ms=(20.0, 200.0)),
        bounds=BoundsSpec(connected_s=400.0 if audit else PATIENCE_S, handled_s=0.0, one_sided_s=90.0, idle_s=400.0),
        until_s=None if audit else PATIENCE_S + 5.0,
        events=tuple(EventSpec(at=5.0, crash=name) for name in lost),
    )


def measure(crashes: int, which: str, worlds: int) -> Losses:
    split, times, never = 0, [], 0
    for seed in range(worlds):
        if not Run(make_world(seed, crashes, which, audit=False), seed).go().split:
            continue
        split += 1
        outcome = Run(make_world(seed, crashes, which, audit=True), seed).go()
        if outcome.split:
            never += 1
        else:
            times.append(max(outcome.restored) / 1e6)
    return Losses(crashes, which, worlds, split, tuple(times), never)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for which in ("any nodes", "in a row"):
        for crashes in range(RESILIENCE, RESILIENCE + 3):
            found = measure(crashes, which, arguments.worlds)
            print(json.dumps(asdict(found)) if arguments.json else found.row, flush=True)


if __name__ == "__main__":
    main()

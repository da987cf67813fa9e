"""Nodes with very many topics each form one overlay, by the settings of live nodes, in a simulated world.

    python -m tests.simulation.many_topics [--nodes 50] [--topics 20000] [--of 50000] [--each 2.0]

Time is that of the world, so that it says nothing about processors: what is looked at is whether all join, whether
every topic is connected, and how large frames become next to `frame_bytes`. `--each`: seconds between joins.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time

from omen.maintain.choosing import choose_links
from omen.net.settings import LIVE, Limits
from omen.protocol.events import SECOND, NodeId, Received, Time
from omen.protocol.messages import wire
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Network, World


class Sizes:
    """A tracer that knows the largest frame of each kind. Only what may be large is encoded again."""

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}
        self.messages = 0

    def __call__(self, _: Time, _node: NodeId, what: object) -> None:
        if isinstance(what, Received):
            self.messages += 1
            kind = type(what.message).__name__
            if kind not in ("Heartbeat", "Ping", "Pong"):
                size = wire.size_of(what.message) + 1
                if size > self.largest.get(kind, 0):
                    self.largest[kind] = size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--of", type=int, default=50_000)
    parser.add_argument("--each", type=float, default=2.0)
    told = parser.parse_args()
    sizes, begun = Sizes(), time.process_time()
    world = World(1, Network(latency=uniform(200, 1_000), detection=None), sizes)
    population = Population(world, LIVE, choose_links)
    for number in range(told.nodes):
        drawn = sorted(random.Random(number).sample(range(told.of), told.topics))
        topics = [f"t{topic}" for topic in drawn]
        if number:
            population.join(f"n{number}", topics)
        else:
            population.begin_alone("n0", topics)
        world.run_until(world.now + int(told.each * SECOND))
        print(f"n{number}: {time.process_time() - begun:.0f} s of processor time", file=sys.stderr, flush=True)
    joined_at = world.now
    world.run_while(lambda: population.is_busy() or population.has_split_topics(), world.now + 120 * SECOND)
    largest = dict(sorted(sizes.largest.items(), key=lambda entry: -entry[1])[:5])
    found = {
        "nodes": len(population.members()),
        "joining": sum(population.cores[node].is_joining for node in population.members()),
        "split": population.has_split_topics(),
        "busy": population.is_busy(),
        "settled_after_s": round((world.now - joined_at) / SECOND, 1),
        "links": len(population.links()),
        "messages": sizes.messages,
        "largest_frames": largest,
        "frame_bytes": Limits().frame_bytes,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "processor_s": round(time.process_time() - begun),
    }
    print(json.dumps(found))
    fits = max(sizes.largest.values()) <= Limits().frame_bytes
    return 0 if fits and not found["split"] and not found["joining"] and found["nodes"] == told.nodes else 1


if __name__ == "__main__":
    sys.exit(main())

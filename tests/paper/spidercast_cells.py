"""What the claims on SpiderCast are made from: overlays designed to quiescence, and worlds under lifetimes of nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any

import numpy as np

from omen.churn import Join
from omen.interests import Interests
from omen.overlay import Overlay
from omen.protocol.events import SECOND
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.quality import degree_summary, diameter_summary, topic_components, topic_diameters
from omen.runs import design_overlay
from omen.runs.replay import only_links, only_nodes
from omen.runs.spidercast import run_to_quiescence
from omen.sim.latency import uniform
from omen.sim.membership import Membership
from omen.sim.spiders import Spiders
from omen.sim.world import Network, World
from omen.workloads import Distribution, Popularity, Sizes, generate_interests, lifetimes
from omen.workloads.profile import profile_workload

Cell = dict[str, Any]

CONTROL = ("Connect", "ConnectOk", "Redirect", "Disconnect", "DisconnectOk", "Leave")
YOUNG = 2 * SECOND


@dataclass(frozen=True)
class Instance:
    """A workload of the paper: each node draws `size` of the topics."""

    nodes: int
    popularity: str = "zipf:0.5"
    topics: int = 100
    size: int = 10
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.nodes}x{self.topics}-{self.popularity}-s{self.size}-{self.seed}".replace(":", "")


@lru_cache(maxsize=3)
def interests_of(instance: Instance) -> Interests:
    return generate_interests(instance.nodes, instance.topics, instance.popularity, instance.size, seed=instance.seed)


def design_cell(instance: Instance, algorithm: str, diameters: bool, **options: Any) -> Cell:
    interests = interests_of(instance)
    overlay = design_overlay(interests, algorithm, seed=instance.seed, **options)
    cell = asdict(degree_summary(overlay))
    del cell["histogram"]
    components = topic_components(interests, overlay)
    cell |= {"split": int((components > 1).sum()), "components": int(components.sum())}
    if diameters:
        summary = diameter_summary(interests, topic_diameters(interests, overlay))
        cell |= {"diameter": summary.maximum, "mean_diameter": summary.mean}
    return cell


def ring_cell(instance: Instance) -> Cell:
    return {"average": degree_summary(design_overlay(interests_of(instance), "ring-pt")).average}


def tdi_cell(instance: Instance, closest: int) -> Cell:
    return {"tdi": profile_workload(interests_of(instance), closest=closest, sample=1000).likeness.tdi}


def printed_cell(instance: Instance) -> Cell:
    """The average degree with Fig. 3 line 9 as printed."""
    config = SpiderConfig(coverage(3, 0), part_above=True)
    overlay = run_to_quiescence(interests_of(instance), config, 1.0, instance.seed)
    return {"average": _average(overlay), "maximum": int(overlay.degrees.max())}


def churn_cell(instance: Instance, mean_up: float, duration: float, every: float, part_above: bool = False) -> Cell:
    """Nodes up for `mean_up` seconds and down for a quarter of that, in the mean, with new interests each time (3.8).

    A snapshot leaves out the nodes that came in the two seconds before it. They leave in good order, so that a leave
    has its own messages; all start together, and the first snapshot is the first that counts.
    """
    interests = interests_of(instance)
    distribution = Distribution(instance.topics, Popularity.parse(instance.popularity), Sizes.parse(str(instance.size)))
    trace = lifetimes(interests, mean_up, mean_up / 4, duration, instance.seed, distribution, graceful=True)
    world = World(instance.seed, Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000)))
    spiders = Spiders(world, SpiderConfig(coverage(3, 0), part_above=part_above), Membership(instance.seed))
    spiders.set_up(interests)
    world.run_until(10 * SECOND)
    start, before = world.now, Counter(world.messages)
    born: dict[int, int] = {}
    snapshots, marks = [], [every * number for number in range(1, int(duration / every) + 1)]
    events = list(trace)
    position = 0
    for mark in marks:
        while position < len(events) and events[position].time_s <= mark:
            event = events[position]
            position += 1
            world.run_until(start + int(event.time_s * SECOND))
            if isinstance(event, Join):
                born[spiders.join(event.node, event.topics or ())] = world.now
            else:
                spiders.leave(event.node)
        world.run_until(start + int(mark * SECOND))
        snapshots.append(_judge_older(spiders, born))
    return {
        "operations": position,
        "control_messages": sum((world.messages - before)[kind] for kind in CONTROL) / position,
        "messages": {kind: count / position for kind, count in sorted((world.messages - before).items())},
        "average": fmean(snapshot["average"] for snapshot in snapshots),
        "split": [snapshot["split"] for snapshot in snapshots],
        "nodes": fmean(snapshot["nodes"] for snapshot in snapshots),
    }


def _judge_older(spiders: Spiders, born: dict[int, int]) -> Cell:
    interests, overlay = spiders.snapshot()
    old = spiders.world.now - YOUNG
    keep = np.array([born.get(spiders.place(label), 0) <= old for label in interests.nodes.tolist()])
    interests, overlay = only_nodes(interests, keep), only_links(overlay, keep)
    return {"nodes": int(keep.sum()), "average": _average(overlay), "split": _split(interests, overlay)}


def _average(overlay: Overlay) -> float:
    return degree_summary(overlay).average


def _split(interests: Interests, overlay: Overlay) -> int:
    return int((topic_components(interests, overlay) > 1).sum())

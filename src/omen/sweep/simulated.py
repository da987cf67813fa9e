"""Cells that look inside simulated nodes: OMen's local views, and SpiderCast's messages while nodes live and sleep."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import Any

import numpy as np

from omen.churn import Join
from omen.interests import Interests
from omen.sweep.cells import Cell

MARKS = (1, 2, 5, 10, 20, 50, 100)
CONTROL = ("Connect", "ConnectOk", "Redirect", "Disconnect", "DisconnectOk", "Leave")
YOUNG_S = 2
SETTLING_S = 10


def measure_views(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The sizes of all local views of OMen without churn: backups and neighbours of the L predecessors (its Alg. 4)."""
    from omen.protocol.config import Config
    from omen.sim.latency import uniform
    from omen.sim.population import Population
    from omen.sim.world import Network, World
    from omen.systems import design_overlay

    options, rounds = dict(cell.options), int(cell.setting("rounds", 20))
    config = Config(coverage=int(options.get("lambda", 5)), resilience=int(options.get("resilience", 1)))
    world = World(cell.workload.seed, Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000)))
    population = Population(world, config, lambda *_: [])
    population.set_up(interests, design_overlay(interests, "low-oda"))
    means: list[float] = []
    sizes: list[int] = []
    marks = sorted({mark for mark in MARKS if mark < rounds} | {rounds})
    for mark in marks:
        world.run_until(mark * config.gossip_period)
        sizes = [len(population.cores[node].status().membership.view) for node in population.members()]
        means.append(fmean(sizes))
    few = interests.node_count / 20
    values = {
        "view_mean": fmean(sizes),
        "view_max": float(max(sizes)),
        "share_below_5_percent": fmean(size < few for size in sizes),
        "share_up_to_80": fmean(size <= 80 for size in sizes),
    }
    ordered = [float(size) for size in sorted(sizes)]
    return values, {"round": [float(mark) for mark in marks], "view_mean": means, "views": ordered}


def measure_lives(
    cell: Cell, interests: Interests, part_above: bool = False
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """SpiderCast while nodes are up and down for exponential times, with new interests when they come back (its 3.8).

    Events come at their own times, whatever is still under way. Five snapshots, which leave out nodes of less than two
    seconds, as the paper's do. Nodes leave in good order, so that a leave has messages of its own. `part_above`: as
    SpiderConfig has it.
    """
    from omen.protocol.events import SECOND
    from omen.protocol.spidercast.config import SpiderConfig, coverage
    from omen.sim.latency import uniform
    from omen.sim.membership import Membership
    from omen.sim.spiders import Spiders
    from omen.sim.world import Network, World
    from omen.workloads import Distribution, Popularity, Sizes, lifetimes

    spec, options = cell.workload, dict(cell.options)
    mean_up, duration = float(cell.setting("mean_up", 500.0)), float(cell.setting("duration", 100.0))
    drawn_from = Distribution(spec.topics, Popularity.parse(spec.popularity), Sizes.parse(spec.sizes))
    trace = lifetimes(interests, mean_up, mean_up / 4, duration, spec.seed, drawn_from, graceful=True)
    world = World(spec.seed, Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000)))
    asked = coverage(int(options.get("kg", 3)), int(options.get("kr", 0)))
    config = SpiderConfig(asked, part_above=part_above)
    spiders = Spiders(world, config, Membership(spec.seed))
    spiders.set_up(interests)
    world.run_until(SETTLING_S * SECOND)
    start, before = world.now, Counter(world.messages)
    born: dict[int, int] = {}
    snapshots: list[tuple[float, float, float]] = []
    events, done = list(trace), 0
    for mark in (duration * part / 5 for part in range(1, 6)):
        while done < len(events) and events[done].time_s <= mark:
            event = events[done]
            done += 1
            world.run_until(start + int(event.time_s * SECOND))
            if isinstance(event, Join):
                born[spiders.join(event.node, event.topics or ())] = world.now
            else:
                spiders.leave(event.node)
        world.run_until(start + int(mark * SECOND))
        snapshots.append(_judge_older(spiders, born, world.now - YOUNG_S * SECOND))
    sent = Counter(world.messages) - before
    nodes, degrees, split = (list(column) for column in zip(*snapshots, strict=True))
    values = {
        "events": float(done),
        "control_messages": sum(sent[kind] for kind in CONTROL) / max(done, 1),
        "avg_degree": fmean(degrees),
        "split_topics": max(split),
        "nodes_up": fmean(nodes),
        **{f"messages_{kind}": count / max(done, 1) for kind, count in sorted(sent.items())},
    }
    return values, {"nodes_up": nodes, "avg_degree": degrees, "split_topics": split}


def _judge_older(spiders: Any, born: dict[int, int], old: int) -> tuple[float, float, float]:
    """(nodes, average degree, topics split) without the nodes that are younger."""
    from omen.quality import degree_summary, topic_components
    from omen.systems.replay import only_links, only_nodes

    interests, overlay = spiders.snapshot()
    keep = np.array([born.get(spiders.place(label), 0) <= old for label in interests.nodes.tolist()])
    interests, overlay = only_nodes(interests, keep), only_links(overlay, keep)
    split = float((topic_components(interests, overlay) > 1).sum())
    return float(keep.sum()), degree_summary(overlay).average, split

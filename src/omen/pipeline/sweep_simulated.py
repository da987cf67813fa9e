"""Cells that look inside simulated nodes: what local views come to as gossip goes on."""

from __future__ import annotations

from statistics import fmean

from omen.interests import Interests
from omen.pipeline.sweep_cells import Cell

MARKS = (1, 2, 5, 10, 20, 50, 100)


def measure_views(cell: Cell, interests: Interests) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The sizes of all local views of OMen without churn: backups and neighbours of the L predecessors (its Alg. 4)."""
    from omen.protocol.config import Config
    from omen.runs import design_overlay
    from omen.sim.latency import uniform
    from omen.sim.population import Population
    from omen.sim.world import Network, World

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
        sizes = [len(population.cores[node].views.get_view()) for node in population.members()]
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

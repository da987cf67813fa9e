"""What a search came to: totals over its worlds, and the shrunk ones as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from omen.sim.kinds import KINDS
from omen.sim.search import Search, World, shrink_world
from omen.sim.writing import write_scenario


class ShrunkWorld(msgspec.Struct, frozen=True):
    """A world that was made small. `scenario`: as it is written to a file; `seed`: the one it fails with."""

    world: int
    scenario: str
    seed: int
    nodes: int
    events: int
    runs: int


def shrink_found(search: Search, world: World) -> ShrunkWorld:
    """The smallest world found that fails in the same way."""
    small = shrink_world(search, world)
    nodes, events = len(small.scenario.nodes), len(small.scenario.events)
    return ShrunkWorld(world.seed, write_scenario(small.scenario), small.seed, nodes, events, small.runs)


def write_shrunk(search: Search, small: ShrunkWorld, folder: Path) -> Path:
    """The file of its scenario."""
    folder.mkdir(parents=True, exist_ok=True)
    whose = "" if search.kind == next(iter(KINDS)) else f"{search.kind}-"
    missing = "".join(f"-without-{remedy.replace('_', '-')}" for remedy in search.without)
    path = folder / f"{whose}{search.draw}{missing}-{small.world}.toml"
    path.write_text(small.scenario)
    return path


def total_worlds(found: Sequence[World]) -> dict[str, Any]:
    """Counts and times over all worlds that were run."""
    return {
        "worlds": len(found),
        "events": sum(world.events for world in found),
        "failures": sum(not world.went_well for world in found),
        "split": sum(world.split for world in found),
        "steps": sum(world.steps for world in found),
        "rejoins": (rejoins := sum(world.rejoins for world in found)),
        "renewals": rejoins,  # its name in version 0.1.0
        "longest_split_s": max((world.restored_s for world in found), default=0.0),
        "processor_s": round(sum(world.seconds for world in found), 1),
    }

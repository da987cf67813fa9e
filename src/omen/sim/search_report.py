"""What a search came to: totals over its worlds, and the shrunk ones as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omen.sim.kinds import KINDS
from omen.sim.search import Search, World, shrink_world
from omen.sim.shrinking import Shrunk
from omen.sim.writing import write_scenario


def keep_shrunk(search: Search, world: World, folder: Path) -> tuple[Shrunk, Path]:
    """The smallest world found that fails in the same way, and the scenario it is written to."""
    small = shrink_world(search, world)
    folder.mkdir(parents=True, exist_ok=True)
    whose = "" if search.kind == next(iter(KINDS)) else f"{search.kind}-"
    missing = "".join(f"-without-{remedy.replace('_', '-')}" for remedy in search.without)
    path = folder / f"{whose}{search.draw}{missing}-{world.seed}.toml"
    path.write_text(write_scenario(small.scenario))
    return small, path


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

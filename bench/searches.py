"""What the fault search found: counts of searches that were kept, and that it sees each remedy that is missing."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from bench.measure import Row
from omen.sim.search import kept_rows


def count_searches(arguments: argparse.Namespace) -> list[Row]:
    """A row for each file that `omen simulate --search --keep` wrote, NAME=FILE or FILE alone."""
    return [_count(name, Path(file)) for name, _, file in (kept.rpartition("=") for kept in arguments.kept)]


def _count(name: str, path: Path) -> Row:
    worlds = [row for _, row in kept_rows(path)]
    healed = sorted(world["restored_s"] for world in worlds)
    spent = sum(world["seconds"] for world in worlds)
    details: dict[str, Any] = {
        "seeds": f"{min(world['seed'] for world in worlds)} to {max(world['seed'] for world in worlds)}",
        "worlds run": len(worlds),
        "events": sum(world["events"] for world in worlds),
        "steps": sum(world["steps"] for world in worlds),
        "declared failed wrongly": sum(world["rejoins"] for world in worlds),
        "split for, median s": round(healed[len(healed) // 2], 1),
        "99% s": round(healed[int(0.99 * len(healed))], 1),
        "longest s": round(healed[-1], 1),
        "virtual hours": round(sum(world["end_s"] for world in worlds) / 3600, 1),
        "processor min": round(spent / 60, 1),
        "failures": sum(not world["went_well"] for world in worlds),
    }
    return Row(name or worlds[0]["search"]["draw"], spent, spent, 1, details=details)


def open_remedies(_: argparse.Namespace) -> list[Row]:
    """For each remedy: the first world of 200 that stays split without it, and how small that becomes.

    Where none of 200 harsh worlds needs it, the kinder ones are looked at: there nothing else covers for it.
    """
    from omen.cli.simulate_search import REMEDIES
    from omen.sim.search import Search, run_worlds, shrink_world

    rows = []
    for remedy in REMEDIES:
        started, worked = time.perf_counter(), time.process_time()
        searches = [Search(draw, (remedy,)) for draw in ("within", "plain")]
        found = ((search, world) for search in searches for world in run_worlds(search, range(200)) if world.split)
        search, world = next(found)
        small = shrink_world(search, world)
        wall, processor = time.perf_counter() - started, time.process_time() - worked
        details = {
            "worlds": search.draw,
            "split at seed": world.seed,
            "nodes": len(small.scenario.nodes),
            "events": len(small.scenario.events),
            "runs": small.runs,
            "processor s": round(processor),
        }
        rows.append(Row(remedy, wall, processor, 1, details=details))
        print(remedy, details, flush=True)
    return rows

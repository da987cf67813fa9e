"""omen simulate --search --guided: worlds that reach what is rarely reached are changed, and run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.output import print_json, say
from omen.cli.progress import counting, working
from omen.cli.simulate_search import DRAWS, find_kind, scenario_command
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.sim.guided import GuidedSearch, GuidedWorld

NOT_FOR_GUIDED = ("keep", "workers", "engine")


def search_guided(arguments: argparse.Namespace) -> int:
    from omen.sim.guided import GuidedSearch
    from omen.sim.search import Search

    draw = arguments.worlds or DRAWS[0]
    given = [f"--{name}" for name in NOT_FOR_GUIDED if getattr(arguments, name) is not None]
    if given or draw in ("busy", "cramped") or find_kind(arguments.system).name != "omen":
        raise InvalidInput("--guided: worlds of omen one after the other, without load, --keep, --workers and --engine")
    wanted = range(100) if arguments.seeds is None else arguments.seeds
    guided = GuidedSearch(Search(draw, tuple(sorted(arguments.without or ()))), wanted)
    found: list[GuidedWorld] = []
    failed: list[dict[str, Any]] = []
    folder = Path(arguments.failures or "search-failures")
    with counting("worlds", len(wanted)) as count:
        for world in guided.worlds():
            found.append(world)
            count(len(found))
            if not world.went_well:
                failed.append(_tell(guided, world, len(found), folder))
                if arguments.stop:
                    break
    _print(arguments, guided, found, failed)
    return 1 if failed else 0


def _tell(guided: GuidedSearch, world: GuidedWorld, number: int, folder: Path) -> dict[str, Any]:
    """What failed is shrunk, and written as a scenario."""
    from omen.sim.guided import shrink_guided
    from omen.sim.writing import write_scenario

    for complaint in world.complaints:
        say(f"world {number}: {complaint}")
    with working(f"shrinking world {number}"):
        small = shrink_guided(world)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"guided-{guided.search.draw}-{guided.seeds[0]}-{number}.toml"
    path.write_text(write_scenario(small.scenario))
    replay = scenario_command(str(path), small.seed, "omen")
    say(f"world {number}: shrunk to {len(small.scenario.nodes)} nodes and {len(small.scenario.events)} events")
    say(f"world {number}: replay: {replay}")
    return {"world": number, "fresh": world.fresh, "replay": replay}


def _print(
    arguments: argparse.Namespace, guided: GuidedSearch, found: list[GuidedWorld], failed: list[dict[str, Any]]
) -> None:
    from omen.sim.guided import all_combinations, by_stage

    never = by_stage(guided.never_reached())
    changed = sum(not world.fresh for world in found)
    if arguments.json:
        totals = {"worlds": len(found), "changed": changed, "failures": len(failed)}
        print_json({**totals, "reached": len(guided.reached), "never_reached": never, "failed": failed})
        return
    for name, messages in never.items():
        print(f"never reached: {name}: {', '.join(messages)}")
    print(f"{len(guided.reached)} of {len(all_combinations())} combinations of stage, message and event reached")
    print(f"{len(found)} worlds, {changed} of them changed from others, {len(failed)} failures")

"""omen simulate --search: random worlds by the seed, in parallel; what fails is shrunk and told how to replay."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import at_least
from omen.cli.output import print_json, say
from omen.cli.progress import counting, working
from omen.cli.spark_options import add_spark_options, spark_options
from omen.design.options import suggest
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.pipeline.search import SparkSearch
    from omen.sim.kinds import Kind
    from omen.sim.search import Search, World
    from omen.sim.search_report import ShrunkWorld

REMEDIES = (
    "linked_losses_as_one",
    "redo_unconfirmed",
    "former_neighbours_report",
    "links_agreed_by_both",
    "holes_end",
)
DRAWS = ("within", "beyond", "busy", "cramped", "refusing", "twofold", "plain")
SYSTEMS = ("omen", "spidercast")
SPARK_OPTIONS = ("master", "remote", "driver_memory", "partitions")
OPTIONS = ("seeds", "worlds", "without", "engine", "workers", "keep", "stop", "failures", "guided", *SPARK_OPTIONS)
"""What only a search can be told."""


def seeds(text: str) -> range:
    """A..B, both included, or one number."""
    first, dots, last = text.partition("..")
    try:
        found = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        found = range(0)
    if not found or found.start < 0:
        raise argparse.ArgumentTypeError(f"must be A..B with whole numbers, A not above B, not {text!r}")
    return found


def add_search_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("search", "random worlds instead of a scenario")
    group.add_argument("--search", action="store_true", help="run random worlds, and shrink those that fail")
    group.add_argument("--seeds", metavar="A..B", type=seeds, help="which worlds (0..99)")
    group.add_argument(
        "--worlds",
        choices=DRAWS,
        help="within: up to L events at a time, audit off; beyond: more than that at once, audit on; busy: "
        "thousands of publications per second; cramped: windows that last for a fraction of a repair; refusing: as "
        "within, with failure detectors and hosts that refuse for processes that ended; twofold: as within, at "
        "connectivity 2; plain: a network that neither pauses nor suspects (within)",
    )
    group.add_argument(
        "--without", metavar="REMEDY", action="append", choices=REMEDIES, help="switch a remedy off, to see"
    )
    group.add_argument(
        "--engine", choices=("local", "spark"), help="where worlds run: on this machine, or on Spark (local)"
    )
    group.add_argument("--workers", metavar="N", type=at_least(1), help="processes of this machine (1)")
    group.add_argument(
        "--keep", metavar="FILE", help="keep what came of each world there, and go on from what is there"
    )
    group.add_argument(
        "--guided",
        action="store_true",
        default=None,
        help="change worlds that reach rare combinations of repair stage, message and event",
    )
    group.add_argument("--stop", action="store_true", default=None, help="stop at the first world that fails")
    group.add_argument("--failures", metavar="DIR", help="for the shrunk (search-failures)")
    add_spark_options(parser)


def find_kind(system: str) -> Kind:
    from omen.sim.kinds import KINDS

    if system not in KINDS:
        raise InvalidInput(f"no worlds are run with {system!r}{suggest(system, KINDS)} (known: {', '.join(KINDS)})")
    return KINDS[system]


def search(arguments: argparse.Namespace) -> int:
    keep = Path(arguments.keep) if arguments.keep else None
    found: list[World] = []
    try:
        return _search(arguments, keep, found)
    except KeyboardInterrupt:
        if keep is not None and found:
            say(f"stopped; what came of {len(found)} worlds is in {keep}: the same command goes on from there")
        raise


def _search(arguments: argparse.Namespace, keep: Path | None, found: list[World]) -> int:
    from omen.sim.search import Search, run_worlds
    from omen.sim.search_report import total_worlds

    without = tuple(sorted(arguments.without or ()))
    looked_for = Search(arguments.worlds or DRAWS[0], without, find_kind(arguments.system).name)
    wanted = range(100) if arguments.seeds is None else arguments.seeds
    folder = Path(arguments.failures or "search-failures")
    if arguments.failures:
        folder.mkdir(parents=True, exist_ok=True)  # told now, not after an hour, if it cannot be
    on_spark = _on_spark(arguments, looked_for, folder)
    run = None if on_spark is None else on_spark.run
    with counting("worlds", len(wanted)) as count:
        for world in run_worlds(looked_for, wanted, arguments.workers or 1, keep, bool(arguments.stop), run):
            found.append(world)
            count(len(found))
            if not world.went_well:
                _tell_failure(looked_for, world)
    failed = sorted((world for world in found if not world.went_well), key=lambda world: world.seed)
    known = {} if on_spark is None else on_spark.shrunk
    shrunk = [_shrink(looked_for, world, folder, known.get(world.seed)) for world in failed]
    if arguments.json:
        print_json({**total_worlds(found), "failed": [world.seed for world in failed], "shrunk": shrunk})
    else:
        _print_summary(looked_for, found)
    return 1 if failed else 0


def _on_spark(arguments: argparse.Namespace, looked_for: Search, folder: Path) -> SparkSearch | None:
    """Who runs the worlds, if they run on Spark."""
    if arguments.engine != "spark":
        given = [f"--{name.replace('_', '-')}" for name in SPARK_OPTIONS if getattr(arguments, name) is not None]
        if given:
            raise InvalidInput(f"{' and '.join(given)}: only with --engine spark")
        return None
    if arguments.workers is not None:
        raise InvalidInput("--workers: not with --engine spark, which runs as many tasks as it has slots")
    from omen.pipeline.search import SparkSearch

    return SparkSearch(looked_for, spark_options(arguments), folder)


def scenario_command(path: str, seed: int, system: str) -> str:
    """What runs a scenario again, and tells it."""
    return shlex.join(["omen", "simulate", path, "--seed", str(seed), *_system_words(system), "--trace"])


def _world_command(looked_for: Search, seed: int) -> str:
    remedies = [word for remedy in looked_for.without for word in ("--without", remedy)]
    words = ["omen", "simulate", "--search", "--worlds", looked_for.draw, "--seeds", f"{seed}..{seed}"]
    return shlex.join([*words, *remedies, *_system_words(looked_for.kind)])


def _system_words(system: str) -> list[str]:
    return [] if system == SYSTEMS[0] else ["--system", system]


def _tell_failure(looked_for: Search, world: World) -> None:
    """At once: who stops here, before it is shrunk, can run it again."""
    for complaint in world.complaints:
        say(f"world {world.seed}: {complaint}")
    say(f"world {world.seed}: run it again: {_world_command(looked_for, world.seed)}")


def _shrink(
    looked_for: Search, world: World, folder: Path, known: tuple[ShrunkWorld, Path] | None = None
) -> dict[str, Any]:
    """Make a failed world small and say how to replay it. `known`: it was shrunk where it was found."""
    from omen.sim.search_report import shrink_found, write_shrunk

    if known is None:
        with working(f"shrinking world {world.seed}"):
            small = shrink_found(looked_for, world)
        known = (small, write_shrunk(looked_for, small, folder))
    small, path = known
    replay = scenario_command(str(path), small.seed, looked_for.kind)
    say(f"world {world.seed}: shrunk to {small.nodes} nodes and {small.events} events in {small.runs} runs")
    say(f"world {world.seed}: replay: {replay}")
    sizes = {"nodes": small.nodes, "events": small.events, "runs": small.runs}
    return {"seed": world.seed, **sizes, "again": _world_command(looked_for, world.seed), "replay": replay}


def _print_summary(looked_for: Search, found: list[World]) -> None:
    from omen.sim.search_report import total_worlds

    summary = total_worlds(found)
    print(
        f"{looked_for.draw}: {summary['steps']:,} steps, {summary['renewals']:,} nodes wrongly declared failed, "
        f"longest split {summary['longest_split_s']:.1f} s of virtual time, {summary['processor_s']:.1f} s of processor"
    )
    print(f"{summary['worlds']} worlds, {summary['events']} events, {summary['failures']} failures")

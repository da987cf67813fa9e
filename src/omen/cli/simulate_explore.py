"""omen simulate --explore: all that can happen in small worlds, up to a number of delays; a failure is a scenario."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import at_least
from omen.cli.output import print_facts, print_json, say
from omen.cli.progress import counting
from omen.cli.simulate_search import REMEDIES, scenario_command
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.sim.explore import Found
    from omen.sim.scenario import Scenario

OPTIONS = ("nodes", "events", "topics", "kinds", "delays", "losses", "seconds")
"""What only an exploration can be told."""
EVENT_KINDS = ("crash", "leave", "drop", "join")
SECONDS = 300.0
MOST_NODES = 8  # with more the first world alone does not end


def add_explore_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("explore", "all that can happen in small worlds, or in that of a scenario")
    group.add_argument("--explore", action="store_true", help="explore: to the end, or until something fails")
    group.add_argument("--nodes", metavar="N", type=at_least(2), help=f"nodes of each world, {MOST_NODES} at most (3)")
    group.add_argument("--events", metavar="N", type=at_least(1), help="events in each world (1)")
    group.add_argument("--topics", metavar="N", type=at_least(1), help="topics, 1 to 3 (1)")
    group.add_argument("--kinds", metavar="A,B", help=f"of events ({','.join(EVENT_KINDS)})")
    group.add_argument("--delays", metavar="N", type=at_least(0), help="inputs that are delayed at most (2)")
    group.add_argument("--losses", metavar="N", type=at_least(0), help="messages that are lost at most (0)")
    group.add_argument("--seconds", metavar="S", type=float, help=f"of processor for each world ({SECONDS:g})")


def explore(arguments: argparse.Namespace) -> int:
    from omen.sim.explore_kept import KeptWorlds

    worlds = list(_worlds(arguments))
    budget = (2 if arguments.delays is None else arguments.delays, arguments.losses or 0)
    seconds = arguments.seconds or SECONDS
    found: list[tuple[Scenario, Found]] = []
    started = time.monotonic()
    kept = KeptWorlds(Path(arguments.keep) if arguments.keep else None, budget)
    found += [(world, came) for world in worlds if (came := kept.find(world)) is not None]
    left = [world for world in worlds if kept.find(world) is None]
    with counting("worlds", len(worlds)) as count:
        for scenario, came in _explore_all(left, budget, seconds, arguments.workers or 1):
            found.append((scenario, came))
            kept.add(scenario, came)
            count(len(found))
            if not arguments.json:
                _tell(scenario, came)
            if came.failure is not None and arguments.stop:
                break
    failures = [_keep(scenario, came, Path(arguments.failures or "search-failures")) for scenario, came in found]
    failed = [failure for failure in failures if failure is not None]
    _print_totals(arguments, found, failed, time.monotonic() - started)
    return 1 if failed or not all(came.complete for _, came in found) else 0


def _worlds(arguments: argparse.Namespace) -> Iterator[Scenario]:
    from omen.sim.explore_worlds import TOPICS, small_worlds
    from omen.sim.reading import read_scenario

    without = tuple(arguments.without or ())
    if arguments.scenario is not None:
        given = [f"--{name}" for name in ("nodes", "events", "topics", "kinds") if getattr(arguments, name) is not None]
        if given:
            raise InvalidInput(f"{' and '.join(given)}: of worlds that are made, not for the file of a scenario")
        yield read_scenario(arguments.scenario).without(*without)
        return
    kinds = tuple((arguments.kinds or ",".join(EVENT_KINDS)).split(","))
    unknown = [kind for kind in kinds if kind not in EVENT_KINDS]
    topics = arguments.topics or 1
    if unknown or topics > len(TOPICS):
        wrong = f"--kinds has {unknown[0]!r}" if unknown else f"--topics is {topics}"
        raise InvalidInput(f"{wrong}: events are {', '.join(EVENT_KINDS)}, topics 1 to {len(TOPICS)}")
    if (arguments.nodes or 3) > MOST_NODES:
        raise InvalidInput(
            f"--nodes is {arguments.nodes}: more than {MOST_NODES} cannot be gone through (--search can)"
        )
    for world in small_worlds(arguments.nodes or 3, arguments.events or 1, topics, kinds):
        yield world.without(*without)


def _explore_all(
    worlds: list[Scenario], budget: tuple[int, int], seconds: float, workers: int
) -> Iterator[tuple[Scenario, Found]]:
    from omen.sim.explore import explore_world

    if not worlds:
        return
    jobs = [(world, budget, seconds) for world in worlds]
    if workers == 1:
        yield from ((world, explore_world(world, budget, seconds)) for world in worlds)
        return
    from concurrent.futures import ProcessPoolExecutor  # late: a fifth of the time of --help

    with ProcessPoolExecutor(workers) as pool:
        yield from zip(worlds, pool.map(explore_world, *zip(*jobs, strict=True)), strict=True)


def _tell(scenario: Scenario, came: Found) -> None:
    end = came.complaint or ("all seen" if came.complete else "not all seen: out of time")
    print(f"{scenario.name}: {came.states:,} states, {came.ends:,} ends, {came.seconds:.1f} s of processor: {end}")


def _keep(scenario: Scenario, came: Found, folder: Path) -> str | None:
    """A failure becomes a scenario that replays."""
    from omen.sim.writing import write_scenario

    if came.failure is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    words = "".join(letter if letter.isalnum() else "-" for letter in scenario.name)
    path = folder / f"explore-{words}.toml"
    path.write_text(write_scenario(came.failure))
    say(f"{scenario.name}: {came.complaint}")
    say(f"{scenario.name}: replay: {scenario_command(str(path), 0, 'omen')}")
    return str(path)


def _print_totals(
    arguments: argparse.Namespace, found: list[tuple[Scenario, Found]], failed: list[str], seconds: float
) -> None:
    from omen.sim.explore import total_found

    totals: dict[str, Any] = {**total_found([came for _, came in found]), "seconds": round(seconds, 1)}
    if arguments.json:
        rows = [{"world": scenario.name, "states": came.states, "ends": came.ends} for scenario, came in found]
        print_json({**totals, "failed": failed, "each": rows})
        return
    facts = [(name.replace("_", " "), value) for name, value in totals.items()]
    print_facts([(name, ", ".join(value) if isinstance(value, list) else value) for name, value in facts])
    if arguments.without:
        print(f"without {', '.join(arguments.without)} (of {', '.join(REMEDIES)})")

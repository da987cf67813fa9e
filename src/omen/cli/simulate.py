"""omen simulate: run a scenario in virtual time, watch it, tell it."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import explain, print_facts, print_json, print_table, say
from omen.cli.progress import working
from omen.cli.simulate_explore import OPTIONS as EXPLORE_OPTIONS
from omen.cli.simulate_explore import add_explore_options, explore
from omen.cli.simulate_guided import search_guided
from omen.cli.simulate_search import (
    OPTIONS,
    SPARK_OPTIONS,
    SYSTEMS,
    add_search_options,
    find_kind,
    scenario_command,
    search,
)
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.sim.running import Outcome

COLUMNS = {
    "repaired at": "in virtual time, since the beginning",
    "event": "what was repaired: a crash, a leave, a join or a change of topics",
    "of": "the node that it happened to",
    "by": "the node that coordinated the repair",
    "new links": "that the repair made, by the names of their ends",
}
EPILOG = """\
example:
  omen simulate scenarios/paper-example.toml --seed 7 --trace
  omen simulate --search --seeds 0..199 --workers 2 --keep found.jsonl
  omen simulate --search --system spidercast
  omen simulate --explore --nodes 3 --events 2 --delays 3 --workers 2

exit codes: 0 it went as it should, 1 something that must hold did not, 2 bad input
"""
SCENARIO_OPTIONS = ("seed", "trace", "trace_all")
SEARCH_ONLY = ("seeds", "worlds", "guided", "engine", *SPARK_OPTIONS)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate",
        help="run protocol nodes through a scenario, in virtual time",
        description="Run a scenario in virtual time. The same file and seed give the same run, byte for byte.",
        epilog=EPILOG + explain("\ncolumns", COLUMNS),
    )
    parser.add_argument("scenario", metavar="FILE", nargs="?", help="the scenario, as TOML")
    parser.add_argument("--seed", metavar="N", type=at_least(0), help="what everything random comes from (0)")
    parser.add_argument("--trace", action="store_true", default=None, help="tell what happens, a line each")
    parser.add_argument("--trace-all", action="store_true", default=None, help="the same with gossip and timers")
    parser.add_argument(
        "--system", metavar="NAME", default=SYSTEMS[0], help=f"whose nodes: {', '.join(SYSTEMS)} ({SYSTEMS[0]})"
    )
    add_json(parser)
    add_search_options(parser)
    add_explore_options(parser)
    parser.set_defaults(handler=simulate)


def simulate(arguments: argparse.Namespace) -> int:
    if arguments.explore:
        if arguments.search:
            raise InvalidInput("give --search or --explore")
        _refuse(arguments, (*SCENARIO_OPTIONS, *SEARCH_ONLY), "worlds that are run once, not for --explore")
        return explore(arguments)
    _refuse(arguments, EXPLORE_OPTIONS, "--explore")
    if arguments.search == (arguments.scenario is not None):
        raise InvalidInput("give the file of a scenario, or --search to run random worlds")
    if arguments.search:
        _refuse(arguments, SCENARIO_OPTIONS, "the file of a scenario, not for --search")
        return search_guided(arguments) if arguments.guided else search(arguments)
    _refuse(arguments, OPTIONS, "--search, not for the file of a scenario")
    kind, seed = find_kind(arguments.system), arguments.seed or 0
    from omen.sim.explore_world import OrderedRun
    from omen.sim.load import LoadedRun
    from omen.sim.reading import read_scenario
    from omen.sim.running import Run

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DeprecationWarning)
        scenario = read_scenario(arguments.scenario)
    for warning in found:
        say(f"omen: {warning.message}")
    write = print if (arguments.trace or arguments.trace_all) and not arguments.json else None
    try:
        everything = bool(arguments.trace_all)
        if scenario.load is not None and kind.name == SYSTEMS[0]:
            run: Run = LoadedRun(scenario, seed, write, everything=everything, fingerprint=True)
        else:
            make = OrderedRun if scenario.order is not None else Run
            run = make(scenario, seed, write, everything=everything, fingerprint=True, kind=kind)
        with working(f"running {arguments.scenario}") if write is None else nullcontext():
            outcome = run.go()
    except InvalidInput as error:
        raise InvalidInput(f"{arguments.scenario}: {error}") from None
    if arguments.json:
        print_json({"scenario": scenario.name, **_as_json(outcome)})
    else:
        _print_outcome(scenario.name, outcome)
    if outcome.went_well:
        return 0
    for complaint in outcome.complaints():
        say(complaint)
    say(f"replay: {scenario_command(arguments.scenario, seed, kind.name)}")
    return 1


def _refuse(arguments: argparse.Namespace, names: Sequence[str], whose: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    if given:
        raise InvalidInput(f"{' and '.join(given)}: only for {whose}")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "went_well": outcome.went_well,
        "settled": outcome.settled,
        "end_s": outcome.end / 1e6,
        "split": outcome.split,
        "broken": outcome.split,  # its name in version 0.1.0
        "complaints": outcome.complaints(),
        "restored_s": [time / 1e6 for time in outcome.restored],
        "repairs": [
            {
                "time_s": repair.time / 1e6,
                "event": repair.event.kind,
                "node": repair.node,
                "coordinator": repair.coordinator,
                "shadow": repair.shadow,
                "links": repair.links,
            }
            for repair in outcome.repairs
        ],
        "events": outcome.processed,
        "rejoins": outcome.rejoins,
        "renewals": outcome.rejoins,  # its name in version 0.1.0
        "refused": outcome.refused,
        "messages": outcome.messages,
        "bytes": outcome.bytes,
        "fingerprint": outcome.fingerprint,
    }


def _print_outcome(name: str, outcome: Outcome) -> None:
    facts = [
        ("scenario", name),
        ("seed", str(outcome.seed)),
        ("went well", outcome.went_well),
        ("virtual time", f"{outcome.end / 1e6:.3f} s"),
        ("longest split after an event", f"{max(outcome.restored, default=0) / 1e6:.3f} s"),
        ("messages", sum(outcome.messages.values())),
        ("bytes", sum(outcome.bytes.values())),
        ("fingerprint", outcome.fingerprint),
    ]
    print_facts(facts)
    if outcome.repairs:
        print()
        rows = [
            (
                f"{repair.time / 1e6:.3f} s",
                repair.event.kind,
                str(repair.node),
                str(repair.coordinator),
                " ".join(f"{one}-{other}" for one, other in repair.links) or "none",
            )
            for repair in outcome.repairs
        ]
        print_table(COLUMNS, rows)

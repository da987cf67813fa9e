"""omen churn: what happens to the nodes of a workload, made up or taken from a trace."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload, at_least, seconds, share
from omen.cli.churn_google import add_google
from omen.cli.churn_import import add_import
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working

if TYPE_CHECKING:
    from omen.churn import Trace
    from omen.tables import Workload

EPILOG = """\
example:
  omen churn random --workload w --rounds 1000 --seed 7 --out c.parquet
"""
RANDOM_EPILOG = """\
example:
  omen churn random --workload w --rounds 1000 --join-probability 0.5 --seed 7 --out c.parquet

A newcomer's interests are drawn as the workload's were, if workload.json tells how, and else those of a random node.
"""
LIFETIMES_EPILOG = """\
example:
  omen churn lifetimes --workload w --mean-up 1800 --mean-down 450 --duration 86400 --seed 7 --out c.parquet

All nodes are up at the start. One that comes back has new interests, as newcomers have in `omen churn random`.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "churn",
        help="make a trace of nodes that join, leave and crash",
        description="Make a trace: a table of what happens to the nodes of a workload, and when.",
        epilog=EPILOG,
    )
    kinds = parser.add_subparsers(metavar="KIND", required=True, title="kinds")
    _add_random(kinds)
    _add_lifetimes(kinds)
    add_google(kinds)
    add_import(kinds)


def _add_random(kinds: Any) -> None:
    parser = kinds.add_parser(
        "random",
        help="rounds of one join or leave each",
        description="Rounds of one join or leave each, a second apart. The same seed gives the same trace, anywhere.",
        epilog=RANDOM_EPILOG,
    )
    add_workload(parser)
    parser.add_argument("--rounds", metavar="R", type=at_least(0), required=True, help="how many rounds")
    parser.add_argument(
        "--join-probability", metavar="P", type=share, default=0.5, help="that a round is a join, not a leave (0.5)"
    )
    _add_common(parser)
    parser.set_defaults(handler=make_random)


def _add_lifetimes(kinds: Any) -> None:
    parser = kinds.add_parser(
        "lifetimes",
        help="nodes that are up and down for exponential times",
        description="Nodes go and come back after exponential times. The same seed gives the same trace, anywhere.",
        epilog=LIFETIMES_EPILOG,
    )
    add_workload(parser)
    parser.add_argument("--mean-up", metavar="S", type=seconds, required=True, help="mean time up, in seconds")
    parser.add_argument("--mean-down", metavar="S", type=seconds, help="mean time down (a quarter of the time up)")
    parser.add_argument("--duration", metavar="S", type=seconds, required=True, help="length of the trace, in seconds")
    parser.add_argument("--graceful", action="store_true", help="nodes leave instead of crashing")
    _add_common(parser)
    parser.set_defaults(handler=make_lifetimes)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=0, help="of the random choices (0)")
    parser.add_argument("--out", metavar="C", required=True, help="table to write: .csv, .csv.gz, or else Parquet")
    add_json(parser)


def make_random(arguments: argparse.Namespace) -> int:
    from omen.workloads import Distribution, random_rounds

    workload = _read(arguments)
    distribution = Distribution.recorded(workload.info)
    with working("drawing"):
        trace = random_rounds(
            workload.interests, arguments.rounds, arguments.join_probability, arguments.seed, distribution
        )
    told = {"rounds": arguments.rounds, "join_probability": arguments.join_probability}
    return _finish(arguments, workload, trace, told, distribution is not None)


def make_lifetimes(arguments: argparse.Namespace) -> int:
    from omen.workloads import Distribution, lifetimes

    workload = _read(arguments)
    distribution = Distribution.recorded(workload.info)
    mean_down = arguments.mean_up / 4 if arguments.mean_down is None else arguments.mean_down
    with working("drawing"):
        trace = lifetimes(
            workload.interests,
            arguments.mean_up,
            mean_down,
            arguments.duration,
            arguments.seed,
            distribution,
            arguments.graceful,
        )
    told = {"mean_up": arguments.mean_up, "mean_down": mean_down, "duration": arguments.duration}
    return _finish(arguments, workload, trace, told, distribution is not None)


def _read(arguments: argparse.Namespace) -> Workload:
    from omen.tables import read_workload

    with working("reading"):
        return read_workload(arguments.workload)


def _finish(arguments: argparse.Namespace, workload: Workload, trace: Trace, told: dict[str, Any], drawn: bool) -> int:
    from omen.tables import event_word, write_churn

    with working("writing"):
        write_churn(arguments.out, trace, workload.interests)
    words = [event_word(event) for event in trace]
    events = {word: words.count(word) for word in sorted(set(words))}
    interests = "drawn as the workload's were" if drawn else "copied from random nodes"
    if arguments.json:
        facts = {"events": len(trace), "by_event": events, "new_interests": interests, "seed": arguments.seed}
        print_json(told | facts | {"out": arguments.out})
    else:
        facts_shown = [("events", len(trace)), *((f"  {word}", number) for word, number in events.items())]
        print_facts([*facts_shown, ("new interests", interests), ("written to", arguments.out)])
    return 0

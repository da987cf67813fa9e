"""omen design: which links?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload, at_least
from omen.cli.declared_options import add_declared_options, given_options, listed, told
from omen.cli.output import print_facts, print_json, shown
from omen.cli.progress import counting, working
from omen.cli.spark_options import add_spark_options, spark_options
from omen.design import resolve_options
from omen.design.schedule import PART_NODES, PART_NODES_GM, default_part_nodes, parse_schedule, read_seed, rho_of
from omen.errors import InvalidInput
from omen.systems import ALGORITHMS, find_algorithm

if TYPE_CHECKING:
    from omen.design import Algorithm
    from omen.design.rounds import Rounds

EPILOG = """\
example:
  omen design --workload w --algorithm low-oda --rho 3 --out o.parquet
  omen design --workload w --algorithm low-oda --rounds auto --out o.parquet
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "design",
        help="build an overlay from scratch with one of the algorithms",
        description="Build an overlay from scratch: the links that connect the subscribers of every topic.",
        epilog=f"{listed('algorithms', ALGORITHMS)}\n\n{EPILOG}",
    )
    add_workload(parser)
    parser.add_argument("--algorithm", metavar="A", default="low-oda", help="one of those below (low-oda)")
    add_declared_options(parser, ALGORITHMS)
    _add_rounds_options(parser)
    parser.add_argument("--out", metavar="O", help="table of links to write; without it the result is only shown")
    parser.add_argument(
        "--engine",
        choices=("local", "spark"),
        default="local",
        help="where it is built; spark: per-topic, or in rounds (local)",
    )
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=design)


def _add_rounds_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rounds", "gm, low-oda and minmax-oda for workloads of any size")
    group.add_argument("--rounds", metavar="R", help="auto, or steps such as m4c6,m3c12,r2 (the exact algorithm)")
    group.add_argument("--workers", metavar="N", type=at_least(1), help="threads; never changes the result (all cores)")
    group.add_argument(
        "--part-nodes", metavar="N", type=at_least(2), help=f"nodes of a part ({PART_NODES}; gm: {PART_NODES_GM})"
    )
    group.add_argument("--caps", metavar="C", type=at_least(1), help="most links of a node, where that is possible")


def design(arguments: argparse.Namespace) -> int:
    algorithm = find_algorithm(arguments.algorithm)
    given = given_options(arguments)
    if arguments.rounds is not None:
        arguments.rounds_seed = read_seed(given.pop("seed", 0))
    options = resolve_options(algorithm, given)
    _require_rounds_options(arguments, algorithm.name)
    result = (_design_on_spark if arguments.engine == "spark" else _design_here)(arguments, algorithm, options)
    if arguments.json:
        print_json(result)
    else:
        _print_result(result)
    return 0


def _require_rounds_options(arguments: argparse.Namespace, algorithm: str) -> None:
    """Refuse what makes no sense together, before anything is read."""
    if arguments.rounds is None:
        for name in ("workers", "part_nodes", "caps"):
            if getattr(arguments, name) is not None:
                raise InvalidInput(f"--{name.replace('_', '-')} is for designs in rounds: give --rounds auto")
        return
    rho_of(algorithm, {"rho": 1.0})
    if arguments.rounds != "auto":
        parse_schedule(arguments.rounds)


def _rounds(arguments: argparse.Namespace, algorithm: str, options: dict[str, Any]) -> Rounds:
    from omen.design.rounds import Rounds

    return Rounds(
        rho=rho_of(algorithm, options),
        part_nodes=arguments.part_nodes or default_part_nodes(algorithm),
        seed=arguments.rounds_seed,
        workers=arguments.workers or 0,
        most_links=arguments.caps or 0,
    )


def _design_on_spark(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.pipeline.engines import require_built_on_spark
    from omen.pipeline.session import spark_session

    require_built_on_spark(algorithm.name, in_rounds=arguments.rounds is not None)
    if not arguments.out:
        raise InvalidInput("--engine spark needs --out: a folder for the links")
    told = None
    with spark_session(spark_options(arguments)) as spark:
        if arguments.rounds is None:
            from omen.pipeline.per_topic import design_workload

            found, seconds = design_workload(spark, arguments.workload, algorithm.name, options, arguments.out)
        else:
            from omen.pipeline import rounds
            from omen.systems.designing import describe_rounds

            settings = _rounds(arguments, algorithm.name, options)
            job = rounds.Job(arguments.workload, settings, arguments.rounds, f"{arguments.out.rstrip('/')}.rounds")
            found, state, seconds = rounds.design_workload(spark, job, arguments.out)
            told = describe_rounds(state.rounds, state.last)
    return {
        "algorithm": algorithm.name,
        "options": options,
        "nodes": found.nodes,
        "topics": found.topics,
        "edges": found.edges,
        "avg_degree": found.avg_degree,
        "max_degree": found.max_degree,
        "topic_connected": found.topic_connected,
        "k_promised": algorithm.promise(options),
        "design_s": seconds,
        "rounds": told,
        "out": arguments.out,
    }


def _design_here(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.systems.designing import design_rounds_timed, design_timed
    from omen.tables import read_workload, require_table_name, write_overlay

    if arguments.out:
        require_table_name(arguments.out)
    with working("reading"):
        interests = read_workload(arguments.workload).interests
    if arguments.rounds is None:
        with working(f"designing with {algorithm.name}"):
            designed = design_timed(algorithm, interests, options)
    else:
        settings = _rounds(arguments, algorithm.name, options)
        with counting(f"designing with {algorithm.name} in rounds", interests.subscription_count) as tell:
            designed = design_rounds_timed(
                algorithm,
                interests,
                options,
                settings,
                arguments.rounds,
                lambda facts: tell(interests.subscription_count - facts.left),
            )
    if arguments.out:
        with working("writing"):
            write_overlay(arguments.out, designed.overlay, designed.record())
    with working("checking"):
        summary = designed.summary()
    return summary | {"out": arguments.out}


def _print_result(result: dict[str, Any]) -> None:
    settings = told(result["options"])
    print_facts(
        [
            ("algorithm", f"{result['algorithm']} ({settings})" if settings else result["algorithm"]),
            *([("in rounds", result["rounds"]["schedule"])] if result["rounds"] else []),
            ("nodes", result["nodes"]),
            ("topics", result["topics"]),
            ("links", result["edges"]),
            ("average degree", result["avg_degree"]),
            ("maximum degree", result["max_degree"]),
            ("topic-connected", result["topic_connected"]),
            ("designed in", f"{shown(result['design_s'])} s"),
            ("written to", result["out"]),
        ]
    )

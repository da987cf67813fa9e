"""omen design: which links?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload, at_least, offer_names
from omen.cli.declared_options import add_declared_options, given_options, listed, told
from omen.cli.fleet_options import (
    add_rule_tables,
    add_sigma,
    read_fleet,
    refuse_rules_on_spark,
    require_costs,
    require_ruled,
)
from omen.cli.output import OVERLAY_LINES, explain, overlay_facts, print_facts, print_json, print_table, shown
from omen.cli.progress import counting, working
from omen.cli.spark_options import add_spark_options, spark_options
from omen.design import resolve_options
from omen.design.schedule import ROUNDS, parse_schedule, read_seed, rho_of
from omen.errors import InvalidInput
from omen.systems import ALGORITHMS, find_algorithm

if TYPE_CHECKING:
    from omen.design import Algorithm
    from omen.design.rounds import Rounds

LINES = OVERLAY_LINES | {
    "cost of links": "by the table of links or the costs between zones",
    "between zones": "links whose ends are in different zones",
    "within the rules": "whether caps, forbidden and required links are kept",
    "designed in": "time in the algorithm alone",
}
COLUMNS = {
    "changes": "links made or dropped so far, in the order of what they gain",
    "maximum degree": "links of the node with the most, after so many changes",
    "links": "of the overlay, after so many changes",
}
EPILOG = """\
example:
  omen design --workload w --algorithm low-oda --rho 3 --out o.parquet
  omen design --workload w --algorithm low-oda --rounds auto --out o.parquet
  omen design --workload w --algorithm minmax-oda --polish --out o.parquet
  omen design --workload w --from today.csv --changes 20 --out o.parquet
  omen design --workload w --nodes brokers.csv --links links.csv --zone-costs zones.csv --sigma 4 --out o.parquet

exit codes: 0 done, 1 the rules of a fleet leave a topic split or cut, 2 bad input
"""
SHOWN = 10


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "design",
        help="build an overlay from scratch with one of the algorithms",
        description="Build an overlay from scratch: the links that connect the subscribers of every topic.",
        epilog=f"{listed('algorithms', ALGORITHMS)}\n\n{EPILOG}"
        + explain("\nlines", LINES)
        + explain("\ncolumns, with --from", COLUMNS),
    )
    add_workload(parser)
    named = parser.add_argument("--algorithm", metavar="A", default="low-oda", help="one of those below (low-oda)")
    offer_names(named, ALGORITHMS)
    add_declared_options(parser, ALGORITHMS)
    _add_rounds_options(parser)
    add_rule_tables(parser)
    add_sigma(parser)
    parser.add_argument(
        "--best-effort", action="store_true", help="write the overlay also where rules leave a topic split"
    )
    parser.add_argument("--from", dest="start", metavar="O", help="begin with the links of this overlay")
    parser.add_argument(
        "--changes", metavar="N", type=at_least(0), help="with --from: most links made and dropped (as many as help)"
    )
    parser.add_argument(
        "--polish",
        action="store_true",
        help="a local search after gm, low-oda, minmax-oda: fewer links, lower degrees",
    )
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
    group.add_argument("--part-nodes", metavar="N", type=at_least(2), help="nodes of a part (chosen from the workload)")
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
    return 0 if result.get("fleet") is None or is_feasible(result["fleet"]) else 1


def is_feasible(fleet: dict[str, Any]) -> bool:
    """Whether rules and topics are all satisfied."""
    return fleet["within_rules"] and not fleet["split_topics"] and not fleet["cut_topics"]


def _require_rounds_options(arguments: argparse.Namespace, algorithm: str) -> None:
    """Refuse what makes no sense together, before anything is read."""
    if arguments.polish:
        if algorithm not in ROUNDS:
            raise InvalidInput(f"--polish is for {', '.join(ROUNDS)}: it keeps topics connected, and no more than that")
        if arguments.rounds is not None or arguments.start is not None or arguments.engine == "spark":
            raise InvalidInput("--polish follows an exact design: it goes with neither --rounds, --from nor Spark")
    if arguments.changes is not None and arguments.start is None:
        raise InvalidInput("--changes is for --from: it bounds the links made and dropped")
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
        part_nodes=arguments.part_nodes or 0,
        seed=arguments.rounds_seed,
        workers=arguments.workers or 0,
        most_links=arguments.caps or 0,
    )


def _design_on_spark(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.pipeline.engines import require_built_on_spark, require_table
    from omen.pipeline.session import spark_session

    require_built_on_spark(algorithm.name, in_rounds=arguments.rounds is not None)
    refuse_rules_on_spark(arguments, "sigma", "start")
    if not arguments.out:
        raise InvalidInput("--engine spark needs --out: a folder for the links")
    require_table(arguments.workload, "interests")
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
        "per_topic_mesh_links": found.mesh_links,
        "k_promised": algorithm.promise(options),
        "design_s": seconds,
        "rounds": told,
        "fleet": None,
        "from": None,
        "polished": None,
        "out": arguments.out,
    }


def _design_here(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.fleet.designing import SIGMA
    from omen.systems.designing import Start, design_fleet_timed, design_rounds_timed, design_timed, polish_timed
    from omen.tables import read_overlay, read_workload, require_table_name, write_overlay

    if arguments.out:
        require_table_name(arguments.out)
    with working("reading"):
        interests = read_workload(arguments.workload).interests
        rules = read_fleet(arguments, interests)
        start = None if arguments.start is None else Start(read_overlay(arguments.start, interests), arguments.changes)
    require_ruled(algorithm.name, arguments.rounds is not None, not rules.is_empty, start is not None)
    require_costs(arguments, rules)
    if arguments.polish and not rules.is_empty:
        raise InvalidInput("--polish knows no rules: --from O with the tables of rules is a local search that does")
    if not rules.is_empty or start is not None:
        with working(f"designing with {algorithm.name} under the rules"):
            designed = design_fleet_timed(algorithm, interests, options, rules, arguments.sigma or SIGMA, start)
    elif arguments.rounds is None:
        with working(f"designing with {algorithm.name}"):
            designed = design_timed(algorithm, interests, options)
        if arguments.polish:
            with working("polishing"):
                designed = polish_timed(designed)
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
    with working("checking"):
        summary = designed.summary()
    out = arguments.out
    if out and summary["fleet"] is not None and not is_feasible(summary["fleet"]) and not arguments.best_effort:
        out = None
    if out:
        with working("writing"):
            write_overlay(out, designed.overlay, designed.record())
    return summary | {"out": out}


def _print_result(result: dict[str, Any]) -> None:
    settings = told(result["options"])
    print_facts(
        [
            ("algorithm", f"{result['algorithm']} ({settings})" if settings else result["algorithm"]),
            *([("in rounds", result["rounds"]["schedule"])] if result["rounds"] else []),
            *overlay_facts(result),
            *_fleet_facts(result.get("fleet")),
            ("topic-connected", result["topic_connected"]),
            *_polish_facts(result.get("polished")),
            ("designed in", f"{shown(result['design_s'])} s"),
            ("written to", result["out"]),
        ]
    )
    if result.get("from") is not None:
        print()
        print_table(
            COLUMNS,
            [(shown(p["changes"]), p["max_degree"], p["links"]) for p in result["from"]["curve"]],
        )
    if result.get("fleet") is not None and not is_feasible(result["fleet"]):
        _print_infeasible(result["fleet"], result["out"])


def _polish_facts(before: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if before is None:
        return []
    links, average, most = (shown(before[f"{name}_before"]) for name in ("edges", "avg_degree", "max_degree"))
    return [("before polishing", f"{links} links, average degree {average}, maximum {most}")]


def _fleet_facts(fleet: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if fleet is None:
        return []
    return [
        ("cost of links", f"{fleet['cost']:,g} (sigma {fleet['sigma']:g})"),
        ("between zones", fleet["links_between_zones"]),
        ("within the rules", fleet["within_rules"]),
    ]


def _print_infeasible(fleet: dict[str, Any], out: str | None) -> None:
    split, cut = fleet["split_topics"], fleet["cut_topics"]
    if split:
        print(f"\nThe rules leave {_count_topics(split)} split: {_some(split)}")
    if cut:
        print(f"\nThe rules leave {_count_topics(cut)} that a single loss would split: {_some(cut)}")
    if fleet["violations"]:
        _print_some("Not within the rules:", fleet["violations"])
    if (split or cut) and not fleet["certificates"]:
        print("\nIt is not proved that no overlay would do; this design found none.")
    if fleet["certificates"]:
        _print_some("Why:", [proof["text"] for proof in fleet["certificates"]])
    if fleet["enough"]:
        _print_some("Enough would be, all of it together:", fleet["enough"]["text"])
    if not out:
        print("\nNothing was written; --best-effort --out O writes the overlay as it is.")


def _count_topics(topics: list[Any]) -> str:
    return f"{len(topics):,} {'topic' if len(topics) == 1 else 'topics'}"


def _some(topics: list[Any]) -> str:
    more = f" and {len(topics) - SHOWN:,} more" if len(topics) > SHOWN else ""
    return ", ".join(map(str, topics[:SHOWN])) + more


def _print_some(title: str, lines: list[str]) -> None:
    print(f"\n{title}")
    for line in lines[:SHOWN]:
        print(f"  {line}")
    if len(lines) > SHOWN:
        print(f"  and {len(lines) - SHOWN:,} more (--json lists all)")

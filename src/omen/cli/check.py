"""omen check: is an overlay topic-connected?"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload, at_least
from omen.cli.fleet_options import add_rule_tables, read_fleet, refuse_rules_on_spark
from omen.cli.output import OVERLAY_LINES, explain, overlay_facts, print_facts, print_json, print_table, say, shown
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options, spark_options
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.quality import Check

LINES = OVERLAY_LINES | {
    "mean diameter": "the most hops between two subscribers, on average over topics that have two or more",
    "maximum diameter": "the most hops between two subscribers of any topic",
    "within the rules": "whether caps, forbidden and required links are kept",
}
COLUMNS = {
    "topic": "a topic whose subscribers are not connected as asked for",
    "subscribers": "nodes that want it",
    "pieces": "groups of its subscribers that no link among subscribers connects; 1: it is connected",
    "connectivity": "how many subscribers have to be lost before it splits; 0: it is split",
}
EPILOG = """\
example:
  omen check --workload w --overlay o.parquet --k 2

exit codes: 0 it holds, 1 it does not, 2 bad input
"""
SHOWN_TOPICS = 10


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="judge an overlay: exit 0 only if every topic is connected",
        description="Judge whether the subscribers of every topic are connected (k-connected) among themselves.",
        epilog=EPILOG + explain("\nlines", LINES) + explain("\ncolumns, where topics do not hold", COLUMNS),
    )
    add_workload(parser)
    parser.add_argument("--overlay", metavar="O", required=True, help="table of links: u, v")
    parser.add_argument("--k", metavar="K", type=at_least(1), default=1, help="connectivity asked for (1)")
    parser.add_argument("--diameters", action="store_true", help="also measure how many hops each topic spans")
    parser.add_argument("--engine", choices=("local", "spark"), default="local", help="where it is computed (local)")
    parser.add_argument(
        "--tables", metavar="DIR", help="with --engine spark: write the tables topics and degrees there"
    )
    add_rule_tables(parser)
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=check)


def check(arguments: argparse.Namespace) -> int:
    if arguments.engine == "spark":
        refuse_rules_on_spark(arguments)
    if arguments.tables is not None and arguments.engine != "spark":
        raise InvalidInput("--tables needs --engine spark: the tables topics and degrees are written there only")
    verdict, result = _check_on_spark(arguments) if arguments.engine == "spark" else _check_here(arguments)
    if arguments.json:
        print_json(result)
    else:
        _print_verdict(verdict, result)
    return 0 if verdict.holds and not result.get("violations") else 1


def _check_here(arguments: argparse.Namespace) -> tuple[Check, dict[str, Any]]:
    from omen.fleet import describe_violations
    from omen.quality import (
        check_overlay,
        degree_summary,
        diameter_summary,
        per_topic_mesh_links,
        topic_diameters,
    )
    from omen.tables import read_overlay, read_workload

    with working("reading"):
        interests = read_workload(arguments.workload).interests
        overlay = read_overlay(arguments.overlay, interests)
        rules = read_fleet(arguments, interests)
    with working("checking"):
        verdict = check_overlay(interests, overlay, k=arguments.k)
    degrees = degree_summary(overlay)
    result: dict[str, Any] = {
        "holds": verdict.holds,
        "k": verdict.k,
        "topic_connected": verdict.topic_connected,
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "edges": overlay.link_count,
        "avg_degree": degrees.average,
        "max_degree": degrees.maximum,
        "per_topic_mesh_links": per_topic_mesh_links(interests).links,
        "degree_histogram": degrees.histogram,
        "broken_topics": len(verdict.failing),
        "broken": [asdict(topic) for topic in verdict.failing],
    }
    if not rules.is_empty:
        result["violations"] = describe_violations(overlay, rules)
    if arguments.diameters:
        with working("measuring diameters"):
            diameters = diameter_summary(interests, topic_diameters(interests, overlay))
        result |= {"mean_diameter": diameters.mean, "max_diameter": diameters.maximum}
    return verdict, result


def _check_on_spark(arguments: argparse.Namespace) -> tuple[Check, dict[str, Any]]:
    from omen.pipeline.engines import require_table
    from omen.pipeline.session import spark_session

    require_table(arguments.workload, "interests")
    require_table(arguments.overlay, "overlay")
    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.evaluate import EXACT_UP_TO, evaluate_overlay

        if arguments.diameters:
            say(f"diameters are exact for topics of up to {EXACT_UP_TO:,} subscribers, and bounded above")
        found = evaluate_overlay(
            spark, arguments.workload, arguments.overlay, arguments.k, arguments.diameters, arguments.tables
        )
    return found.verdict, found.as_dict()


def _print_verdict(verdict: Check, result: dict[str, Any]) -> None:
    asked = "topic-connected" if verdict.k == 1 else f"{verdict.k}-topic-connected"
    facts: list[tuple[str, Any]] = [
        (asked, verdict.holds),
        *overlay_facts(result),
    ]
    if "mean_diameter" in result:
        facts += [
            ("mean diameter", f"{shown(result['mean_diameter'])} (of topics with two subscribers or more)"),
            ("maximum diameter", result["max_diameter"]),
        ]
    if "violations" in result:
        facts.append(("within the rules", not result["violations"]))
    print_facts(facts)
    for line in result.get("violations", [])[:SHOWN_TOPICS]:
        print(f"  {line}")
    if len(result.get("violations", [])) > SHOWN_TOPICS:
        print(f"  and {len(result['violations']) - SHOWN_TOPICS:,} more (--json lists all)")
    if not verdict.failing:
        return
    print(f"\n{result['broken_topics']:,} of {verdict.topics:,} topics do not hold:")
    rows = [(t.topic, t.subscribers, t.components, t.connectivity) for t in verdict.failing[:SHOWN_TOPICS]]
    rows_as_text = [(str(topic), *numbers) for topic, *numbers in rows]
    print_table(COLUMNS, rows_as_text, indent="  ")
    if result["broken_topics"] > SHOWN_TOPICS:
        lists = "all" if len(verdict.failing) == result["broken_topics"] else f"{len(verdict.failing):,}"
        print(f"  and {result['broken_topics'] - SHOWN_TOPICS:,} more (--json lists {lists})")

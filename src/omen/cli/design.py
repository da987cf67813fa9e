"""omen design: which links?"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.declared_options import add_declared_options, given_options, listed, told
from omen.cli.output import print_facts, print_json, shown
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options
from omen.design import resolve_options
from omen.systems import ALGORITHMS, find_algorithm

if TYPE_CHECKING:
    from omen.design import Algorithm
    from omen.interests import Interests
    from omen.overlay import Overlay

EPILOG = """\
example:
  omen design --workload w --algorithm low-oda --rho 3 --out o.parquet
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
    parser.add_argument("--out", metavar="O", help="table of links to write; without it the result is only shown")
    parser.add_argument(
        "--engine", choices=("local", "spark"), default="local", help="where it is built; spark: per-topic only (local)"
    )
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=design)


def design(arguments: argparse.Namespace) -> int:
    algorithm = find_algorithm(arguments.algorithm)
    options = resolve_options(algorithm, given_options(arguments))
    result = (_design_on_spark if arguments.engine == "spark" else _design_here)(arguments, algorithm, options)
    if arguments.json:
        print_json(result)
    else:
        _print_result(result)
    return 0


def _design_on_spark(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.cli.on_spark import design_overlay

    return design_overlay(arguments, algorithm, options)


def _design_here(arguments: argparse.Namespace, algorithm: Algorithm, options: dict[str, Any]) -> dict[str, Any]:
    from omen.quality import check_overlay, degree_summary
    from omen.tables import read_workload, write_overlay

    with working("reading"):
        interests = read_workload(arguments.workload).interests
    with working(f"designing with {algorithm.name}"):
        overlay, seconds = build_timed(algorithm, interests, options)
    if arguments.out:
        with working("writing"):
            write_overlay(arguments.out, overlay)
    with working("checking"):
        verdict = check_overlay(interests, overlay)
    degrees = degree_summary(overlay)
    return {
        "algorithm": algorithm.name,
        "options": options,
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "edges": overlay.link_count,
        "avg_degree": degrees.average,
        "max_degree": degrees.maximum,
        "topic_connected": verdict.topic_connected,
        "k_promised": algorithm.promise(options),
        "design_s": seconds,
        "out": arguments.out,
    }


def build_timed(algorithm: Algorithm, interests: Interests, options: dict[str, Any]) -> tuple[Overlay, float]:
    """The overlay, and the seconds in the algorithm alone: its kernels are loaded before the clock starts."""
    algorithm.build(type(interests).from_pairs([(0, 0), (1, 0)]), **options)
    started = time.perf_counter()
    overlay = algorithm.build(interests, **options)
    return overlay, time.perf_counter() - started


def _print_result(result: dict[str, Any]) -> None:
    settings = told(result["options"])
    print_facts(
        [
            ("algorithm", f"{result['algorithm']} ({settings})" if settings else result["algorithm"]),
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

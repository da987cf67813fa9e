"""omen workload: make one up, or bring one in."""

from __future__ import annotations

import argparse
from typing import Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working

EPILOG = """\
example:
  omen workload synth --nodes 1000 --topics 100 --popularity zipf:1 --sizes uniform:5:20 --seed 7 --out w
  omen workload import --table subscriptions.csv --node-column user --topic-column channel --out w
"""
SYNTH_EPILOG = """\
example:
  omen workload synth --nodes 1000 --topics 100 --popularity zipf:1 --sizes uniform:5:20 --seed 7 --out w

popularity of topics: uniform; zipf:ALPHA; expo:RATE; expo, in which a tenth of the topics hold 0.55 of the interest
topics a node wants:  K; uniform:A:B; powerlaw:A:B or powerlaw:A:B:EXPONENT (exponent 2)
"""
IMPORT_EPILOG = """\
example:
  omen workload import --table subscriptions.csv --node-column user --topic-column channel --out w

A bad row is counted and kept in the table `rejected` of the workload, with its file, number and reason.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "workload",
        help="make a workload (who wants which topic), or import one",
        description="Make a workload, a folder that says who wants which topic, or import one from a table.",
        epilog=EPILOG,
    )
    kinds = parser.add_subparsers(metavar="KIND", required=True, title="kinds")
    _add_synth(kinds)
    _add_import(kinds)


def _add_synth(kinds: Any) -> None:
    parser = kinds.add_parser(
        "synth",
        help="synthetic: popularity of topics and sizes of interests by distribution",
        description="Make up a workload. The same seed gives the same workload, anywhere.",
        epilog=SYNTH_EPILOG,
    )
    parser.add_argument("--nodes", metavar="N", type=at_least(1), required=True, help="how many nodes")
    parser.add_argument("--topics", metavar="T", type=at_least(1), required=True, help="how many topics to draw from")
    parser.add_argument("--popularity", metavar="P", default="uniform", help="how popular topics are (uniform)")
    parser.add_argument("--sizes", metavar="S", required=True, help="how many topics a node wants")
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=0, help="of the random choices (0)")
    parser.add_argument("--out", metavar="W", required=True, help="folder to write")
    add_json(parser)
    parser.set_defaults(handler=synthesise)


def _add_import(kinds: Any) -> None:
    parser = kinds.add_parser(
        "import",
        help="from a table of subscriptions, or lines of a node and its topics",
        description="Make a workload of a table of subscriptions: Parquet, or CSV with a header.",
        epilog=IMPORT_EPILOG,
    )
    parser.add_argument("--table", metavar="FILE", required=True, help="the table to read")
    parser.add_argument(
        "--format",
        choices=("table", "adjacency"),
        default="table",
        help="table: a row a subscription; adjacency: a line a node, its topics after it (table)",
    )
    parser.add_argument("--node-column", metavar="C", default="node", help="column of the node (node)")
    parser.add_argument("--topic-column", metavar="C", default="topic", help="column of the topic (topic)")
    parser.add_argument("--max-rejected", metavar="N", type=at_least(0), help="stop where more rows are bad")
    parser.add_argument("--out", metavar="W", required=True, help="folder to write")
    add_json(parser)
    parser.set_defaults(handler=import_table)


def synthesise(arguments: argparse.Namespace) -> int:
    from omen.tables import write_workload
    from omen.workloads import Popularity, Sizes, generate_interests

    popularity, sizes = Popularity.parse(arguments.popularity), Sizes.parse(arguments.sizes)
    with working("drawing"):
        interests = generate_interests(arguments.nodes, arguments.topics, popularity, sizes, arguments.seed)
    info = {
        "kind": "synth",
        "nodes": arguments.nodes,
        "topics": arguments.topics,
        "popularity": str(popularity),
        "sizes": str(sizes),
        "seed": arguments.seed,
    }
    with working("writing"):
        write_workload(arguments.out, interests, info)
    counts = {
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "subscriptions": interests.subscription_count,
    }
    if arguments.json:
        print_json(info | counts | {"out": arguments.out})
    else:
        print_facts([*counts.items(), ("written to", arguments.out)])
    return 0


def import_table(arguments: argparse.Namespace) -> int:
    raise NotImplementedError

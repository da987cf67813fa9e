"""omen workload: make one up, or bring one in."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options
from omen.cli.workload_profile import add_profile
from omen.cli.workload_social import add_social

if TYPE_CHECKING:
    from omen.interests import Interests

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
    add_social(kinds)
    add_profile(kinds)


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
    _add_engine(parser, "5 million expected subscriptions")
    add_json(parser)
    parser.set_defaults(handler=synthesise)


def _add_import(kinds: Any) -> None:
    parser = kinds.add_parser(
        "import",
        help="from a table of subscriptions, or from adjacency lines",
        description="Make a workload of a table of subscriptions: Parquet, CSV with a header, JSON lines.",
        epilog=IMPORT_EPILOG,
    )
    parser.add_argument("--table", metavar="FILE", required=True, help="the table to read")
    parser.add_argument(
        "--format",
        choices=("table", "adjacency"),
        default="table",
        help="table: a row a subscription; adjacency: line n holds the number of topics of node n, then them (table)",
    )
    parser.add_argument("--node-column", metavar="C", default="node", help="column of the node (node)")
    parser.add_argument("--topic-column", metavar="C", default="topic", help="column of the topic (topic)")
    parser.add_argument("--max-rejected", metavar="N", type=at_least(0), help="stop where more rows are bad")
    parser.add_argument("--out", metavar="W", required=True, help="folder to write")
    _add_engine(parser, "500 MB")
    add_json(parser)
    parser.set_defaults(handler=import_table)


def _add_engine(parser: argparse.ArgumentParser, size: str) -> None:
    text = f"where it is made; auto: spark from {size} on, if it is installed (auto)"
    parser.add_argument("--engine", choices=("auto", "local", "spark"), default="auto", help=text)
    add_spark_options(parser)


def synthesise(arguments: argparse.Namespace) -> int:
    from omen.cli import on_spark
    from omen.workloads import Popularity, Sizes

    popularity, sizes = Popularity.parse(arguments.popularity), Sizes.parse(arguments.sizes)
    info = {
        "made": "synth",
        "nodes": arguments.nodes,
        "topics": arguments.topics,
        "popularity": str(popularity),
        "sizes": str(sizes),
        "seed": arguments.seed,
    }
    counts = on_spark.synthesise(arguments, info) or _synthesise_here(arguments, info)
    if arguments.json:
        print_json(info | counts | {"out": arguments.out})
    else:
        print_facts([*counts.items(), ("written to", arguments.out)])
    return 0


def _synthesise_here(arguments: argparse.Namespace, info: dict[str, Any]) -> dict[str, int]:
    from omen.tables import write_workload
    from omen.workloads import generate_interests

    with working("drawing"):
        interests = generate_interests(
            arguments.nodes, arguments.topics, arguments.popularity, arguments.sizes, arguments.seed
        )
    with working("writing"):
        write_workload(arguments.out, interests, info)
    return _counts(interests)


def import_table(arguments: argparse.Namespace) -> int:
    from omen.cli import on_spark

    result = on_spark.import_table(arguments) or _import_here(arguments)
    if arguments.json:
        print_json(result)
        return 0
    facts: list[tuple[str, Any]] = [("rows read", result["rows"])]
    facts += [(name, result[name]) for name in ("nodes", "topics", "subscriptions")]
    facts += [("duplicates merged", result["duplicates"]), ("rows rejected", result["rejected"])]
    facts += [(f"  {reason}", number) for reason, number in result["rejected_by_reason"].items()]
    print_facts([*facts, ("written to", result["out"])])
    return 0


def _import_here(arguments: argparse.Namespace) -> dict[str, Any]:
    from omen.errors import InvalidTable
    from omen.tables import write_workload
    from omen.workloads import import_subscriptions

    with working("reading"):
        imported = import_subscriptions(
            arguments.table, arguments.format, arguments.node_column, arguments.topic_column
        )
    rejected, most = len(imported.rejected), arguments.max_rejected
    if most is not None and rejected > most:
        first = imported.rejected[0]
        raise InvalidTable(
            f"{arguments.table}: {rejected} of {imported.rows} rows are bad, more than the {most} of --max-rejected;"
            f" the first is row {first.row} of {first.source_file}: {first.reason}"
        )
    info = {
        "made": "import",
        "table": arguments.table,
        "format": arguments.format,
        "rows": imported.rows,
        "duplicates": imported.duplicates,
    }
    with working("writing"):
        write_workload(arguments.out, imported.interests, info, imported.rejected)
    reasons = {"rejected": rejected, "rejected_by_reason": imported.reasons}
    return info | _counts(imported.interests) | reasons | {"out": arguments.out}


def _counts(interests: Interests) -> dict[str, int]:
    return {
        "nodes": interests.node_count,
        "topics": interests.topic_count,
        "subscriptions": interests.subscription_count,
    }

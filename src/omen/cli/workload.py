"""omen workload: make one up, or bring one in."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_encoding, add_json, at_least
from omen.cli.output import explain, print_facts, print_json, say
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options, asked_engine, require_cluster, spark_options
from omen.cli.workload_profile import add_profile
from omen.cli.workload_social import add_social

if TYPE_CHECKING:
    from omen.pipeline.synth import Synthesis

LOUD_FROM = 0.01
"""Share of rejected rows from which an import says so in a line of its own."""

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
LINES = {
    "rows read": "of the table, good and bad",
    "subscriptions": "pairs of a node and a topic that it wants",
    "duplicates merged": "rows that stood in the table more than once",
    "rows rejected": "rows that cannot be used, by reason",
    "engine": "where it was made, and why there",
}


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
        epilog=IMPORT_EPILOG + explain("\nlines", LINES),
    )
    parser.add_argument("--table", metavar="FILE", required=True, help="the table to read")
    parser.add_argument(
        "--format",
        choices=("table", "adjacency"),
        default="table",
        help="table: a row per subscription; adjacency: line n holds the number of topics of node n, then them (table)",
    )
    parser.add_argument("--node-column", metavar="C", default="node", help="column of the node (node)")
    parser.add_argument("--topic-column", metavar="C", default="topic", help="column of the topic (topic)")
    add_encoding(parser)
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
    require_cluster(arguments)
    from omen.pipeline.engines import choose_engine
    from omen.pipeline.synth import SPARK_FROM_ROWS, Synthesis
    from omen.tables import require_replaceable
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
    asked = Synthesis(arguments.nodes, arguments.topics, popularity, sizes, arguments.seed)
    asked.check()
    what = f"{asked.expected_rows:,.0f} subscriptions are expected"
    engine = choose_engine(asked_engine(arguments), asked.is_large, what, f"{SPARK_FROM_ROWS:,}")
    require_replaceable(arguments.out, "workload.json")
    counts = _synthesise_on_spark(arguments, asked, info) if engine.is_spark else _synthesise_here(arguments, info)
    if arguments.json:
        print_json(info | counts | engine.as_dict() | {"out": arguments.out})
    else:
        print_facts([*counts.items(), ("engine", engine), ("written to", arguments.out)])
    return 0


def _synthesise_on_spark(arguments: argparse.Namespace, asked: Synthesis, info: dict[str, Any]) -> dict[str, int]:
    from omen.pipeline.session import spark_session
    from omen.pipeline.synth import synthesise_workload

    with spark_session(spark_options(arguments)) as spark:
        return synthesise_workload(spark, asked, arguments.out, info)


def _synthesise_here(arguments: argparse.Namespace, info: dict[str, Any]) -> dict[str, int]:
    from omen.tables import write_workload
    from omen.workloads import generate_interests

    with working("drawing"):
        interests = generate_interests(
            arguments.nodes, arguments.topics, arguments.popularity, arguments.sizes, arguments.seed
        )
    with working("writing"):
        write_workload(arguments.out, interests, info)
    return interests.counts()


def import_table(arguments: argparse.Namespace) -> int:
    from omen.pipeline.engines import engine_for_table
    from omen.tables import require_replaceable
    from omen.tables.raw import require_encoding

    arguments.encoding = require_encoding(arguments.encoding)
    engine = engine_for_table(asked_engine(arguments), arguments.table, arguments.encoding)
    require_replaceable(arguments.out, "workload.json")
    result = (_import_on_spark if engine.is_spark else _import_here)(arguments) | engine.as_dict()
    _warn_of_import(result)
    if arguments.json:
        print_json(result)
        return 0
    facts: list[tuple[str, Any]] = [("rows read", result["rows"])]
    facts += [(name, result[name]) for name in ("nodes", "topics", "subscriptions")]
    facts += [("duplicates merged", result["duplicates"]), ("rows rejected", result["rejected"])]
    facts += [(f"  {reason}", number) for reason, number in result["rejected_by_reason"].items()]
    print_facts([*facts, ("engine", engine), ("written to", result["out"])])
    return 0


def _warn_of_import(result: dict[str, Any]) -> None:
    """Loud lines for what is likely not what the user wanted."""
    if result["rejected"] > LOUD_FROM * result["rows"]:
        share, table = result["rejected"] / result["rows"], f"{result['out']}/rejected"
        say(f"WARNING: {share:.0%} of the rows were rejected; the table {table} has each with its reason")
    from omen.tables import NOT_TEXT

    if rows := result["rejected_by_reason"].get(NOT_TEXT):
        many = "1 row is" if rows == 1 else f"{rows:,} rows are"
        say(f"WARNING: {many} {NOT_TEXT}: --encoding says how the file is encoded, as in --encoding latin-1")
    if any(result["padded"].values()):
        many = " and ".join(f"{number:,} of the {kind}" for kind, number in result["padded"].items() if number)
        say(f"WARNING: {many} have blanks around their names, and count as other names than those without blanks")


def _import_on_spark(arguments: argparse.Namespace) -> dict[str, Any]:
    from omen.pipeline.session import require_spark, spark_session

    require_spark()
    from omen.pipeline.engines import require_readable

    require_readable(arguments.table)
    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.importing import import_workload

        return import_workload(
            spark,
            arguments.table,
            arguments.out,
            arguments.format,
            arguments.node_column,
            arguments.topic_column,
            arguments.max_rejected,
        )


def _import_here(arguments: argparse.Namespace) -> dict[str, Any]:
    from omen.tables import write_workload
    from omen.workloads import import_subscriptions, require_few_rejected

    with working("reading"):
        imported = import_subscriptions(
            arguments.table, arguments.format, arguments.node_column, arguments.topic_column, arguments.encoding
        )
    require_few_rejected(imported, arguments.table, arguments.max_rejected)
    info = {
        "made": "import",
        "table": arguments.table,
        "format": arguments.format,
        "rows": imported.rows,
        "duplicates": imported.duplicates,
    }
    with working("writing"):
        write_workload(arguments.out, imported.interests, info, imported.rejected)
    reasons = {"rejected": len(imported.rejected), "rejected_by_reason": imported.reasons}
    return info | imported.interests.counts() | reasons | {"padded": imported.padded, "out": arguments.out}

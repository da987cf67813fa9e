"""omen workload profile: what does a workload look like?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload, at_least
from omen.cli.output import explain, print_facts, print_json, print_table, shown
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options, spark_options

if TYPE_CHECKING:
    from omen.workloads.profile import Profile

COLUMNS = {
    "": "what is counted: topics that a node wants, nodes that want a topic",
    "minimum": "the smallest number",
    "median": "half of the nodes, or topics, have no more",
    "mean": "the average",
    "p99": "99 of 100 have no more",
    "maximum": "the largest number",
}
TOPIC_COLUMNS = {
    "largest topics": "by name, those with the most subscribers first",
    "subscribers": "nodes that want it",
}
EPILOG = """\
example:
  omen workload profile --workload w --figure w.svg

how alike interests are: topics that two nodes share, on average; how many times that is what equally popular topics
would give; the share of pairs of nodes that share any topic; and how much of its topics a node shares with each of the
nodes closest to it (--closest), in percent of the shorter list. The last two are over a sample of the nodes (--sample).
"""


def add_profile(kinds: Any) -> None:
    parser = kinds.add_parser(
        "profile",
        help="sizes, popularity, likeness of interests",
        description="Say what a workload looks like: sizes, popularity, how alike interests are.",
        epilog=EPILOG + explain("\ncolumns", COLUMNS, TOPIC_COLUMNS),
    )
    add_workload(parser)
    parser.add_argument(
        "--closest", metavar="D", type=at_least(1), default=20, help="nodes compared with in tdi(D) (20)"
    )
    parser.add_argument("--sample", metavar="N", type=at_least(1), default=1000, help="nodes sampled for it (1000)")
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=0, help="of the sample (0)")
    parser.add_argument("--figure", metavar="FILE", help="draw both distributions: .svg, .png or .pdf")
    parser.add_argument("--table", metavar="FILE", help="write both distributions as a table")
    parser.add_argument("--engine", choices=("local", "spark"), default="local", help="where it is computed (local)")
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=profile)


def profile(arguments: argparse.Namespace) -> int:
    found = _profile_on_spark(arguments) if arguments.engine == "spark" else _profile_here(arguments)
    if arguments.table:
        from omen.tables import write_table

        write_table(arguments.table, found.distributions())
    if arguments.figure:
        from omen.report.profile_figure import draw_profile

        panels = {"topics a node wants": found.sizes.ccdf(), "subscribers of a topic": found.popularity.ccdf()}
        draw_profile(arguments.figure, panels)
    if arguments.json:
        print_json(found.as_dict())
    else:
        _print_profile(found)
    return 0


def _profile_here(arguments: argparse.Namespace) -> Profile:
    from omen.tables import read_workload
    from omen.workloads.profile import profile_workload

    with working("reading"):
        interests = read_workload(arguments.workload).interests
    with working("measuring"):
        return profile_workload(interests, arguments.closest, arguments.sample, arguments.seed)


def _profile_on_spark(arguments: argparse.Namespace) -> Profile:
    from omen.pipeline.engines import require_table
    from omen.pipeline.session import spark_session

    require_table(arguments.workload, "interests")
    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.profile import profile_tables
        from omen.pipeline.reading import read_workload_tables

        tables = read_workload_tables(spark, arguments.workload)
        return profile_tables(tables.interests, tables.nodes, arguments.closest, arguments.sample, arguments.seed)


def _print_profile(found: Profile) -> None:
    likeness = found.likeness
    error = f" +- {likeness.tdi_error:.2f}" if likeness.tdi_error else ""
    print_facts(
        [
            ("nodes", found.nodes),
            ("  without topics", found.nodes_without_topics),
            ("topics", found.topics),
            ("subscriptions", found.subscriptions),
            ("topics two nodes share", likeness.mean_shared),
            ("  compared to chance", f"{likeness.lift:,.2f} times what equally popular topics would give"),
            ("pairs that share any", f"{100 * likeness.sharing_pairs:.2f} %"),
            (f"shared with the {likeness.closest} closest", f"{likeness.tdi:.2f} %{error} of the shorter list"),
            ("  nodes looked at", likeness.sampled),
        ]
    )
    print()
    summaries = {"topics per node": found.sizes.summary(), "subscribers per topic": found.popularity.summary()}
    _, *measures = COLUMNS
    print_table(COLUMNS, [(name, *(values[measure] for measure in measures)) for name, values in summaries.items()])
    if found.largest_topics:
        print()
        print_table(TOPIC_COLUMNS, [(shown(str(t)), count) for t, count in found.largest_topics])

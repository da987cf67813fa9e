"""omen workload social: a sample of a social graph, users as nodes and topics."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import explain, print_facts, print_json, say
from omen.cli.progress import working
from omen.cli.spark_options import add_spark_options, asked_engine, require_cluster, spark_options

if TYPE_CHECKING:
    from omen.workloads.social import Sampled, SocialRequest

EPILOG = """\
example:
  omen workload social --edges facebook_combined.txt.gz --undirected --nodes 1000 --seed 7 --out w
  omen workload social --edges followers.tsv.gz --directed --subscribers-only --nodes 5000 --seed 7 --out w

edge lists: two columns apart by blanks, tabs or commas (SNAP, KONECT, Twitter 2010), or Parquet; # and % comments, a
header and gzip are recognised. In a directed graph the follower subscribes to whom it follows; in an undirected one
friends subscribe to each other. A bad row is kept in the table `rejected` of the workload, with its file, line and
reason. The workload also holds the degrees of graph and sample, as `ccdf.parquet` and, where matplotlib is installed,
`ccdf.svg`.
"""
LINES = {
    "rows read": "edges of the file, good and bad",
    "users in the graph": "of the whole file, as the next line; those below are of the sample",
    "nodes, topics": "users that were sampled, and those of them that another one follows or is a friend of",
    "duplicates merged": "edges that stood in the file more than once",
    "friends in sample and graph": "for every number of friends (or followers, followees) there is a share of users "
    "that have so many or more, in sample and graph; so far apart are the two shares at most; 0%: alike",
    "divided by their mean": "the same for numbers of friends divided by their average: a small sample has fewer",
    "engine": "where it was made, and why there",
}


def add_social(kinds: Any) -> None:
    parser = kinds.add_parser(
        "social",
        help="a breadth-first sample of a social graph",
        description="Sample a social graph breadth first from a few random users. The same seed gives the same sample.",
        epilog=EPILOG + explain("\nlines", LINES),
    )
    parser.add_argument("--edges", metavar="FILE", required=True, help="edge list: a file, a folder or an address")
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--directed", action="store_true", help="a row says that one user follows another")
    direction.add_argument("--undirected", action="store_true", help="a row says that two users are friends")
    parser.add_argument(
        "--follower",
        choices=("first", "second"),
        default="first",
        help="the column of the follower; the Twitter 2010 file has it second (first)",
    )
    parser.add_argument("--subscribers-only", action="store_true", help="walk only users that follow another")
    parser.add_argument("--nodes", metavar="N", type=at_least(1), required=True, help="how many users to sample")
    parser.add_argument("--seeds", metavar="K", type=at_least(1), default=5, help="users to start from (5)")
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=0, help="of the random choices (0)")
    parser.add_argument(
        "--labels",
        choices=("auto", "integer", "text"),
        default="auto",
        help="auto: numbers if all are, else text; integer: reject what is no number (auto)",
    )
    parser.add_argument("--max-rejected", metavar="N", type=at_least(0), help="stop where more rows are bad")
    parser.add_argument("--out", metavar="W", required=True, help="folder to write")
    parser.add_argument(
        "--engine",
        choices=("auto", "local", "spark"),
        default="auto",
        help="where it is made; auto: spark from 50 MB on, and for what is not one file of text (auto)",
    )
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=sample)


def sample(arguments: argparse.Namespace) -> int:
    from omen.pipeline.engines import engine_for_edges, require_readable
    from omen.report.ccdf_figure import write_ccdfs
    from omen.tables import require_replaceable
    from omen.workloads.social import SocialRequest

    asked = SocialRequest(
        edges=arguments.edges,
        directed=arguments.directed,
        follower_second=arguments.follower == "second",
        nodes=arguments.nodes,
        seed=arguments.seed,
        subscribers_only=arguments.subscribers_only,
        seeds=arguments.seeds,
        labels=arguments.labels,
        max_rejected=arguments.max_rejected,
    )
    asked.check()
    require_readable(arguments.edges)
    require_replaceable(arguments.out, "workload.json")
    require_cluster(arguments)
    engine = engine_for_edges(asked_engine(arguments), arguments.edges)
    sampled = (_sample_on_spark if engine.is_spark else _sample_here)(arguments, asked)
    figure = write_ccdfs(arguments.out, sampled.ccdfs)
    rejected = sampled.info["rejected"]
    if arguments.json:
        reasons = {"rejected": sum(rejected.values()), "rejected_by_reason": rejected}
        print_json(sampled.info | sampled.counts | reasons | engine.as_dict() | {"out": arguments.out})
    else:
        _print_sample(sampled, [("engine", engine), ("written to", arguments.out)])
        if not figure:
            say("no figure of the degrees: it needs matplotlib, pip install 'omen-overlay[report]'")
    return 0


def _sample_here(arguments: argparse.Namespace, asked: SocialRequest) -> Sampled:
    from omen.workloads.social import sample_locally

    with working("sampling"):
        return sample_locally(asked, arguments.out)


def _sample_on_spark(arguments: argparse.Namespace, asked: SocialRequest) -> Sampled:
    from omen.pipeline.session import require_spark, spark_session

    require_spark()
    from omen.pipeline.social import sample_social

    with spark_session(spark_options(arguments)) as spark:
        return sample_social(spark, asked, arguments.out)


def _print_sample(sampled: Sampled, last: list[tuple[str, Any]]) -> None:
    info, counts = sampled.info, sampled.counts
    facts: list[tuple[str, Any]] = [
        ("rows read", info["rows"]),
        ("users in the graph", info["graph"]["users"]),
        ("edges in the graph", info["graph"]["edges"]),
        *counts.items(),
        ("duplicates merged", info["duplicates"]),
        ("rows rejected", sum(info["rejected"].values())),
        *((f"  {reason}", rows) for reason, rows in info["rejected"].items()),
    ]
    for count_of, gaps in info["distance"].items():
        facts.append((f"{count_of} in sample and graph", f"at most {gaps['degree']:.0%} of users apart"))
        facts.append(("  divided by their mean", f"at most {gaps['shape']:.0%} of users apart"))
    print_facts([*facts, *last])

"""omen churn google: the machines of a Google cluster come and go, and nodes with them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from omen.cli.arguments import add_json, add_workload, at_least
from omen.cli.output import print_facts, print_json
from omen.cli.spark_options import add_spark_options, require_cluster, spark_options

EPILOG = """\
example:
  omen churn google --machine-events machine_events.csv.gz --workload w --seed 7 --out c

The trace is clusterdata-2011 of google/cluster-data, table machine_events. As many machines as the workload has nodes
are drawn from those present at time 0; ADD becomes join, REMOVE crash, UPDATE is dropped. Bad rows and impossible
events are kept in the table C.rejected, with their file, line and reason. Both tables are folders of Parquet parts.
"""


def add_google(kinds: Any) -> None:
    parser = kinds.add_parser(
        "google",
        help="as the machines of a Google cluster come and go",
        description="Make a trace from the Google cluster trace of 2011. The same seed gives the same trace, anywhere.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "--machine-events", metavar="FILE", required=True, help="the table machine_events, .csv or .csv.gz"
    )
    add_workload(parser)
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=0, help="of the random choices (0)")
    parser.add_argument("--max-rejected", metavar="N", type=at_least(0), help="stop where more rows are bad")
    parser.add_argument("--out", metavar="C", required=True, help="folder to write")
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=make_google)


def make_google(arguments: argparse.Namespace) -> int:
    from omen.errors import CannotWrite
    from omen.pipeline.session import require_spark, spark_session

    if arguments.out.endswith((".csv", ".csv.gz")):
        raise CannotWrite(f"--out {arguments.out}: the trace is a folder of Parquet parts: name it without .csv")
    require_spark()
    from omen.pipeline.engines import require_readable

    for path in (arguments.machine_events, arguments.workload):
        require_readable(path)
    require_cluster(arguments)
    from omen.pipeline.churn_google import write_google_churn

    with spark_session(spark_options(arguments)) as spark:
        made = write_google_churn(
            spark,
            arguments.machine_events,
            arguments.workload,
            arguments.seed,
            arguments.out,
            arguments.max_rejected,
        )
    rejected = sum(made.rejected.values())
    if arguments.json:
        counts = {"rejected": rejected, "rejected_by_reason": made.rejected, "events": made.joins + made.crashes}
        print_json(asdict(made) | counts | {"seed": arguments.seed, "out": arguments.out})
        return 0
    facts: list[tuple[str, Any]] = [
        ("rows read", made.rows),
        ("machines at the start", made.machines),
        ("nodes", made.nodes),
        ("joins", made.joins),
        ("crashes", made.crashes),
        ("updates dropped", made.updates),
        ("rows rejected", rejected),
        *((f"  {reason}", rows) for reason, rows in made.rejected.items()),
        ("days", made.duration_s / 86400),
        ("written to", arguments.out),
    ]
    print_facts(facts)
    return 0

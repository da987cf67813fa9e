"""omen reproduce: the papers' experiments, claims and figures, and a page to look at them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json
from omen.cli.output import explain, print_facts, print_json, print_table, say
from omen.cli.progress import duration, sweeping
from omen.cli.spark_options import add_spark_options, require_cluster, spark_options

if TYPE_CHECKING:
    from omen.report.reproduce import Reproduction

NAMES = ("low-oda", "ktco", "shadows", "omen", "spidercast", "all")
COLUMNS = {
    "claim": "which one, by its name in docs/claims.md",
    "paper": "what the paper says, or its figure shows",
    "ours": "what was measured here",
    "verdict": "reproduced, close, not reproduced, or other data: the paper's are not to be had",
}
EPILOG = """\
example:
  omen reproduce low-oda --scale quick --out r

Writes OUT/page.html, which needs no network, OUT/claims.csv, OUT/figures with the data behind each figure, and
OUT/cells, the table of all that was run. Killed and started again it goes on: a finished cell is not run again.

exit codes: 0 done, 1 a cell failed, 2 bad input
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="repeat the papers' experiments, and write a page about them",
        description="Run the papers' experiments as a sweep, hold their numbers against ours, draw their figures.",
        epilog=EPILOG + explain("\ncolumns", COLUMNS),
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", default="all", help=f"one of {', '.join(NAMES)} (all)")
    parser.add_argument("--scale", choices=("quick", "full"), default="quick", help="minutes, or the papers' own sizes")
    parser.add_argument("--data", metavar="DIR", help="folder of the real graphs and the cluster trace")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the results, added to if it exists")
    parser.add_argument("--papers-only", action="store_true", help="leave out what goes beyond the papers")
    parser.add_argument(
        "--engine",
        choices=("spark", "local", "none"),
        default="spark",
        help="local: in this process; none: run nothing, report what there is (spark)",
    )
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=reproduce)


def reproduce(arguments: argparse.Namespace) -> int:
    from omen.design.options import suggest
    from omen.errors import InvalidInput

    if arguments.paper not in NAMES:
        raise InvalidInput(
            f"there is no paper {arguments.paper!r}{suggest(arguments.paper, NAMES)} ({', '.join(NAMES)})"
        )
    require_cluster(arguments)
    from omen.report.experiments.papers import PAPERS
    from omen.report.page import write_page
    from omen.report.reproduce import Request, write_reproduction
    from omen.report.reproduce import reproduce as run

    request = Request(
        tuple(PAPERS) if arguments.paper == "all" else (arguments.paper,),
        arguments.scale,
        arguments.out,
        arguments.data,
        arguments.engine,
        spark_options(arguments),
        not arguments.papers_only,
    )
    with sweeping(f"reproducing {arguments.paper}") as tell:
        found = run(request, tell)
    write_reproduction(arguments.out, found)
    page = write_page(arguments.out, found)
    _print(arguments, found, str(page))
    return 1 if found.failed else 0


def _print(arguments: argparse.Namespace, found: Reproduction, page: str) -> None:
    verdicts = {entry.claim.id: entry.verdict for entry in found.entries}
    if arguments.json:
        print_json(found.about | {"summary": found.summary, "measured": found.measured, "page": page} | verdicts)
        return
    rows = [
        (entry.claim.id, entry.claim.shown, entry.shown or "-", entry.verdict)
        for entry in found.entries
        if entry.measured
    ]
    print_table(COLUMNS, rows)
    print()
    took = duration(float(found.about["seconds"]))
    print_facts([("summary", found.summary), ("took", took), ("claims", f"{arguments.out}/claims.csv"), ("page", page)])
    if found.failed:
        say(f"{found.failed} cells failed: give the same command again to try them once more")

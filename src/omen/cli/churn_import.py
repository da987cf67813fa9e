"""omen churn import: what monitoring has written down of nodes that went up and down becomes a trace."""

from __future__ import annotations

import argparse
from typing import Any

from omen.cli.arguments import add_encoding, add_json, add_workload
from omen.cli.output import print_facts, print_json, say
from omen.cli.progress import working

FORMATS = {"events": ("node", "time_s", "event"), "intervals": ("node", "up_s", "down_s")}
UNITS = ("us", "ms", "s", "min", "h", "d")
EPILOG = """\
example:
  omen churn import --table downtime.csv --format intervals --workload w --out c.parquet
  omen churn import --table log.csv --format events --columns host,at,what --unit ms --workload w --out c.parquet

events: a row for each time a node went up (up, join, add, start) or down (leave, stop; crash, fail; down, remove).
intervals: a row for each time a node was up; an empty cell means from the start, or to the end.
Times count from the earliest in the table. A replay begins with all nodes of the workload: those that come up later
leave at time 0. Nodes that the table does not name stay up.
"""


def add_import(kinds: Any) -> None:
    parser = kinds.add_parser(
        "import",
        help="from a table of nodes that went up and down",
        description="Make a trace of a table (CSV with a header, or Parquet) of when nodes went up and down.",
        epilog=EPILOG,
    )
    parser.add_argument("--table", metavar="FILE", required=True, help="the table to read")
    parser.add_argument("--format", choices=tuple(FORMATS), default="events", help="what a row is (events)")
    parser.add_argument(
        "--columns",
        metavar="A,B,C",
        help="columns of node, time and event (node,time_s,event), or node, begin and end (node,up_s,down_s)",
    )
    parser.add_argument("--unit", choices=UNITS, default="s", help="of times (s)")
    parser.add_argument(
        "--down", choices=("crash", "leave"), default="crash", help="what it is where a row does not say (crash)"
    )
    add_encoding(parser)
    add_workload(parser)
    parser.add_argument("--out", metavar="C", required=True, help="table to write: .csv, .csv.gz, or else Parquet")
    add_json(parser)
    parser.set_defaults(handler=import_churn)


def import_churn(arguments: argparse.Namespace) -> int:
    from omen.churn import Crash, Leave
    from omen.errors import InvalidInput
    from omen.tables import event_word, read_workload, require_table_name, write_churn
    from omen.tables.churn_import import import_events, import_intervals
    from omen.tables.raw import require_encoding

    require_table_name(arguments.out)
    encoding = require_encoding(arguments.encoding)
    columns = FORMATS[arguments.format] if arguments.columns is None else tuple(arguments.columns.split(","))
    if len(columns) != 3 or not all(columns):
        raise InvalidInput(f"--columns {arguments.columns}: give three names with commas between them")
    interests = read_workload(arguments.workload).interests
    reader = import_events if arguments.format == "events" else import_intervals
    with working("reading"):
        down = Leave if arguments.down == "leave" else Crash
        three = (columns[0], columns[1], columns[2])
        made = reader(arguments.table, interests, three, arguments.unit, down, encoding)
    with working("writing"):
        write_churn(arguments.out, made.trace, interests)
    words = [event_word(event) for event in made.trace]
    by_event = {word: words.count(word) for word in sorted(set(words))}
    if made.strangers:
        say(f"WARNING: {made.strangers:,} nodes of the table are not in the workload; their rows were left out")
    facts = {"rows": made.rows, "events": len(words), "by_event": by_event, "strangers": made.strangers}
    facts |= {"repeated": made.repeated, "late": made.late, "out": arguments.out}
    if arguments.json:
        print_json(facts)
        return 0
    shown: list[tuple[str, Any]] = [("rows read", made.rows), ("events", len(words))]
    shown += [(f"  {word}", number) for word, number in by_event.items()]
    shown += [("nodes not in the workload", made.strangers), ("rows that change nothing", made.repeated)]
    print_facts([*shown, ("nodes down at first", made.late), ("written to", arguments.out)])
    return 0

"""omen plan: from one overlay to another, step by step."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.fleet_options import add_rule_tables, read_fleet
from omen.cli.output import explain, print_facts, print_json, say
from omen.cli.progress import working

if TYPE_CHECKING:
    from omen.fleet.planning import Plan

EPILOG = """\
example:
  omen plan --workload w --from today.parquet --to o.parquet --out plan.csv
  omen plan --workload w --from today.parquet --to o.parquet --out plan.txt

The name of --out decides what is written: .json, .txt for people, else a table.

exit codes: 0 done, 1 a cap is exceeded by more than one on the way, 2 bad input
"""
SHOWN = 20
LINES = {
    "batches": "groups of steps; those of one may be done in any order, or at once",
    "topic-connected on the way": "whether no topic is split after any step",
    "above a cap by at most": "links that a node has beyond its max_links at the worst step",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="from one overlay to another: which links to make and to drop, in which order",
        description="Order the changes from one overlay to another, so that no topic is split on the way.",
        epilog=EPILOG + explain("\nlines", LINES),
    )
    add_workload(parser)
    parser.add_argument("--from", dest="start", metavar="A", required=True, help="table of the links there are: u, v")
    parser.add_argument("--to", dest="target", metavar="B", required=True, help="table of the links there shall be")
    add_rule_tables(parser)
    parser.add_argument("--best-effort", action="store_true", help="write the plan also where it exceeds a cap by more")
    parser.add_argument("--out", metavar="P", help="file to write; without it the first steps are shown")
    add_json(parser)
    parser.set_defaults(handler=plan)


def plan(arguments: argparse.Namespace) -> int:
    from omen.fleet.planning import make_plan
    from omen.quality import check_overlay
    from omen.tables import read_overlay, read_workload

    with working("reading"):
        interests = read_workload(arguments.workload).interests
        rules = read_fleet(arguments, interests)
        start, target = (read_overlay(path, interests) for path in (arguments.start, arguments.target))
    with working("planning"):
        made = make_plan(interests, rules, start, target)
    within = made.most_excess <= 1
    out = arguments.out if within or arguments.best_effort else None
    result = _as_result(made, check_overlay(interests, start).topic_connected) | {"out": out}
    if out:
        _write(out, made, result)
    if arguments.json:
        print_json(result)
    else:
        _print(made, result)
        if arguments.out and not out:
            say("nothing was written; --best-effort writes the plan as it is")
    return 0 if within else 1


def _rows(made: Plan) -> list[dict[str, Any]]:
    labels = made.start.nodes.tolist()
    return [
        {"step": number, "batch": s.batch, "action": "make" if s.make else "drop", "u": labels[s.u], "v": labels[s.v]}
        for number, s in enumerate(made.steps, start=1)
    ]


def _as_result(made: Plan, connected: bool) -> dict[str, Any]:
    return {
        "make": sum(step.make for step in made.steps),
        "drop": sum(not step.make for step in made.steps),
        "batches": made.batches,
        "judged": made.judged,
        "topic_connected_throughout": connected,
        "most_excess": made.most_excess,
        "excesses": [
            {"step": one.step, "node": one.node, "max_links": one.cap, "links": one.links} for one in made.excesses
        ],
        "steps": _rows(made),
    }


def _write(path: str, made: Plan, result: dict[str, Any]) -> None:
    from omen.tables import write_table, write_text

    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_text(path, [json.dumps(result, ensure_ascii=False, indent=1)])
    elif suffix == ".txt":
        write_text(path, _lines(made))
    else:
        rows = _rows(made)
        write_table(path, {name: [row[name] for row in rows] for name in ("step", "batch", "action", "u", "v")})


def _lines(made: Plan) -> list[str]:
    """For people: batch by batch. Where a cap is exceeded it says so."""
    excesses = {(one.step, one.node): one for one in made.excesses}
    lines: list[str] = []
    batch = 0
    for row in _rows(made):
        if row["batch"] != batch:
            batch = row["batch"]
            steps = sum(step.batch == batch for step in made.steps)
            lines.append(f"batch {batch}: {row['action']} {steps} {'link' if steps == 1 else 'links, in any order'}")
        above = [excesses[row["step"], end] for end in (row["u"], row["v"]) if (row["step"], end) in excesses]
        note = "".join(f"  ({one.node} has {one.links} links then, {one.by} too many)" for one in above)
        lines.append(f"  {row['step']}. {row['action']} {row['u']} - {row['v']}{note}")
    return lines


def _print(made: Plan, result: dict[str, Any]) -> None:
    if not result["out"]:
        lines = _lines(made)
        for line in lines[:SHOWN]:
            print(line)
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN:,} more lines (--out P writes all)")
        print()
    print_facts(
        [
            ("links to make", result["make"]),
            ("links to drop", result["drop"]),
            ("batches", result["batches"]),
            ("topic-connected on the way", result["topic_connected_throughout"]),
            ("above a cap by at most", result["most_excess"]),
            ("written to", result["out"]),
        ]
    )
    for one in [one for one in made.excesses if one.by > 1][:SHOWN]:
        print(f"  step {one.step}: node {one.node} may have {one.cap} links and has {one.links}")

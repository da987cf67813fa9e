"""omen replay: what a system makes of a trace."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from omen.cli.arguments import add_json, add_workload, seconds
from omen.cli.declared_options import listed, told, told_as_json
from omen.cli.fleet_options import add_rule_tables, add_sigma, read_fleet, require_costs
from omen.cli.output import explain, print_facts, print_json, print_table, say, shown
from omen.cli.progress import counting, working
from omen.cli.system_options import add_system_options, chosen_system
from omen.systems import SYSTEMS, resolve_settings

COLUMNS = {
    "repairs": "after what: a join, a leave (a crash is one) or a change of topics",
    "number": "of repairs of this kind",
    "median ms": "half of them took no longer to compute, in milliseconds",
    "95% ms": "95 of 100 took no longer",
    "links made": "per repair, on average",
    "links dropped": "per repair, on average",
    "shadow set": "nodes that took part in a repair, on average",
}
EPILOG = """\
example:
  omen replay --workload w --churn c.parquet --system shadow --verify every --figure r.svg --out r

R is a workload folder with the tables replay (a row per event) and overlay in it. A replay that was killed goes on
where it was when the same command is given again.

The table of repairs, by what had happened: how many there were, their processor time (median, and what 95 of 100 stay
below), and on average links made, links dropped, and the nodes that took part (shadow set).

Where the fleet has rules, links are chosen within them. Caps are exceeded only where a topic would be split; the
summary says at which nodes, and the column links_above_max of the table replay after which events.

exit codes: 0 done, 1 the judge found a topic split, 2 bad input
"""
CHECKPOINT_EVERY_S = 30.0
SHOWN = 10


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "replay",
        help="drive a system through a trace of churn, and measure it",
        description="Let what a trace tells happen to a workload, and a system keep its overlay connected.",
        epilog=f"{listed('systems', SYSTEMS)}\n\n{EPILOG}" + explain("\ncolumns", COLUMNS),
    )
    add_workload(parser)
    parser.add_argument("--churn", metavar="C", required=True, help="the trace: a table of what happens to nodes")
    parser.add_argument("--overlay", metavar="O", help="links to start from; without it Low-ODA's")
    add_system_options(parser, SYSTEMS)
    add_rule_tables(parser)
    add_sigma(parser)
    parser.add_argument(
        "--verify", choices=("every", "end", "off"), default="end", help="when the result is judged (end)"
    )
    parser.add_argument(
        "--skip-impossible", action="store_true", help="count events that cannot happen, and go on without them"
    )
    parser.add_argument(
        "--checkpoint-every",
        metavar="SECONDS",
        type=seconds,
        default=CHECKPOINT_EVERY_S,
        help="how often to note, in OUT.checkpoint, where to go on if killed; 0: never (30)",
    )
    parser.add_argument(
        "--figure", metavar="FILE", help="draw degrees, links changed and repair time over time: .svg, .png or .pdf"
    )
    parser.add_argument("--out", metavar="R", required=True, help="folder to write")
    add_json(parser)
    parser.set_defaults(handler=replay)


def replay(arguments: argparse.Namespace) -> int:
    kind, options = chosen_system(arguments, SYSTEMS, resolve_settings)
    from omen.fleet.designing import SIGMA
    from omen.fleet.repairing import Within
    from omen.systems.checkpoint import Checkpoint
    from omen.systems.replay import Supervision
    from omen.systems.replay import replay as run_replay
    from omen.systems.summary import columns_of, summarise
    from omen.tables import read_churn, read_overlay, read_workload, require_replaceable, write_replay
    from omen.workloads import origin

    with working("reading"):
        workload = read_workload(arguments.workload)
        churn = read_churn(arguments.churn, workload.interests)
        overlay = read_overlay(arguments.overlay, workload.interests) if arguments.overlay else None
        rules = read_fleet(arguments, workload.interests)
    require_costs(arguments, rules)
    require_replaceable(arguments.out, "workload.json")
    if arguments.figure:
        from omen.report.canvas import blank_figure, figure_kind

        figure_kind(arguments.figure)  # before hours of replaying, not after
        blank_figure(1.0, 1.0)
    notes = Checkpoint(f"{arguments.out.rstrip('/')}.checkpoint", arguments.checkpoint_every)
    with counting(f"replaying with {kind.name}", len(churn.trace)) as progress:
        supervision = Supervision(
            skip_impossible=arguments.skip_impossible,
            where=churn.where,
            progress=progress,
            checkpoint=notes if arguments.checkpoint_every else None,
            within=None if rules.is_empty else Within(rules, arguments.sigma or SIGMA),
        )
        replayed = run_replay(
            workload.interests,
            churn.trace,
            kind.name,
            overlay,
            verify=arguments.verify,
            supervision=supervision,
            **options,
        )
    summary = summarise(replayed)
    info = {
        "made": "replay",
        "system": replayed.system,
        "options": told_as_json(replayed.options),
        "events": summary["events"],
        "skipped": replayed.skipped,
        "workload": origin(workload.info),
    }
    columns = columns_of(replayed, churn.seqs)
    with working("writing"):
        write_replay(arguments.out, replayed.interests, replayed.overlay, columns, info, rules)
    notes.remove()
    if arguments.figure:
        from omen.report.replay_figure import draw_replay

        draw_replay(arguments.figure, columns)
    if replayed.resumed_at:
        say(f"went on from event {replayed.resumed_at:,} of an interrupted replay")
    if arguments.json:
        print_json(summary | {"resumed_at": replayed.resumed_at, "out": arguments.out})
    else:
        _print_summary(summary, arguments.out)
        _print_fleet(summary["fleet"], churn.where)
    return 1 if replayed.topic_connected is False else 0


def _print_summary(summary: dict[str, Any], out: str) -> None:
    options = told(summary["options"])
    print_facts(
        [
            ("system", f"{summary['system']} ({options})" if options else summary["system"]),
            ("events", summary["events"]),
            ("impossible, skipped", summary["skipped"]),
            *((f"  {reason}", number) for reason, number in summary["skipped_by_reason"].items()),
            ("nodes at the end", summary["nodes"]),
            ("links", summary["edges"]),
            ("average degree", summary["avg_degree"]),
            ("maximum degree", summary["max_degree"]),
            ("topic-connected", _verdict(summary)),
            *([("above a cap", _above(summary["fleet"]))] if summary["fleet"] else []),
            ("written to", out),
        ]
    )
    if summary["repairs"]:
        print()
        print_table(COLUMNS, [_repair_row(kind, found) for kind, found in summary["repairs"].items()])


def _verdict(summary: dict[str, Any]) -> str:
    if summary["topic_connected"] is None:
        return "not judged"
    if summary["topic_connected"]:
        return f"yes, judged {summary['judged']:,} times" if summary["judged"] > 1 else "yes"
    return f"no: topics were split {summary['instants_broken']:,} of {summary['judged']:,} times"


def _above(fleet: dict[str, Any]) -> str:
    if not fleet["above_cap"]:
        return "never"
    nodes, after = len(fleet["above_cap"]), fleet["events_above_cap"]
    return (
        f"{nodes:,} {'node' if nodes == 1 else 'nodes'}, after {after:,} {'event' if after == 1 else 'events'},"
        f" by at most {fleet['most_above_cap']:,}"
    )


def _print_fleet(fleet: dict[str, Any] | None, where: Callable[[int], str]) -> None:
    """Which nodes were above their caps, since when, and what is outside the rules at the end."""
    if fleet is None:
        return
    for one in fleet["above_cap"][:SHOWN]:
        times = "1 event" if one["events"] == 1 else f"{one['events']:,} events"
        say(
            f"above its cap: node {one['node']} had {one['most']} links and may have {one['max_links']}, after {times},"
            f" first {where(one['first'])}"
        )
    for line in fleet["violations"][:SHOWN]:
        say(f"not within the rules at the end: {line}")
    if max(len(fleet["above_cap"]), len(fleet["violations"])) > SHOWN:
        say("and more: --json lists all")


def _repair_row(kind: str, found: dict[str, Any]) -> tuple[Any, ...]:
    return (
        kind,
        found["repairs"],
        *(None if found[name] is None else f"{1000 * found[name]:.3f}" for name in ("repair_s_median", "repair_s_p95")),
        *(shown(found[name]) for name in ("edges_added_mean", "edges_removed_mean", "shadow_size_mean")),
    )

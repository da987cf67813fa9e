"""omen mend: a node left, joined or changed its topics; which links now?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.declared_options import listed, told_as_json
from omen.cli.fleet_options import add_rule_tables, add_sigma, read_fleet, require_costs
from omen.cli.output import explain, print_facts, print_json, print_table, say
from omen.cli.progress import working
from omen.cli.system_options import add_system_options, chosen_system
from omen.errors import InvalidInput
from omen.maintain import MAINTAINERS
from omen.maintain.options import K

if TYPE_CHECKING:
    from omen.systems.repair import Repaired

COLUMNS = {
    "link": "what to do with it: make or drop",
    "u": "one end, by its name in the workload",
    "v": "the other end",
    "": "why it is dropped, where a node that left is the reason",
}
EPILOG = """\
example:
  omen mend --workload w --overlay o.parquet --leave 17 --leave 23
  omen mend --workload w --overlay o.parquet --join 4711 --topics new.csv --apply --out w2

Without --k a repair keeps the connectivity that the overlay was designed for, where its file says so (Parquet does).

Where the fleet has rules, links are chosen within them. Caps are exceeded only where a topic would be split, and nodes
above their caps give up what their topics can do without.

All nodes of the workload count as present, but for those that join. What is named happens together. Make the new
links before you drop others.
"""
LINES = {
    "links then": "how many the repaired overlay has",
    "average degree": "links of a node then, on average",
    "maximum degree": "links of the node with the most then",
    "topic-connected": "whether the subscribers of every topic are connected by links among them then",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "mend",
        help="nodes leave, join or change their topics: which links to make and to drop",
        description="Print the links to make and to drop when nodes leave, join or change their topics.",
        epilog=f"{listed('systems', MAINTAINERS)}\n\n{EPILOG}"
        + explain("\ncolumns", COLUMNS)
        + explain("\nlines", LINES),
    )
    add_workload(parser)
    parser.add_argument("--overlay", metavar="O", required=True, help="table of the links there are: u, v")
    for action, text in (
        ("leave", "this node left, crashed or will leave"),
        ("join", "this node joins: its topics are in --topics, or else in the workload"),
        ("resubscribe", "this node's topics become those in --topics"),
    ):
        parser.add_argument(f"--{action}", metavar="NODE", action="append", default=[], help=f"{text}; may be repeated")
    parser.add_argument("--topics", metavar="FILE", help="table node, topic of those that join and resubscribe")
    add_system_options(parser, MAINTAINERS)
    add_rule_tables(parser)
    add_sigma(parser)
    parser.add_argument("--apply", action="store_true", help="write the workload and overlay that come of it to --out")
    parser.add_argument("--out", metavar="DIR", help="with --apply: folder to write")
    add_json(parser)
    parser.set_defaults(handler=mend)


def mend(arguments: argparse.Namespace) -> int:
    kind, options = chosen_system(arguments, MAINTAINERS)
    if arguments.apply != bool(arguments.out):
        raise InvalidInput("--apply and --out go together: --apply --out DIR writes what comes of it")
    if not (arguments.leave or arguments.join or arguments.resubscribe):
        raise InvalidInput("nothing happens: name nodes with --leave, --join or --resubscribe")
    from omen.fleet import describe_violations
    from omen.fleet.designing import SIGMA
    from omen.fleet.repairing import Within
    from omen.quality import check_overlay
    from omen.systems.repair import Batch, as_label, repair_once
    from omen.tables import read_overlay, read_topic_lists, read_workload, write_repaired
    from omen.workloads import origin

    with working("reading"):
        workload = read_workload(arguments.workload)
        interests = workload.interests
        overlay = read_overlay(arguments.overlay, interests)
        topics = read_topic_lists(arguments.topics, interests) if arguments.topics else {}
        rules = read_fleet(arguments, interests)
    require_costs(arguments, rules)
    if arguments.option_k is None and "k" in options:
        options["k"] = _recorded_connectivity(arguments.overlay)
    k = int(options.get("k") or 1)
    nodes = {
        action: [as_label(text, interests.nodes) for text in getattr(arguments, action)]
        for action in ("leave", "join", "resubscribe")
    }
    with working(f"repairing with {kind.name}"):
        batch = Batch(**nodes, topics=topics)
        within = Within(rules, arguments.sigma or SIGMA) if not rules.is_empty and k == 1 else None
        repaired = repair_once(interests, overlay, batch, kind.name, within=within, **options)
    connected = check_overlay(repaired.interests, repaired.overlay, k=k).holds
    violations = describe_violations(repaired.overlay, rules.restricted(repaired.interests.nodes))
    if arguments.apply:
        info = {"made": "mend", "system": kind.name, "options": told_as_json(options), **nodes}
        info |= {"workload": origin(workload.info)}
        made = {"system": kind.name, "k": k}
        write_repaired(arguments.out, repaired.interests, repaired.overlay, info, made, rules)
    if arguments.json:
        print_json(_as_result(repaired, kind.name, options, connected, arguments.out) | {"violations": violations})
    else:
        _print_links(repaired, set(nodes["leave"]))
        _print_facts(repaired, k, connected, arguments.out)
        for line in violations:
            say(f"not within the rules: {line}")
        if violations and k > 1:
            say(f"repairs for k = {k} know no rules")
    return 0 if connected else 1


def _recorded_connectivity(overlay: str) -> int:
    """The connectivity that an overlay was made with, by its own record; 1 where there is none.

    More than a maintainer can keep becomes what it can.
    """
    from omen.tables import read_record

    recorded = read_record(overlay).get("k", 1)
    made = recorded if isinstance(recorded, int) else 1
    kept = min(max(made, 1), int(K.maximum))
    if made > kept:
        say(f"the overlay was made for k = {made}; a repair keeps k = {kept}: design it anew for more")
    elif kept > 1:
        say(f"the overlay was made for k = {kept}, so the repair keeps that (--k 1 does not)")
    return kept


def _as_result(
    repaired: Repaired, system: str, options: dict[str, Any], connected: bool, out: str | None
) -> dict[str, Any]:
    change = repaired.change
    return {
        "system": system,
        "options": options,
        "make": change.added,
        "drop": change.removed,
        "shadow": change.shadow,
        "repair_s": change.repair_s,
        "nodes": repaired.interests.node_count,
        "topics": repaired.interests.topic_count,
        "edges": repaired.overlay.link_count,
        "avg_degree": repaired.average_degree,
        "max_degree": repaired.max_degree,
        "topic_connected": connected,
        "out": out,
    }


def _print_links(repaired: Repaired, leaving: set[Any]) -> None:
    rows = [("make", str(u), str(v), "") for u, v in repaired.change.added]
    for u, v in repaired.change.removed:
        gone = [str(node) for node in (u, v) if node in leaving]
        rows.append(("drop", str(u), str(v), f"{' and '.join(gone)} left" if gone else ""))
    if rows:
        print_table(COLUMNS, rows)
    else:
        say("no link changes")


def _print_facts(repaired: Repaired, k: int, connected: bool, out: str | None) -> None:
    print()
    print_facts(
        [
            ("links to make", len(repaired.change.added)),
            ("links to drop", len(repaired.change.removed)),
            ("links then", repaired.overlay.link_count),
            ("average degree", repaired.average_degree),
            ("maximum degree", repaired.max_degree),
            ("topic-connected" if k == 1 else f"{k}-topic-connected", connected),
            *([("written to", out)] if out else []),
        ]
    )

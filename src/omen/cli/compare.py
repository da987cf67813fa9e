"""omen compare: designs side by side."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.fleet_options import add_rule_tables, read_fleet
from omen.cli.output import explain, print_json, print_table
from omen.cli.progress import working

COLUMNS = {
    "": "the overlay; a ring or a mesh of 6 for each topic stand for comparison",
    "links": "how many there are",
    "average": "links of a node, on average",
    "most": "links of the node with the most",
    "connected": "whether the subscribers of every topic are connected by links among them",
    "mean diameter": "the most hops between two subscribers, on average over topics that have two or more",
    "diameter": "the most hops between two subscribers of any topic",
    "cut nodes": "nodes whose loss alone would split a topic",
}
RULE_COLUMNS = {
    "cost": "of all links, by the table of links or the costs between zones",
    "between zones": "links whose ends are in different zones",
    "within the rules": "whether caps, forbidden and required links are kept",
}
ZONE_COLUMNS = {
    "zones": "a pair of zones, or a zone twice for links within it",
    "links": "between the two, of this overlay",
    "cost": "of those links",
}
EPILOG = """\
example:
  omen compare --workload w today.csv o.parquet
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="designs side by side: links, degrees, diameters, cut nodes, cost",
        description="Compare overlays of one workload, next to a ring and a mesh for each topic.",
        epilog=EPILOG + explain("\ncolumns", COLUMNS, RULE_COLUMNS) + explain("\ncolumns by zones", ZONE_COLUMNS),
    )
    add_workload(parser)
    parser.add_argument("overlays", metavar="O", nargs="+", help="tables of links: u, v")
    add_rule_tables(parser)
    add_json(parser)
    parser.set_defaults(handler=compare)


def compare(arguments: argparse.Namespace) -> int:
    from omen.fleet import comparing as measure
    from omen.fleet import find_violations
    from omen.tables import read_overlay, read_workload

    with working("reading"):
        interests = read_workload(arguments.workload).interests
        rules = read_fleet(arguments, interests)
        overlays = {path: read_overlay(path, interests) for path in arguments.overlays}
    with working("comparing"):
        designs = [
            measure.compare(interests, rules, path, overlay, not find_violations(overlay, rules))
            for path, overlay in overlays.items()
        ]
        zones = {path: measure.zone_costs(rules, overlay) for path, overlay in overlays.items() if rules.has_zones}
    per_topic = measure.per_topic_designs(interests)
    if arguments.json:
        told = {
            path: [dict(zip(("zone_u", "zone_v", "links", "cost"), row, strict=True)) for row in rows]
            for path, rows in zones.items()
        }
        print_json({"designs": [asdict(one) for one in (*designs, *per_topic)], "zones": told})
        return 0
    columns = dict(COLUMNS)
    rows = [
        [d.name, d.links, d.avg_degree, d.max_degree, d.topic_connected, d.mean_diameter, d.max_diameter, d.cut_nodes]
        for d in (*designs, *per_topic)
    ]
    if not rules.is_empty or rules.has_zones:
        columns |= RULE_COLUMNS
        rows = [
            [*row, d.cost, d.links_between_zones, d.within_rules]
            for row, d in zip(rows, (*designs, *per_topic), strict=True)
        ]
    print_table(columns, rows)
    _print_zones(zones)
    return 0


def _print_zones(zones: dict[str, list[tuple[str, str, int, float]]]) -> None:
    """By pair of zones, the links and cost of every design."""
    pairs = sorted({row[:2] for rows in zones.values() for row in rows})
    if not pairs:
        return
    print()
    found = {path: {row[:2]: row[2:] for row in rows} for path, rows in zones.items()}
    first, links, cost = ZONE_COLUMNS.items()
    columns = dict([first, *((f"{name} {path}", meaning) for path in zones for name, meaning in (links, cost))])
    lines = [
        [
            f"{one or '-'} {other or '-'}",
            *(value for path in zones for value in found[path].get((one, other), (0, 0.0))),
        ]
        for one, other in pairs
    ]
    print_table(columns, lines)

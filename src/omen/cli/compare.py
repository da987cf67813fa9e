"""omen compare: designs side by side."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.fleet_options import add_rule_tables, read_fleet
from omen.cli.output import print_json, print_table
from omen.cli.progress import working

EPILOG = """\
example:
  omen compare --workload w today.csv o.parquet
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="designs side by side: links, degrees, diameters, cut nodes, cost",
        description="Compare overlays of one workload, next to a ring and a mesh for each topic.",
        epilog=EPILOG,
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
    header = ["", "links", "average", "most", "connected", "mean diameter", "diameter", "cut nodes"]
    rows = [
        [d.name, d.links, d.avg_degree, d.max_degree, d.topic_connected, d.mean_diameter, d.max_diameter, d.cut_nodes]
        for d in (*designs, *per_topic)
    ]
    if not rules.is_empty or rules.has_zones:
        header += ["cost", "between zones", "within the rules"]
        rows = [
            [*row, d.cost, d.links_between_zones, d.within_rules]
            for row, d in zip(rows, (*designs, *per_topic), strict=True)
        ]
    print_table(header, rows)
    _print_zones(zones)
    return 0


def _print_zones(zones: dict[str, list[tuple[str, str, int, float]]]) -> None:
    """By pair of zones, the links and cost of every design."""
    pairs = sorted({row[:2] for rows in zones.values() for row in rows})
    if not pairs:
        return
    print()
    found = {path: {row[:2]: row[2:] for row in rows} for path, rows in zones.items()}
    header = ["zones", *(f"{what} {path}" for path in zones for what in ("links", "cost"))]
    lines = [
        [
            f"{one or '-'} {other or '-'}",
            *(value for path in zones for value in found[path].get((one, other), (0, 0.0))),
        ]
        for one, other in pairs
    ]
    print_table(header, lines)

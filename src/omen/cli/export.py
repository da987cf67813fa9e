"""omen export: an overlay for other programs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working

EPILOG = """\
example:
  omen export --workload w --overlay o.parquet --format graphml --out overlay.graphml
  omen export --workload w --overlay o.parquet --format dot | dot -Kneato -Tsvg > overlay.svg
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "export",
        help="write an overlay as GraphML, DOT or JSON",
        description="Write an overlay for other programs: GraphML for Gephi, DOT for Graphviz, JSON for D3.",
        epilog=EPILOG,
    )
    add_workload(parser)
    parser.add_argument("--overlay", metavar="O", required=True, help="table of links: u, v")
    parser.add_argument("--format", choices=("graphml", "dot", "json"), required=True, help="what to write")
    parser.add_argument("--out", metavar="FILE", help="file to write (standard output)")
    add_json(parser)
    parser.set_defaults(handler=export)


def export(arguments: argparse.Namespace) -> int:
    from omen.errors import InvalidInput
    from omen.tables import read_overlay, read_workload, write_text
    from omen.tables.export import export_lines

    if arguments.json and not arguments.out:
        raise InvalidInput("--json describes the file written: give --out FILE with it")
    with working("reading"):
        interests = read_workload(arguments.workload).interests
        overlay = read_overlay(arguments.overlay, interests)
    lines = export_lines(interests, overlay, arguments.format)
    if not arguments.out:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return 0
    with working("writing"):
        write_text(arguments.out, lines)
    if arguments.json:
        print_json(
            {
                "format": arguments.format,
                "nodes": overlay.node_count,
                "edges": overlay.link_count,
                "out": arguments.out,
            }
        )
    else:
        print_facts([("nodes", overlay.node_count), ("links", overlay.link_count), ("written to", arguments.out)])
    return 0

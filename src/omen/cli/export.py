"""omen export: an overlay for other programs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working

if TYPE_CHECKING:
    from omen.interests import Interests

EPILOG = """\
example:
  omen export --workload w --overlay o.parquet --format graphml --out overlay.graphml
  omen export --workload w --overlay o.parquet --format dot | dot -Kneato -Tsvg > overlay.svg
  omen export --workload w --overlay o.parquet --format mosquitto --addresses brokers.csv --out bridges
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "export",
        help="write an overlay as GraphML, DOT, JSON or Mosquitto's bridges",
        description="Write an overlay for other programs: GraphML for Gephi, DOT for Graphviz, JSON for D3, and"
        " bridges for Mosquitto.",
        epilog=EPILOG,
    )
    add_workload(parser)
    parser.add_argument("--overlay", metavar="O", required=True, help="table of links: u, v")
    parser.add_argument(
        "--format", choices=("graphml", "dot", "json", "mosquitto"), required=True, help="what to write"
    )
    parser.add_argument("--addresses", metavar="FILE", help="with mosquitto: table node, address (HOST:PORT)")
    parser.add_argument("--out", metavar="FILE", help="file to write (standard output); mosquitto: a folder")
    add_json(parser)
    parser.set_defaults(handler=export)


def export(arguments: argparse.Namespace) -> int:
    from omen.errors import InvalidInput
    from omen.tables import read_overlay, read_workload, write_text
    from omen.tables.export import export_lines

    if arguments.format == "mosquitto":
        return _export_bridges(arguments)
    if arguments.addresses:
        raise InvalidInput("--addresses is for --format mosquitto")
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


def _export_bridges(arguments: argparse.Namespace) -> int:
    from omen.errors import InvalidInput
    from omen.fleet.bridges import write_bridges
    from omen.tables import read_overlay, read_workload

    if not arguments.addresses or not arguments.out:
        raise InvalidInput("--format mosquitto needs --addresses FILE (node, address) and --out DIR")
    with working("reading"):
        interests = read_workload(arguments.workload).interests
        overlay = read_overlay(arguments.overlay, interests)
        _refuse_topics(arguments.workload, interests)
        addresses = _read_addresses(arguments.addresses, interests)
    with working("writing"):
        written = write_bridges(arguments.out, interests, overlay, addresses)
    if arguments.json:
        print_json({"format": "mosquitto", **asdict(written), "out": arguments.out})
        return 0
    print_facts([("brokers", written.brokers), ("bridges", written.bridges), ("written to", arguments.out)])
    print("\nchanged: " + (", ".join(map(str, written.changed)) or "no file"))
    if written.removed:
        print("removed: " + ", ".join(written.removed))
    return 0


def _refuse_topics(workload: str, interests: Interests) -> None:
    from omen.errors import InvalidTable
    from omen.fleet.bridges import fault_of_topic
    from omen.tables import find_row

    for topic in interests.topics.tolist():
        if (fault := fault_of_topic(topic)) is not None:
            raise InvalidTable(f"{find_row(workload, 'interests', 'topic', topic)}: topic {topic!r} {fault}")


def _read_addresses(path: str, interests: Interests) -> dict[int, str]:
    from omen.errors import InvalidTable
    from omen.fleet.bridges import fault_of_address
    from omen.tables import read_addresses

    found = read_addresses(path, interests)
    for address, where in found.values():
        if (fault := fault_of_address(address)) is not None:
            raise InvalidTable(f"{where}: address {address!r} {fault}")
    return {node: address for node, (address, _) in found.items()}

"""omen draw: an overlay as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from omen.cli.arguments import add_json, add_workload
from omen.cli.fleet_options import add_rule_tables, read_fleet
from omen.cli.output import print_facts, print_json
from omen.cli.progress import working
from omen.errors import CannotWrite, InvalidInput

EPILOG = """\
example:
  omen draw --workload w --overlay o.parquet --topic orders --out overlay.svg
  omen draw --workload w --overlay o.parquet --out overlay.html
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "draw",
        help="draw an overlay: SVG, or a page that needs nothing else",
        description="Draw an overlay: zones as groups, degrees as sizes, links between zones and a topic in colour."
        " Above 2,000 nodes it shows how many nodes have which degree.",
        epilog=EPILOG,
    )
    add_workload(parser)
    parser.add_argument("--overlay", metavar="O", required=True, help="table of links: u, v")
    parser.add_argument("--topic", metavar="T", help="a topic to highlight")
    add_rule_tables(parser)
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write: .svg or .html")
    add_json(parser)
    parser.set_defaults(handler=draw)


def draw(arguments: argparse.Namespace) -> int:
    from omen.fleet.drawing import Picture, caption, draw_page
    from omen.fleet.drawing import draw as draw_svg
    from omen.tables import read_overlay, read_workload, write_text

    suffix = Path(arguments.out).suffix.lower()
    if suffix not in (".svg", ".html"):
        raise CannotWrite(f"{arguments.out}: pictures are written as .svg or .html: give the name such an ending")
    with working("reading"):
        interests = read_workload(arguments.workload).interests
        overlay = read_overlay(arguments.overlay, interests)
        rules = read_fleet(arguments, interests)
    topic = None
    if arguments.topic is not None:
        names = [str(name) for name in interests.topics.tolist()]
        if arguments.topic not in names:
            raise InvalidInput(f"there is no topic {arguments.topic!r} in the workload")
        topic = names.index(arguments.topic)
    picture = Picture(interests, overlay, rules, topic)
    with working("drawing"):
        write_text(arguments.out, draw_svg(picture) if suffix == ".svg" else draw_page(picture))
    if arguments.json:
        print_json({"nodes": overlay.node_count, "edges": overlay.link_count, "out": arguments.out})
    else:
        print_facts([("drawn", caption(picture)), ("written to", arguments.out)])
    return 0

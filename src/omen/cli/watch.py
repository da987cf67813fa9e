"""omen watch: the live page of a cluster, in a browser."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json
from omen.cli.node import add_joining, config_for_joining
from omen.cli.output import print_facts, print_json

if TYPE_CHECKING:
    from omen.net.broker import Broker

EPILOG = """\
example:
  omen watch --join 127.0.0.1:7070
  omen watch --join n1.example:7070 --config client.toml --open

It joins as a node without topics, and serves the page until Ctrl-C. A node with `http` set serves the same page itself.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "watch",
        help="show a live cluster in the browser: its overlay as it changes, topics, events, repairs",
        description="Join a live cluster without a topic, and serve its live page until a signal ends it.",
        epilog=EPILOG,
    )
    add_joining(parser)
    parser.add_argument("--http", metavar="HOST:PORT", default="127.0.0.1:0", help="where to serve it (a free port)")
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine")
    add_json(parser)
    parser.set_defaults(handler=watch)


def watch(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from omen.net.running import run_node

    config = replace(config_for_joining(arguments, ()), http=arguments.http)

    def when_up(broker: Broker) -> None:
        broker.gathering.set_role("page")
        address = f"http://{broker.http_address}/"
        if arguments.json:
            print_json({"page": address, "name": broker.name})
        else:
            print_facts([("page", address), ("until", "Ctrl-C")])
        sys.stdout.flush()
        if arguments.open:
            import webbrowser

            webbrowser.open(address)

    run_node(config, when_up)
    return 0

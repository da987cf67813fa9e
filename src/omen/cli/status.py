"""omen status: how a live cluster is."""

from __future__ import annotations

import argparse
from typing import Any

from omen.cli.arguments import add_json
from omen.cli.cluster import STATE
from omen.cli.output import print_facts, print_json, print_table

EPILOG = """\
example:
  omen status
  omen status --at 127.0.0.1:9090 --json

exit codes: 0 all nodes are well, 1 some are not, 2 bad input
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "status",
        help="how a live cluster is: ring, links, topics, health",
        description="Ask the nodes of a cluster how they are: ring, links, topics, health.",
        epilog=EPILOG,
    )
    parser.add_argument("--state", metavar="DIR", default=STATE, help=f"the folder nodes keep their state in ({STATE})")
    parser.add_argument("--at", metavar="HOST:PORT", action="append", help="ask this page address; may be repeated")
    add_json(parser)
    parser.set_defaults(handler=status)


def status(arguments: argparse.Namespace) -> int:
    from omen.net.local.cluster import survey
    from omen.net.local.totals import total_survey

    nodes = survey(arguments.state, arguments.at)
    totals = total_survey(nodes)
    if arguments.json:
        print_json({**totals, "status": nodes})
    else:
        _print_nodes(nodes)
        _print_front_doors(nodes)
        _print_stalled(nodes)
        _print_banned(nodes)
        _print_warnings(nodes)
        print()
        print_facts([(name, _shown(value)) for name, value in totals.items()])
    return 0 if nodes and totals["well"] == len(nodes) else 1


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{reason} {count}" for reason, count in value.items()) or None
    return value


def _print_nodes(nodes: list[dict[str, Any]]) -> None:
    header = (
        "node",
        "status",
        "links",
        "topics",
        "before",
        "after",
        "delivered",
        "published",
        "repairs",
        "refused",
        "address",
    )
    rows: list[tuple[Any, ...]] = []
    for node in nodes:
        if "links" not in node:
            rows.append((node["name"], node["status"], *(None,) * (len(header) - 3), node["address"]))
            continue
        before, after = (next(iter(node[side]), None) for side in ("predecessors", "successors"))
        refused = sum(node["refused"].values()) + sum(node["denied"].values())
        numbers = (node["delivered"], node["published"], node["repairs"], refused)
        links, topics = len(node["links"]), len(node["topics"])
        rows.append((node["name"], node["status"], links, topics, before, after, *numbers, node["address"]))
    print_table(header, rows)


def _print_front_doors(nodes: list[dict[str, Any]]) -> None:
    """What nodes with a front door have of MQTT, and what went wrong there; nothing where no node has one."""
    found = [(node["name"], node["mqtt"]) for node in nodes if node.get("mqtt")]
    if found:
        print()
        has = ("clients", "sessions", "subscriptions", "retained", "queued", "shares", "sent", "dropped", "failed")
        header = ("mqtt at", *has, "waits", "wills")
        print_table(header, [(name, *(door[key] for key in (*has, "held_back", "wills"))) for name, door in found])


def _print_banned(nodes: list[dict[str, Any]]) -> None:
    """Peers that are dropped for breaking rules; nothing where there are none."""
    rows = [
        (node["name"], peer, f"{seconds:.0f} s")
        for node in nodes
        for peer, seconds in sorted(node.get("banned", {}).items())
    ]
    if rows:
        print()
        print_table(("dropped by", "node", "for"), rows)


def _print_warnings(nodes: list[dict[str, Any]]) -> None:
    """What does not keep a node from its work, but should be looked at; nothing where there is none."""
    rows = [(node["name"], ", ".join(node["warnings"])) for node in nodes if node.get("warnings")]
    if rows:
        print()
        print_table(("warned by", "of"), rows)


def _print_stalled(nodes: list[dict[str, Any]]) -> None:
    """Streams that wait for a hole, the longest first; nothing where there are none."""
    found = [(stream["seconds"], node["name"], stream) for node in nodes for stream in node.get("stalled", ())]
    if found:
        print()
        found.sort(key=lambda entry: entry[0], reverse=True)
        rows = [
            (name, stream["topic"], stream["publisher"], stream["missing"], f"{seconds:.1f} s")
            for seconds, name, stream in found
        ]
        print_table(("stalled at", "topic", "publisher", "missing", "for"), rows)

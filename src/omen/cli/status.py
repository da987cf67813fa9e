"""omen status: how a live cluster is."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json
from omen.cli.cluster import STATE
from omen.cli.output import explain, print_facts, print_json, print_table

if TYPE_CHECKING:
    from omen.net.local.totals import TopicTotal

SHOWN = 20
COLUMNS = {
    "node": "by name",
    "status": "ok, or what is wrong; silent: it does not answer; gone: its process has ended; left: in good order",
    "links": "of the overlay, to other nodes",
    "topics": "that it subscribes to, or carries for others for a while",
    "before": "the node before it on the ring by which nodes find each other",
    "after": "the node after it there",
    "delivered": "publications handed to its application",
    "published": "publications of its own",
    "repairs": "that it has coordinated",
    "refused": "connections and requests that it has refused",
    "address": "where it listens for other nodes",
}
TOPIC_COLUMNS = {
    "topic": "by name; split ones first, then those with the most subscribers",
    "subscribers": "nodes that want it",
    "carried": "nodes that do not want it and carry it for a while: they publish on it, or left it a moment ago",
    "pieces": "groups of these nodes that no link among them connects; 1: it is connected; -: some nodes do not answer",
}
MQTT_COLUMNS = {
    "mqtt at": "a node that MQTT clients connect to",
    "clients": "connected now",
    "sessions": "kept, of clients connected or not",
    "subscriptions": "of these sessions",
    "retained": "retained messages of the cluster, as known there",
    "queued": "messages that wait for their client",
    "shares": "shared subscriptions of the cluster, as known there",
    "sent": "messages sent to clients",
    "dropped": "messages not sent to a client that is too slow, or for which they are too large",
    "failed": "messages that could not be published",
    "waits": "how often a client that published waited for those who read",
    "wills": "wills published",
}
STALLED_COLUMNS = {
    "stalled at": "a subscriber that waits for publications it has heard of",
    "topic": "of these publications",
    "publisher": "of these publications",
    "missing": "how many have not come",
    "for": "how long it has waited",
}
BANNED_COLUMNS = {
    "dropped by": "a node that has dropped another, since that broke rules again and again",
    "node": "the one that was dropped",
    "for": "so long still",
}
WARNED_COLUMNS = {"warned by": "a node that works and says that something should be looked at", "of": "what that is"}
TOTALS = {"well": "nodes ok", "avg_degree": "average degree", "max_degree": "maximum degree"}
LINES = {
    "nodes ok": "nodes that are ok, or have left in good order",
    "average degree": "links of a node, on average",
    "maximum degree": "links of the node with the most",
    "refused": "connections and requests that nodes have refused, by reason; -: none",
    "denied": "what access rules did not allow, by action; -: none",
}
EPILOG = """\
example:
  omen status
  omen status --at 127.0.0.1:9090 --json

exit codes: 0 all nodes are well, 1 some are not, 2 bad input
"""


EXPLAINED = {
    "columns": COLUMNS,
    "columns of topics": TOPIC_COLUMNS,
    "columns where MQTT clients may connect": MQTT_COLUMNS,
    "columns where publications are waited for": STALLED_COLUMNS,
    "columns where a node was dropped": BANNED_COLUMNS,
    "columns where nodes warn": WARNED_COLUMNS,
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "status",
        help="how a live cluster is: ring, links, topics, health",
        description="Ask the nodes of a cluster how they are: ring, links, topics, health.",
        epilog=EPILOG
        + "".join(explain(f"\n{title}", columns) for title, columns in EXPLAINED.items())
        + explain("\nlines", LINES),
    )
    parser.add_argument("--state", metavar="DIR", default=STATE, help=f"the folder nodes keep their state in ({STATE})")
    parser.add_argument(
        "--at",
        metavar="HOST:PORT",
        action="append",
        type=_address_of,
        help="ask the node with this `http` address, or with a page at it; may be repeated",
    )
    add_json(parser)
    parser.set_defaults(handler=status)


def _address_of(page: str) -> str:
    """HOST:PORT, also of a page as `omen cluster up` and `omen watch` print it."""
    return page.removeprefix("http://").partition("/")[0]


def status(arguments: argparse.Namespace) -> int:
    from omen.net.local.cluster import survey
    from omen.net.local.totals import topics_of, total_survey

    nodes = survey(arguments.state, arguments.at)
    totals = total_survey(nodes)
    if arguments.json:
        print_json({**totals, "by_topic": [asdict(one) for one in topics_of(nodes)], "status": nodes})
    else:
        _print_nodes(nodes)
        _print_topics(topics_of(nodes))
        _print_front_doors(nodes)
        _print_stalled(nodes)
        _print_banned(nodes)
        _print_warnings(nodes)
        print()
        print_facts([(TOTALS.get(name, name), _shown(value)) for name, value in totals.items()])
    return 0 if nodes and totals["well"] == len(nodes) else 1


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{reason} {count}" for reason, count in value.items()) or None
    return value


def _print_nodes(nodes: list[dict[str, Any]]) -> None:
    rows: list[tuple[Any, ...]] = []
    for node in nodes:
        if "links" not in node:
            rows.append((node["name"], node["status"], *(None,) * (len(COLUMNS) - 3), node["address"]))
            continue
        before, after = (next(iter(node[side]), None) for side in ("predecessors", "successors"))
        refused = sum(node["refused"].values()) + sum(node["denied"].values())
        numbers = (node["delivered"], node["published"], node["repairs"], refused)
        links, topics = len(node["links"]), len(node["topics"])
        rows.append((node["name"], node["status"], links, topics, before, after, *numbers, node["address"]))
    print_table(COLUMNS, rows)


def _print_topics(found: list[TopicTotal]) -> None:
    """Split topics first, then those with the most subscribers."""
    if not found:
        return
    print()
    first = sorted(found, key=lambda one: (-(one.pieces or 0), -one.subscribers, one.topic))[:SHOWN]
    print_table(TOPIC_COLUMNS, [(one.topic, one.subscribers, one.carried, one.pieces) for one in first])
    if len(found) > SHOWN:
        print(f"and {len(found) - SHOWN:,} more (--json lists all)")


def _print_front_doors(nodes: list[dict[str, Any]]) -> None:
    """What nodes with a front door have of MQTT, and what went wrong there; nothing where no node has one."""
    found = [(node["name"], node["mqtt"]) for node in nodes if node.get("mqtt")]
    if found:
        print()
        _, *names = MQTT_COLUMNS
        keys = ["held_back" if name == "waits" else name for name in names]
        print_table(MQTT_COLUMNS, [(name, *(door[key] for key in keys)) for name, door in found])


def _print_banned(nodes: list[dict[str, Any]]) -> None:
    """Peers that are dropped for breaking rules; nothing where there are none."""
    rows = [
        (node["name"], peer, f"{seconds:.0f} s")
        for node in nodes
        for peer, seconds in sorted(node.get("banned", {}).items())
    ]
    if rows:
        print()
        print_table(BANNED_COLUMNS, rows)


def _print_warnings(nodes: list[dict[str, Any]]) -> None:
    """What does not keep a node from its work, but should be looked at; nothing where there is none."""
    rows = [(node["name"], ", ".join(node["warnings"])) for node in nodes if node.get("warnings")]
    if rows:
        print()
        print_table(WARNED_COLUMNS, rows)


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
        print_table(STALLED_COLUMNS, rows)

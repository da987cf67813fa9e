"""omen cluster: a live cluster on this machine, a process per node."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import explain, print_facts, print_json, say
from omen.cli.progress import working
from omen.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

STATE = "omen-cluster"
TOPICS, POPULARITY, SIZES = 30, "zipf:0.5", "uniform:3:8"
EPILOG = """\
example:
  omen cluster up --nodes 20
  omen status
  omen cluster kill n3
  omen cluster start n3
  omen cluster down
"""
LINES = {
    "links": "of the overlay to begin with; -: it grows by joins",
    "healthy": "nodes that say they are",
    "state": "the cluster's folder, for the other commands",
    "client": "settings for omen pub, omen sub and omen watch, with keys; -: they need none",
    "page": "the live page with buttons: open it in a browser; who has this address may use them",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "cluster",
        help="a live cluster on this machine: up, kill, start, down",
        description="A live cluster on this machine, a process per node, connected over loopback.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, title="actions")
    _add_up(actions)
    for name, handler, text in (
        ("kill", kill, "kill nodes as a crash would, without a word to the others"),
        ("stop", stop, "ask nodes to leave in good order"),
        ("start", start, "start a node again that crashed or left; it joins through a live one"),
    ):
        example = f"example:\n  omen cluster {name} n3\n"
        action = actions.add_parser(name, help=text, description=text.capitalize() + ".", epilog=example)
        action.add_argument("nodes", metavar="NODE", nargs="+")
        _add_state(action)
        add_json(action)
        action.set_defaults(handler=handler)
    example = "example:\n  omen cluster down\n"
    down_parser = actions.add_parser("down", help="end all nodes", description="End all nodes.", epilog=example)
    _add_state(down_parser)
    add_json(down_parser)
    down_parser.set_defaults(handler=down)


def _add_up(actions: Any) -> None:
    parser = actions.add_parser(
        "up",
        help="start a cluster and leave it running",
        description="Start a cluster and leave it running: on an overlay designed beforehand, or grown by joins.",
        epilog=EPILOG + explain("\nlines", LINES),
    )
    parser.add_argument("--nodes", metavar="N", type=at_least(1), help="how many (all of the workload; without one 20)")
    parser.add_argument("--workload", metavar="W", help=f"who wants what (drawn: {TOPICS} topics, {SIZES} per node)")
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=7, help="of a drawn workload (7)")
    parser.add_argument("--algorithm", metavar="A", default="low-oda", help="of the overlay to begin with (low-oda)")
    parser.add_argument("--grow", action="store_true", help="no overlay to begin with: all join the first node")
    parser.add_argument("--name", metavar="NAME", default="omen", help="of the cluster (omen)")
    parser.add_argument("--tls", action="store_true", help="nodes show each other certificates, made for the purpose")
    parser.add_argument("--no-page", dest="page", action="store_false", help="without the live page and its node")
    parser.add_argument("--log", choices=("text", "json"), default="text", help="how nodes write their logs (text)")
    _add_state(parser)
    add_json(parser)
    parser.set_defaults(handler=up)


def _add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", metavar="DIR", default=STATE, help=f"the cluster's folder ({STATE})")


def up(arguments: argparse.Namespace) -> int:
    if arguments.tls:
        _require_cryptography()
    from omen.net.local.cluster import CLIENT_FILE, LOGS, Plan, bring_up, wait_until_healthy
    from omen.net.local.control import end_page, start_page
    from omen.systems import design_overlay

    interests = _interests(arguments)
    overlay: Overlay | None = None
    if not arguments.grow:
        with working("designing the overlay"):
            overlay = design_overlay(interests, arguments.algorithm)
    topics = {str(node): [str(topic) for topic in wanted] for node, wanted in interests.topics_by_node().items()}
    with working("starting nodes"):
        names = bring_up(arguments.state, Plan(topics, arguments.name, arguments.log, arguments.tls), overlay)
        healthy = wait_until_healthy(arguments.state, names)
        end_page(arguments.state)  # of a former cluster
        page = start_page(arguments.state) if arguments.page else None
    facts = {
        "nodes": len(names),
        "topics": interests.topic_count,
        "links": None if overlay is None else overlay.link_count,
        "healthy": healthy,
        "state": arguments.state,
        "logs": str(Path(arguments.state) / LOGS),
        "client": str(Path(arguments.state) / CLIENT_FILE) if arguments.tls else None,
        "page": page,
    }
    if arguments.json:
        print_json(facts)
    else:
        print_facts(list(facts.items()))
    return 0 if healthy == len(names) else 1


def _require_cryptography() -> None:
    """Before anything is designed, written or started."""
    try:
        import_module("cryptography.x509")
    except ImportError:
        raise MissingDependency(
            "--tls makes certificates, which needs the package cryptography: pip install 'omen-overlay[keys]'"
        ) from None


def _interests(arguments: argparse.Namespace) -> Interests:
    if arguments.workload is None:
        from omen.workloads import generate_named_interests

        return generate_named_interests(arguments.nodes or 20, TOPICS, POPULARITY, SIZES, arguments.seed)
    from omen.tables import read_workload

    interests = read_workload(arguments.workload).interests
    if arguments.nodes is None or arguments.nodes == interests.node_count:
        return interests
    if arguments.nodes > interests.node_count:
        raise InvalidInput(f"--nodes {arguments.nodes}: the workload has {interests.node_count}")
    return interests.first_nodes(arguments.nodes)


def kill(arguments: argparse.Namespace) -> int:
    from signal import SIGKILL

    return _signal(arguments, SIGKILL, "killed")


def stop(arguments: argparse.Namespace) -> int:
    from signal import SIGTERM

    return _signal(arguments, SIGTERM, "asked to leave")


def _signal(arguments: argparse.Namespace, number: Any, word: str) -> int:
    from omen.net.local.cluster import signal_nodes

    told = signal_nodes(arguments.state, arguments.nodes, number)
    if arguments.json:
        print_json({"nodes": told, "done": word})
    else:
        print(f"{word}: {' '.join(told) or 'none of them runs'}")
    return 0 if told else 1


def start(arguments: argparse.Namespace) -> int:
    from omen.net.local.cluster import start_again, wait_until_healthy

    with working("starting nodes"):
        states = start_again(arguments.state, arguments.nodes)
        names = [state["name"] for state in states]
        healthy = wait_until_healthy(arguments.state, names)
    if arguments.json:
        started = [{"name": state["name"], "address": state["address"]} for state in states]
        print_json({"started": started, "healthy": healthy})
    elif healthy < len(names):
        say(f"{len(names) - healthy} of {', '.join(names)} have not joined yet; `omen status` shows which")
    else:
        for state in states:
            print(f"{state['name']} is back at {state['address']}")
    return 0 if healthy == len(names) else 1


def down(arguments: argparse.Namespace) -> int:
    from omen.net.local.cluster import take_down
    from omen.net.local.control import end_page

    end_page(arguments.state)
    ended = take_down(arguments.state)
    if arguments.json:
        print_json({"ended": ended})
    else:
        print(f"ended {len(ended)} nodes")
    return 0

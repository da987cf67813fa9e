"""omen demo: the whole story, small."""

from __future__ import annotations

import argparse
import signal
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json, at_least
from omen.cli.output import explain, print_facts, print_json, print_table
from omen.cli.progress import working

if TYPE_CHECKING:
    from omen.interests import Interests

COLUMNS = {
    "": "the algorithm that designed the overlay, or what each topic has of its own",
    "links": "how many there are",
    "average per node": "links of a node, on average",
    "most at a node": "links of the node with the most",
    "topics connected": "whether the subscribers of every topic are connected by links among them",
    "after any crash": "whether they still are, whichever one node is lost",
}
EPILOG = "example:\n  omen demo --out demo\n"
ALGORITHMS = ("gm", "low-oda", "gm2")
STORY = """\
A link costs its two nodes a connection, heartbeats and memory. With an overlay for each topic, a ring or the mesh of
common gossip systems, a node pays for every topic it wants: {mesh[avg_degree]:.0f} links on average in meshes of
{mesh_degree}.

Nodes that share topics can share links. gm needs the fewest, at the price of a hub with {gm[max_degree]} of them;
low-oda spares the hubs: {low_oda[avg_degree]:.1f} links on average, {low_oda[max_degree]} at most. A publication still
reaches all nodes that want it, through no node that does not. gm2 stays so whichever node crashes.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="the whole story, small: a workload, three overlays, what they cost, a live cluster",
        description="Make a small workload, design overlays with three algorithms, check them, show what they cost;"
        " then start a live cluster, publish, kill some of its nodes, and count what arrived.",
        epilog=EPILOG + explain("\ncolumns", COLUMNS),
    )
    parser.add_argument("--seed", metavar="SEED", type=at_least(0), default=7, help="of the workload (7)")
    parser.add_argument("--out", metavar="DIR", help="folder for the workload and the overlays (a new temporary one)")
    parser.add_argument("--no-live", dest="live", action="store_false", help="leave the live cluster out")
    parser.add_argument(
        "--watch", action="store_true", help="let the live cluster run until Ctrl-C, to look at its page"
    )
    add_json(parser)
    parser.set_defaults(handler=demo)


def demo(arguments: argparse.Namespace) -> int:
    from omen.report.demo import cost_per_topic, design_one, make_workload

    folder = Path(arguments.out or tempfile.mkdtemp(prefix="omen-demo-"))
    with working("drawing a workload"):
        interests = make_workload(folder / "workload", arguments.seed)
    designs = []
    for name in ALGORITHMS:
        with working(f"designing with {name}"):
            designs.append(design_one(interests, name, folder / f"{name}.parquet"))
    rivals = cost_per_topic(interests)
    all_connected = all(row["topic_connected"] for row in designs)
    if not arguments.json:
        _tell(interests, designs, rivals, folder)
    live = _live(folder, arguments) if arguments.live else None
    if arguments.json:
        print_json(
            {
                **interests.counts(),
                "designs": designs,
                "per_topic": rivals,
                "topic_connected": all_connected,
                "live": live,
                "out": str(folder),
            }
        )
    whole = live is None or not (live["lost"] or live["duplicated"])
    return 0 if all_connected and whole else 1


def _live(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    from omen.report.demo import run_live

    if not arguments.json:
        print("\nAlive: an overlay by low-oda, carrying publications.")
    tell = (lambda line: None) if arguments.json else (lambda line: print(f"  {line}", flush=True))
    stay = partial(_stay, tell) if arguments.watch else lambda: None
    with _ended_as_by_ctrl_c():
        found = run_live(folder / "live", arguments.seed, tell, stay)
    if not arguments.json:
        _print_live(found)
    return found


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM, or a terminal that is closed, ends the nodes too: they are processes that would stay."""
    every = (signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in every if signal.getsignal(number) != signal.SIG_IGN]  # nohup: it is to stay
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _stay(tell: Callable[[str], None]) -> None:
    """Until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        tell("the nodes publish until Ctrl-C")
        while True:
            time.sleep(3600)


def _print_live(found: dict[str, Any]) -> None:
    from omen.report.demo import MESH_DEGREE

    facts = [
        ("links per node", f"{found['links_before']:.1f}, after repairs {found['links_after']:.1f}"),
        (f"in a mesh of {MESH_DEGREE} per topic", f"{found['links_in_meshes']:.1f}"),
        ("published by survivors", found["published"]),
        ("deliveries due", found["due"]),
        ("delivered", found["delivered"]),
    ]
    print_facts(facts)
    print(f"lost {found['lost']}")
    print(f"duplicated {found['duplicated']}")


def _tell(interests: Interests, designs: list[dict[str, Any]], rivals: list[dict[str, Any]], folder: Path) -> None:
    from omen.report.demo import MESH_DEGREE

    wanted = interests.subscription_count / interests.node_count
    print(f"{interests.node_count} nodes want {wanted:.1f} of {interests.topic_count} topics each.\n")
    fields = ("algorithm", "edges", "avg_degree", "max_degree", "topic_connected", "survives_a_crash")
    rows = [tuple(row[column] for column in fields) for row in designs]
    rows += [
        (f"a {row['each_topic']} per topic", row["edges"], row["avg_degree"], row["max_degree"], None, None)
        for row in rivals
    ]
    print_table(COLUMNS, rows)
    gm, low_oda, _ = designs
    story = STORY.format(mesh=rivals[1], mesh_degree=MESH_DEGREE, gm=gm, low_oda=low_oda)
    for paragraph in story.split("\n\n"):
        print("\n" + textwrap.fill(" ".join(paragraph.split()), 100))
    print(f"\nWorkload and overlays are kept in {folder}. Look closer:")
    place = f"--workload {folder}/workload --overlay {folder}/low-oda.parquet"
    print(f"  omen check {place} --diameters")
    print(f"  omen export {place} --format graphml --out overlay.graphml")

"""Nodes that list each other as seeds, begun at the same time, each a process of its own: do they form one ring?

python -m tests.network.cold_starts --nodes 5 --times 50
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omen.protocol.membership.ring import nearest_after, place_of

SUCCESSORS = 3
TOPICS = 8
JOINED_WITHIN_S = {3: 2.0, 5: 2.0, 20: 6.0}
READY_WITHIN_S = 10.0
PATIENCE_S = 60.0
MODES = ("others", "all", "file", "names")
"""Whom each node lists: the others; itself too; both in a file; the same as `localhost`."""


@dataclass(frozen=True)
class Course:
    """Seconds from the last start on: until every node had joined, until there was one ring, until views were ready."""

    joined_s: float
    ring_s: float
    ready_s: float
    trouble: str = ""


def free_ports(count: int) -> list[int]:
    """Ports that are free now, and below those that systems give to outgoing connections: until its node listens, a
    port of these may be taken by another node that dials.
    """
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(12_000, 32_000), 1_000):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"fewer than {count} of 1,000 ports are free")


class Nodes:
    """Processes of `omen node`, each with a settings file."""

    def __init__(self, folder: Path, count: int, mode: str) -> None:
        self.folder, self.count, self.mode = folder, count, mode
        ports = free_ports(2 * count)
        self.ports, self.pages = ports[:count], ports[count:]
        self.processes: list[subprocess.Popen[bytes]] = []

    def write_settings(self) -> None:
        host = "localhost" if self.mode == "names" else "127.0.0.1"
        addresses = [f"{host}:{port}" for port in self.ports]
        (self.folder / "seeds").write_text("# all nodes\n" + "\n".join(addresses) + "\n")
        for number in range(self.count):
            others = [address for place, address in enumerate(addresses) if place != number]
            listed = others if self.mode == "others" else addresses
            seeds = 'join_file = "seeds"' if self.mode == "file" else f"join = {json.dumps(listed)}"
            topics = [f"t{(number + step) % TOPICS}" for step in range(3)]
            (self.folder / f"n{number}.toml").write_text(
                f'name = "n{number}"\nlisten = "127.0.0.1:{self.ports[number]}"\n'
                f'http = "127.0.0.1:{self.pages[number]}"\n{seeds}\ntopics = {json.dumps(topics)}\n'
            )

    def start(self, spread_s: float) -> None:
        """In a random order, within so many seconds."""
        order = random.sample(range(self.count), self.count)
        for number in order:
            with (self.folder / f"n{number}.log").open("wb") as log:
                command = [sys.executable, "-m", "omen.cli", "node", "--config", str(self.folder / f"n{number}.toml")]
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
            time.sleep(spread_s * random.random() / self.count)

    def page(self, number: int, path: str) -> Any:
        with suppress(OSError, urllib.error.URLError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.pages[number]}{path}", timeout=2) as answer:
                text = answer.read().decode()
            return json.loads(text) if path == "/topology" else text
        return None

    def end(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGQUIT)
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()

    def log_lines(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("*.log")))


def gauge(page: str, name: str) -> float:
    return next((float(line.split()[-1]) for line in page.splitlines() if line.startswith(f"{name} ")), 0.0)


def is_ring(nodes: Nodes) -> bool:
    """Whether the successors of each node are those that follow it among all nodes."""
    names = [f"n{number}" for number in range(nodes.count)]
    places = {place_of(name): name for name in names}
    for number, name in enumerate(names):
        page = nodes.page(number, "/topology")
        near = [places[place] for place in nearest_after(place_of(name), places, SUCCESSORS)]
        if page is None or [_name(label, places) for label in page.get("successors", ())] != near:
            return False
    return True


def _name(label: str, places: dict[int, str]) -> str:
    """A node that was never connected here is shown by its place."""
    return label if label in places.values() else places.get(int(label, 16), label)


def watch(nodes: Nodes, begun: float) -> Course:
    """Look at the pages until everything is as it should be, all at once."""
    passed: dict[str, float] = {}
    around = min(SUCCESSORS, nodes.count - 1)
    while time.monotonic() - begun < PATIENCE_S:
        pages = [nodes.page(number, "/metrics") or "" for number in range(nodes.count)]
        now = time.monotonic() - begun
        sets = [(gauge(page, "omen_backup_sets"), gauge(page, "omen_backup_sets_ready")) for page in pages]
        states = {
            "joined": all(gauge(page, "omen_node_joined") for page in pages),
            "ready": all(found == (around, around) for found in sets),
        }
        states["ring"] = states["joined"] and is_ring(nodes)
        for name, holds in states.items():
            if holds:
                passed.setdefault(name, now)
            else:
                passed.pop(name, None)
        if len(passed) == len(states):
            return Course(passed["joined"], passed["ring"], passed["ready"])
        if any(process.poll() is not None for process in nodes.processes):
            return Course(now, now, now, "a node has ended: " + nodes.log_lines())
        time.sleep(0.05)
    return Course(PATIENCE_S, PATIENCE_S, PATIENCE_S, f"after {PATIENCE_S:g} s only {sorted(passed)}")


def cold_start(count: int, mode: str, spread_s: float, keep: Path | None = None) -> Course:
    """`keep`: where settings and logs go if the nodes did not come together in time."""
    with tempfile.TemporaryDirectory() as folder:
        nodes = Nodes(Path(folder), count, mode)
        nodes.write_settings()
        try:
            nodes.start(spread_s)
            course = watch(nodes, time.monotonic())
        finally:
            nodes.end()
        if keep is not None and not is_good(course, count):
            shutil.copytree(folder, keep / f"{mode}-{time.time():.0f}")
        return course


def is_good(course: Course, count: int) -> bool:
    within = JOINED_WITHIN_S.get(count, 6.0)
    return not course.trouble and course.joined_s <= within and course.ready_s <= READY_WITHIN_S


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--mode", choices=(*MODES, "mixed"), default="mixed")
    parser.add_argument("--spread", type=float, default=0.3, help="seconds over which the nodes are begun")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2), "big"))
    parser.add_argument("--keep", type=Path, help="a folder for settings and logs of starts that took too long")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    courses, bad = [], 0
    for number in range(arguments.times):
        mode = MODES[number % len(MODES)] if arguments.mode == "mixed" else arguments.mode
        course = cold_start(arguments.nodes, mode, arguments.spread, arguments.keep)
        courses.append(course)
        went_well = is_good(course, arguments.nodes)
        bad += not went_well
        print(
            f"{number + 1} {mode}: joined {course.joined_s:.2f} s, ring {course.ring_s:.2f} s,"
            f" ready {course.ready_s:.2f} s{'' if went_well else ' BAD'} {course.trouble}",
            flush=True,
        )
    for what in ("joined_s", "ring_s", "ready_s"):
        values = sorted(getattr(course, what) for course in courses)
        print(f"{what}: median {statistics.median(values):.2f}, longest {values[-1]:.2f}")
    print(f"{arguments.times} cold starts of {arguments.nodes} nodes, seed {arguments.seed}: {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

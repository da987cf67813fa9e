"""A live overlay under load, next to servers: deliveries per second, latency, links.

python -m bench.net [--scene overlay] [--system omen] [--payload 100]: each is measured by itself and added to
bench/results/net.json. Every node is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import select
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.measure import RESULTS, machine_facts
from bench.net_clients import RIVALS, serve_omen, serve_rival, server
from bench.net_worker import Load, milliseconds_at
from omen.interests import Interests
from omen.net.broker import Origin
from omen.net.event_loop import run
from omen.net.local.forking import fork, plan_presets, preload
from omen.net.settings import NodeConfig
from omen.overlay import Overlay
from omen.quality import degree_summary, per_topic_mesh_links
from omen.systems import design_overlay
from omen.workloads import generate_interests

TITLE = "A live overlay"
INTRODUCTION = (
    "Every node, and every client of a server, is a process of its own unless the table says otherwise; all on this"
    " machine, over loopback. Load is raised by a third at a time while at least 95 of 100 publications offered are"
    " made, and delivered to all, in time; what was delivered last is the rate told. Latencies are those at half of it,"
    " after a rest, and those at a load that is the same for all: 25,000 deliveries per second of 100 B, 2,500 of 10"
    " KB. A publisher's own copy is not counted. Clients of the servers are raw (asyncio, writes of one tick joined,"
    " quality of service 0), so that the server shows and not its client library. The load told is that of the minute"
    " before, which is mostly the row measured before."
)
NOTES = (
    "To reach on the 40-node overlay with 100 B: 50,000 deliveries per second (reached twice over), at most 0.2"
    " duplicates per delivery (reached), p99 at half load at most 30 ms. Taking half of these 50,000 as half load, that"
    " is reached with twenty nodes in each of two processes, one for each core, and not with forty processes; at half"
    " of the highest rate it is reached by neither.",
    "Where the time goes. By a profile of brokers that share a process, about a third is the core (finding the stream,"
    " keeping the window, delivering in order), a third the way to the application (a message object, the inbox, waking"
    " the task), a quarter the way out (queues, joining, writing), the rest reading and parsing. With forty processes"
    " the waking itself comes on top: at 670 deliveries per second each wake costs some 230 µs of processor time, at"
    " 12,000 still 180, most of it because an interpreter that is woken for one publication finds its code and data"
    " gone from the caches. What is handled at one wake shares that, so two cores are full from some 12,000 deliveries"
    " per second on, and deliver eight times as many, later: each of the four to six hops of a publication waits its"
    " turn among forty processes. Nor is it only the queue: at 50 publications per second, the cores all but idle, a"
    " hop among forty processes takes some 2 ms, in a busy chain of eight 0.4. Reading sockets only every 3 or 6 ms,"
    " so that more is handled at one wake, was tried and changed nothing.",
)
SYSTEMS = ("omen", *RIVALS)
STEP, OFFERED, KEPT, LONGEST_STEPS = 4 / 3, 0.9, 0.95, 24
WARM_S, MEASURE_S = 1.0, 2.5
FIRST_DELIVERIES = {100: 12_000.0, 10_000: 3_000.0}  # per second, where the climb begins
STEADY_DELIVERIES = {100: 25_000.0, 10_000: 2_500.0}  # per second, where latencies can be compared
REST_S = 4.0
MESH_DEGREE = 6


@dataclass
class Scene:
    """Who wants what, who is linked, who publishes."""

    name: str
    interests: Interests
    overlay: Overlay
    publishers: list[int]

    def topics_of(self, code: int) -> list[str]:
        return [str(self.interests.topics[topic]) for topic in self.interests.topics_of(code).tolist()]


def make_scene(name: str) -> Scene:
    if name == "chain":
        nodes = [f"n{number}" for number in range(8)]
        interests = Interests.from_pairs([(node, "t") for node in nodes])
        return Scene("chain of 8", interests, Overlay.from_links(nodes, list(pairwise(nodes))), [0])
    if name == "star":
        nodes = [f"n{number}" for number in range(9)]
        interests = Interests.from_pairs([(node, "t") for node in nodes])
        return Scene("star of 8", interests, Overlay.from_links(nodes, [("n0", node) for node in nodes[1:]]), [0])
    drawn = generate_interests(40, 30, "zipf:0.5", "uniform:5:15", 7)
    interests = Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in drawn.pairs()])
    return Scene("40-node overlay", interests, design_overlay(interests, "low-oda"), list(range(40)))


SCENES = ("chain", "star", "overlay")


@dataclass
class Child:
    pid: int
    commands: int
    answers: int
    buffer: bytes = b""

    def say(self, line: str) -> None:
        os.write(self.commands, line.encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        while b"\n" not in self.buffer:
            if not select.select([self.answers], [], [], 60)[0]:
                raise TimeoutError("a process does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise ConnectionError("a process has ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        told: dict[str, Any] = json.loads(line)
        return told


@dataclass
class Sample:
    """One stretch of steady load, all processes together."""

    offered: float
    seconds: float
    published: int = 0
    due: int = 0
    delivered: int = 0
    processor_s: float = 0.0
    latencies: Counter[int] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)


class Team:
    """All processes of one scene and system."""

    def __init__(self, scene: Scene, children: Sequence[Child], server_pid: int | None) -> None:
        self.scene = scene
        self.children = children
        self.server_pid = server_pid

    def sample(self, rate: float, seconds: float = MEASURE_S) -> Sample:
        """Publish at this rate, all publishers together, and count for a while."""
        for code in self.scene.publishers:
            self.children[code].say(f"rate {rate / len(self.scene.publishers)}")
        time.sleep(WARM_S)
        before = self._server_time()
        for child in self.children:
            child.say("count")
        begun = time.monotonic()
        time.sleep(seconds)
        for child in self.children:
            child.say("tell")
        result = Sample(rate, time.monotonic() - begun)
        for child in self.children:
            told = child.hear()
            result.published += told.pop("published")
            result.due += told.pop("due")
            result.delivered += told.pop("delivered")
            result.processor_s += told.pop("processor_s")
            result.latencies.update({int(bucket): count for bucket, count in told.pop("latencies").items()})
            result.others.update(told)
        result.processor_s += self._server_time() - before
        return result

    def _server_time(self) -> float:
        if self.server_pid is None:
            return 0.0
        fields = Path(f"/proc/{self.server_pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rest(self, seconds: float = 1.0) -> None:
        for code in self.scene.publishers:
            self.children[code].say("rate 0")
        time.sleep(seconds)

    def end(self) -> None:
        for child in self.children:
            child.say("end")
        for pid in {child.pid for child in self.children}:
            os.waitpid(pid, 0)
        for child in self.children:
            os.close(child.commands)
            os.close(child.answers)


def start_children(serves: Sequence[Any], log: Path, strangers: Sequence[Origin] = ()) -> list[Child]:
    """One process for some clients, each with a pipe of its own."""
    pipes = [(os.pipe(), os.pipe()) for _ in serves]

    async def serve() -> None:
        await asyncio.gather(
            *(one(commands[0], answers[1]) for one, (commands, answers) in zip(serves, pipes, strict=True))
        )

    pid = fork(lambda: run(serve()), log, origins=strangers)
    for commands, answers in pipes:
        os.close(commands[0])
        os.close(answers[1])
    return [Child(pid, commands[1], answers[0]) for commands, answers in pipes]


def start_team(
    scene: Scene, system: str, payload: int, folder: Path, place: tuple[int, int] | None, processes: int
) -> Team:
    """`processes`: over so many the nodes are spread evenly, 0 for one each."""
    nodes = scene.interests.nodes.tolist()
    groups = [range(start, len(nodes), processes) for start in range(processes)] if processes else None
    groups = groups or [range(code, code + 1) for code in range(len(nodes))]
    loads = {code: make_load(scene, code, payload, leads=code == group[0]) for group in groups for code in group}
    children: dict[int, Child] = {}
    if system == "omen":
        configs = [NodeConfig(name=node, topics=tuple(scene.topics_of(code))) for code, node in enumerate(nodes)]
        origins = plan_presets(scene.overlay, configs)
        for group in groups:
            serves = [partial(serve_omen, configs[code], origins[code], loads[code]) for code in group]
            strangers = [origin for code, origin in enumerate(origins) if code not in group]
            children.update(zip(group, start_children(serves, folder / nodes[group[0]], strangers), strict=True))
        for origin in origins:
            origin.socket.close()
        return Team(scene, [children[code] for code in range(len(nodes))], None)
    assert place is not None
    port, pid = place
    for group in groups:
        serves = [partial(serve_rival, RIVALS[system], port, scene.topics_of(code), loads[code]) for code in group]
        children.update(zip(group, start_children(serves, folder / nodes[group[0]]), strict=True))
    return Team(scene, [children[code] for code in range(len(nodes))], pid)


def make_load(scene: Scene, code: int, payload: int, leads: bool) -> Load:
    topics = scene.interests.topics_of(code).tolist() if code in scene.publishers else []
    names = [str(scene.interests.topics[topic]) for topic in topics]
    others = [int(scene.interests.subscribers_of(topic).size) - 1 for topic in topics]
    return Load(names, others, payload, code, leads)


def copies(scene: Scene) -> float:
    """Deliveries a publication, publishers choosing among their topics evenly."""
    sizes = [scene.interests.subscribers_of(topic).size for topic in range(scene.interests.topic_count)]
    means = []
    for code in scene.publishers:
        topics = scene.interests.topics_of(code).tolist()
        means.append(sum(sizes[topic] - 1 for topic in topics) / len(topics))
    return sum(means) / len(means)


def climb(team: Team, payload: int) -> tuple[Sample, Sample, Sample]:
    """The highest load that was kept up with, a sample at half of it, and one at a load that is the same for all."""
    each = copies(team.scene)
    rate = FIRST_DELIVERIES.get(payload, 3_000.0) / each
    team.sample(rate / 4)
    steady = team.sample(STEADY_DELIVERIES.get(payload, 2_500.0) / each, 2 * MEASURE_S)
    print(f"  steady: {_line(steady)}", file=sys.stderr, flush=True)
    best: Sample | None = None
    for _ in range(LONGEST_STEPS):
        found = team.sample(rate)
        kept = found.published >= OFFERED * rate * found.seconds and found.delivered >= KEPT * found.due
        print(f"  {rate:9.0f}/s offered: {_line(found)}{'' if kept else '  (not kept)'}", file=sys.stderr, flush=True)
        if not kept:
            break
        best = found
        rate *= STEP
    if best is None:
        raise RuntimeError("not even the first load was kept")
    team.rest(REST_S)
    half = team.sample(best.offered / 2, 2 * MEASURE_S)
    print(f"  half: {_line(half)}", file=sys.stderr, flush=True)
    return best, half, steady


def _line(found: Sample) -> str:
    p50, p99 = (milliseconds_at(found.latencies, share) for share in (0.5, 0.99))
    extra = ", ".join(f"{name} {count}" for name, count in found.others.items() if count)
    each = found.processor_s / max(found.delivered, 1) * 1e6
    rate = found.delivered / found.seconds
    return f"{rate:9.0f} deliveries/s, {each:.0f} us each, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {extra}"


def measure(scene_name: str, system: str, payload: int, processes: int = 0) -> dict[str, Any] | None:
    """One line of the table; None where the server is not installed."""
    scene = make_scene(scene_name)
    preload()
    before = machine_facts()
    with tempfile.TemporaryDirectory() as folder:
        if system == "omen":
            team = start_team(scene, system, payload, Path(folder), None, processes)
            best, half, steady = _climb_and_end(team, payload)
        else:
            with server(system) as place:
                if place is None:
                    return None
                team = start_team(scene, system, payload, Path(folder), place, processes)
                best, half, steady = _climb_and_end(team, payload)
    return {
        "scene": scene.name,
        "system": system,
        "payload": payload,
        "processes": processes or len(scene.interests.nodes),
        "deliveries_per_s": best.delivered / best.seconds,
        "processor_us": best.processor_s / max(best.delivered, 1) * 1e6,
        "p50_ms": milliseconds_at(half.latencies, 0.5),
        "p99_ms": milliseconds_at(half.latencies, 0.99),
        "steady_per_s": steady.delivered / steady.seconds,
        "steady_p50_ms": milliseconds_at(steady.latencies, 0.5),
        "steady_p99_ms": milliseconds_at(steady.latencies, 0.99),
        "duplicates": half.others["duplicates"] / max(half.delivered, 1) if system == "omen" else None,
        "load_average": before["load_average"],
    }


def _climb_and_end(team: Team, payload: int) -> tuple[Sample, Sample, Sample]:
    try:
        return climb(team, payload)
    finally:
        team.end()


def links_per_node(scene_name: str = "overlay") -> dict[str, float]:
    """What the overlay needs against a mesh for each topic, on the same workload."""
    scene = make_scene(scene_name)
    mesh = per_topic_mesh_links(scene.interests, MESH_DEGREE)
    own = degree_summary(scene.overlay)
    return {"omen": own.average, "omen_most": own.maximum, "meshes": mesh.average, "meshes_most": mesh.maximum}


def keep(rows: Sequence[dict[str, Any]]) -> None:
    """Replace these rows among those measured before."""
    path = RESULTS / "net.json"
    RESULTS.mkdir(exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    known = before.get("live", [])
    keys = {_key(row) for row in rows}
    merged = [row for row in known if _key(row) not in keys] + list(rows)
    merged.sort(key=_key)
    found = {
        "title": TITLE,
        "introduction": INTRODUCTION,
        "machine": machine_facts(),
        "links": links_per_node(),
        "live": merged,
        "tls": before.get("tls", []),
        "notes": NOTES,
    }
    path.write_text(json.dumps(found, indent=1) + "\n")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["scene"], row["payload"], -row["processes"], SYSTEMS.index(row["system"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=SCENES)
    parser.add_argument("--system", action="append", choices=SYSTEMS)
    parser.add_argument("--payload", action="append", type=int)
    parser.add_argument("--processes", type=int, default=0, help="spread the nodes over so many (0: one each)")
    parser.add_argument("--dry", action="store_true", help="measure and print, keep nothing")
    told = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    rows = []
    for scene in told.scene or SCENES:
        for payload in told.payload or (100, 10_000):
            for system in told.system or SYSTEMS:
                print(f"{scene}, {payload} B, {system}", file=sys.stderr, flush=True)
                row = measure(scene, system, payload, told.processes)
                if row is not None:
                    rows.append(row)
                    print(json.dumps(row), flush=True)
                    if not told.dry:
                        keep(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

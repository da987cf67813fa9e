"""An end-to-end run: real processes on loopback, killed, stopped, joined again and again while they publish.

    python -m tests.network.chaos --nodes 40 --minutes 60 --kills 500 --stops 40 --stop-seconds 12

The verdict comes from the logs of the processes alone.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from omen.interests import Interests
from omen.net.local.forking import fork, plan_presets, preload
from omen.net.observe.http_client import ask
from omen.net.recording import replay_recording
from omen.net.security.config import Security
from omen.net.security.key_files import make_cluster_keys, security_from
from omen.net.settings import LIVE, NodeConfig
from omen.net.state import read_states
from omen.systems import design_overlay
from omen.workloads import generate_interests

from .member import Task, be_member
from .verdict import Verdict, judge

NEWCOMERS = "m*"
KINDS = ("cut nodes", "coordinators", "neighbours", "any")
MEND_PATIENCE_S = 180.0
LOOK_S = 0.5


@dataclass
class Plan:
    """The size of a run. `rate`: publications a second, all nodes together. `stop_s`: a freeze takes so long at most.

    `change_s`: a node takes up and gives up topics so often, on average. `fewest`: killed at once.
    """

    nodes: int = 20
    topics: int = 30
    seconds: float = 40.0
    kills: int = 12
    rate: float = 60.0
    stops: int = 1
    stop_s: float = 4.0
    change_s: float = 15.0
    seed: int = 7
    replays: int = 0
    fewest: int = 1
    longest_s: float = 86_400.0
    tls: bool = False


@dataclass
class Process:
    config: NodeConfig
    pid: int
    log: Path


@dataclass
class Replays:
    """Recordings told to fresh cores, and which of those answered otherwise."""

    recordings: int
    inputs: int
    differing: list[str]


@dataclass
class Told:
    """What was done to the cluster. `unrepaired`: waits for losses to be repaired that were given up.

    `turned_away`: processes that ended before they had joined. `died`: those that ended by themselves afterwards.
    """

    kills: int = 0
    rounds: int = 0
    most_at_once: int = 0
    joins: int = 0
    stops: int = 0
    stopped_s: float = 0.0
    by_kind: dict[str, int] = field(default_factory=dict)
    longest_mend_s: float = 0.0
    unrepaired: int = 0
    turned_away: int = 0
    died: list[str] = field(default_factory=list)


class Chaos:
    """Runs the processes and does things to them; every choice is drawn from the seed. `algorithm`: of the overlay that
    they begin with.
    """

    algorithm = "low-oda"

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.random = random.Random(plan.seed)
        self.told = Told()
        drawn = generate_interests(plan.nodes, plan.topics, "zipf:0.5", "uniform:3:8", plan.seed)
        self.interests = Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in drawn.pairs()])
        self.topics: list[str] = self.interests.topics.tolist()
        self.alive: dict[str, Process] = {}
        self.dead: list[NodeConfig] = []
        self._count = 0
        self._begun = 0.0

    def config(self, name: str, topics: tuple[str, ...]) -> NodeConfig:
        """A cluster of its own: where another run is on the machine, one node may come to a port that another had."""
        state, security, cluster = str(self.folder / "nodes"), self.security_of(name), self.folder.name
        return NodeConfig(
            name, cluster, topics=topics, http="127.0.0.1:0", state=state, protocol=LIVE, security=security
        )

    def security_of(self, name: str) -> Security:
        """A certificate each; newcomers share one, for any name that begins like theirs."""
        if not self.plan.tls:
            return Security()
        return security_from(self.folder / "keys", NEWCOMERS if fnmatchcase(name, NEWCOMERS) else name)

    def start(self) -> None:
        for part in ("logs", "nodes", "trouble", "recordings"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        preload()
        if self.plan.tls:
            make_cluster_keys(self.folder / "keys", self.folder.name, [*self.interests.nodes.tolist(), NEWCOMERS])
        overlay = design_overlay(self.interests, self.algorithm)
        configs = [
            self.config(node, tuple(self.topics[topic] for topic in self.interests.topics_of(code).tolist()))
            for code, node in enumerate(self.interests.nodes.tolist())
        ]
        origins = plan_presets(overlay, configs)
        for config, origin in zip(configs, origins, strict=True):
            self._fork(config, origin, origins)

    def _fork(self, config: NodeConfig, origin: Any = None, origins: Any = ()) -> None:
        self._count += 1
        log = self.folder / "logs" / f"{config.name}.{self._count}.log"
        log.touch()
        rate = self.plan.rate / self.plan.nodes
        task = Task(log, rate, self.topics, self.plan.change_s, self.plan.seed * 100_000 + self._count)
        trouble = self.folder / "trouble" / f"{config.name}.{self._count}.txt"
        if self.plan.replays:
            config = replace(config, record=str(self.folder / "recordings" / f"{config.name}.{self._count}"))
        pid = fork(partial(be_member, config, origin, task), trouble, origin, origins)
        self.alive[config.name] = Process(config, pid, log)

    def look(self) -> dict[str, dict[str, Any]]:
        """What the living say of themselves."""
        states = {state["name"]: state for state in read_states(self.folder / "nodes")}
        names = [name for name, process in self.alive.items() if states.get(name, {}).get("pid") == process.pid]
        answers = ask([states[name]["http"] for name in names], "/topology", 10.0)
        return {name: answer for name, answer in zip(names, answers, strict=True) if answer is not None}

    def wait_until_repaired(self) -> float:
        """Until all nodes are there, and none knows of a loss that is not repaired; how long that took."""
        begun = time.monotonic()
        while time.monotonic() - begun < MEND_PATIENCE_S:
            seen = self.look()
            calm = [
                name
                for name, node in seen.items()
                if node["status"] == "ok" and node["successors"] and not node["losses"]
            ]
            if len(calm) == len(self.alive) and self.dead_names().isdisjoint(_known(seen)):
                return time.monotonic() - begun
            time.sleep(LOOK_S)
            self._reap()
        self.told.unrepaired += 1
        return time.monotonic() - begun

    def dead_names(self) -> set[str]:
        return {config.name for config in self.dead} - self.alive.keys()

    def choose_victims(self) -> tuple[str, list[str]]:
        """Up to L at once, in turn: cut nodes; a node with those that would repair its loss, or neighbours; any."""
        seen = self.look()
        most = LIVE.resilience
        kind = KINDS[self.told.rounds % len(KINDS)]
        first = self.random.choice(sorted(self.alive))
        around = seen.get(first, {"successors": [], "links": []})
        if kind == "coordinators":
            victims = [first, *around["successors"][: most - 1]]
        elif kind == "neighbours":
            victims = [first, *self.random.sample(around["links"], min(most - 1, len(around["links"])))]
        elif kind == "cut nodes":
            cut = self.cut_nodes(seen)
            victims = self.random.sample(cut, min(self.random.randint(self.plan.fewest, most), len(cut))) or [first]
        else:
            victims = self.random.sample(sorted(self.alive), self.random.randint(self.plan.fewest, most))
        return kind, [name for name in victims if name in self.alive][:most]

    def cut_nodes(self, seen: dict[str, dict[str, Any]]) -> list[str]:
        """Nodes without which some topic falls apart."""
        subscribers: dict[str, set[str]] = {}
        for name, node in seen.items():
            for topic in node["topics"]:
                subscribers.setdefault(topic["topic"], set()).add(name)
        cut = set()
        for members in subscribers.values():
            cut |= {name for name in members if _pieces(members - {name}, seen) > 1}
        return sorted(cut)

    def kill(self, count: int) -> None:
        kind, victims = self.choose_victims()
        victims = victims[:count]
        for name in victims:
            process = self.alive.pop(name)
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
            self.dead.append(process.config)
        self.told.kills += len(victims)
        self.told.rounds += 1
        self.told.most_at_once = max(self.told.most_at_once, len(victims))
        self.told.by_kind[kind] = self.told.by_kind.get(kind, 0) + len(victims)

    def _reap(self) -> None:
        """Processes that ended though they were not killed: before they had joined, or worse."""
        for name, process in list(self.alive.items()):
            if os.waitpid(process.pid, os.WNOHANG)[0]:
                self.dead.append(self.alive.pop(name).config)
                if process.log.stat().st_size:
                    self.told.died.append(process.log.stem)
                else:
                    self.told.turned_away += 1

    def fill_up(self) -> None:
        """Bring back as many as are missing: under their names, or (one in three) as newcomers."""
        states = {state["name"]: state for state in read_states(self.folder / "nodes")}
        settled = sorted(name for name, process in self.alive.items() if states.get(name, {}).get("pid") == process.pid)
        while len(self.alive) < self.plan.nodes and self.dead:
            config = self.dead.pop(0)
            if config.name in self.alive:
                continue
            if self.random.randrange(3) == 0:
                name = f"m{self._count}"
                config = replace(config, name=name, security=self.security_of(name))
            contacts = self.random.sample(settled, 2)
            self._fork(replace(config, join=tuple(states[name]["address"] for name in contacts)))
            self.told.joins += 1

    def stop_one(self) -> None:
        """Freeze a process for a while."""
        process = self.alive[self.random.choice(sorted(self.alive))]
        seconds = self.plan.stop_s * self.random.uniform(0.25, 1.0)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)
        self.told.stops += 1
        self.told.stopped_s += seconds

    def run(self) -> Verdict:
        self.start()
        self.wait_until_repaired()
        self._begun = time.monotonic()
        try:
            while self.told.kills < self.plan.kills and time.monotonic() - self._begun < self.plan.longest_s:
                self._one_round()
            self.finish()
        finally:
            self.end_all()
        return judge((self.folder / "logs").glob("*.log"))

    def _one_round(self) -> None:
        """Kill, wait until that is repaired, bring back as many; then wait until it is time for the next."""
        left = self._begun + self.plan.seconds - time.monotonic()
        rounds_left = max((self.plan.kills - self.told.kills) / 2.5, 1)
        begun = time.monotonic()
        self.kill(self.plan.kills - self.told.kills)
        took = self.wait_until_repaired()
        self.told.longest_mend_s = max(self.told.longest_mend_s, took)
        self.fill_up()
        if self.told.stops * self.plan.kills < self.plan.stops * self.told.kills:
            self.stop_one()
        self.wait_until_repaired()
        print(
            f"{time.monotonic() - self._begun:.0f} s, repaired in {took:.1f} s, {self.told}",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(max(0.0, min(left / rounds_left - (time.monotonic() - begun), 60.0)))

    def replay(self) -> Replays:
        """Tell fresh cores what some of the processes were told, those that were killed among them."""
        recordings = sorted((self.folder / "recordings").iterdir())
        chosen = self.random.sample(recordings, min(self.plan.replays, len(recordings)))
        done = {path.name: replay_recording(path) for path in chosen}
        differing = [name for name, replayed in done.items() if replayed.differs_at is not None]
        return Replays(len(done), sum(replayed.steps for replayed in done.values()), differing)

    def finish(self) -> None:
        """No more publications; then time for all that is under way."""
        for process in self.alive.values():
            os.kill(process.pid, signal.SIGUSR1)
        self.wait_until_repaired()
        self.wait_until_whole()

    def wait_until_whole(self, patience_s: float = 180.0) -> None:
        """Until the logs, which are written twice a second, lack nothing: what is under way may take its time.

        A publication is in no log yet when it has just been accepted: nothing may be lacking twice, of the same ones.
        """
        deadline = time.monotonic() + patience_s
        accepted = -1
        while time.monotonic() < deadline:
            time.sleep(1.0)
            seen = judge((process.log for process in self.alive.values()), ended=False)
            if not seen.lost and seen.accepted == accepted:
                return
            accepted = seen.accepted

    def end_all(self) -> None:
        """Those that are frozen, too."""
        for process in self.alive.values():
            os.kill(process.pid, signal.SIGCONT)
            os.kill(process.pid, signal.SIGQUIT)
        self.wait_for_end()

    def wait_for_end(self, patience_s: float = 30.0) -> None:
        deadline = time.monotonic() + patience_s
        pids = {process.pid for process in self.alive.values()}
        while pids and time.monotonic() < deadline:
            for pid in list(pids):
                try:
                    done, _ = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    done = pid
                if done:
                    pids.discard(pid)
            time.sleep(0.05)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def _known(seen: dict[str, dict[str, Any]]) -> set[str]:
    sides = ("predecessors", "successors", "links")
    return {name for node in seen.values() for side in sides for name in node[side]}


def _pieces(members: set[str], seen: dict[str, dict[str, Any]]) -> int:
    left, pieces = set(members), 0
    while left:
        pieces += 1
        edge = [left.pop()]
        while edge:
            for other in seen[edge.pop()]["links"]:
                if other in left:
                    left.discard(other)
                    edge.append(other)
    return pieces


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=0.7)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--stops", type=int, default=1)
    parser.add_argument("--stop-seconds", type=float, default=4.0, help="a freeze takes a quarter of this to all of it")
    parser.add_argument("--change-seconds", type=float, default=15.0, help="a node changes its topics so often")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--replays", type=int, default=0, help="record all, and replay so many through fresh cores")
    parser.add_argument("--tls", action="store_true", help="nodes show each other certificates")
    parser.add_argument("--fewest", type=int, default=1, help="killed at once")
    parser.add_argument("--longest", type=float, default=1440.0, help="no more kills after so many minutes")
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args(argv)
    folder = told.folder or Path(tempfile.mkdtemp(prefix="omen-chaos-"))
    plan = Plan(told.nodes, told.topics, told.minutes * 60, told.kills, told.rate, told.stops, told.stop_seconds)
    plan = replace(plan, change_s=told.change_seconds, seed=told.seed, replays=told.replays, tls=told.tls)
    plan = replace(plan, fewest=told.fewest, longest_s=told.longest * 60)
    chaos = Chaos(folder, plan)
    begun = time.monotonic()
    verdict = chaos.run()
    print(f"{time.monotonic() - begun:.0f} s, {chaos.told}, logs in {folder}")
    print("\n".join([*verdict.lines(), *verdict.examples]))
    replays = chaos.replay()
    print(f"replayed {replays.recordings} recordings, {replays.inputs} inputs, different {len(replays.differing)}")
    return 0 if verdict.is_good and not (replays.differing or chaos.told.died or chaos.told.unrepaired) else 1


if __name__ == "__main__":
    sys.exit(main())

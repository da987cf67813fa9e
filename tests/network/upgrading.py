"""A rolling upgrade, or a rolling restart: every node is replaced, one after the other, while all of them publish.

    python -m tests.network.upgrading --nodes 12 --topics 50 --rate 500
    python -m tests.network.upgrading --nodes 12 --topics 50 --rate 500 --before here
    python -m tests.network.upgrading --nodes 3 --topics 6 --rate 60 --back 1

`--before`: the version that nodes have at first (0.1.0), or `here`, which makes it a restart. `--back`: so many nodes
are put back to it on the way, as after an upgrade that did not please.

The verdict comes from the logs of the processes alone. Every publication accepted is due at every process that had
joined before it and was not asked to leave within `margin` seconds after it. What is missing is lost, unless a gap told
of it. What a process of a former version lost by its own limits is counted apart, by what it is:

- `tail`: publications of a former process in the last second before it left, which it does not see through;
- `former subscriber`: what a process of a former version was not given.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.releases import BUILT, wheel_of

ROOT = Path(__file__).parents[2]
HERE = "here"
START_S = 90.0  # the first start of a version may compile
TAIL_US = 1_000_000

Stream = tuple[str, int, int]


@dataclass(frozen=True)
class Plan:
    """The size of a run. `rate`: publications a second, all nodes together; `share`: of the topics, for each node."""

    nodes: int = 3
    topics: int = 6
    rate: float = 60.0
    before: str = "0.1.0"
    back: int = 0
    pause_s: float = 1.0
    margin_s: float = 3.0
    share: float = 0.4
    payload: int = 100
    seed: int = 7
    compiled: bool = False


def sources_of(version: str, folder: Path) -> Path:
    """A folder to put on PYTHONPATH. NoRelease: the version cannot be had here."""
    if version == HERE:
        return ROOT / "src"
    target = folder / version
    if not target.exists():
        zipfile.ZipFile(wheel_of(version)).extractall(target)
    return target


@dataclass
class Process:
    """One process, as it runs."""

    name: str
    version: str
    child: subprocess.Popen[str]
    log: Path
    address: str = ""


class Rolling:
    """Starts the nodes, replaces one after the other, and keeps all logs."""

    def __init__(self, plan: Plan, folder: Path, releases: Path) -> None:
        self.plan = plan
        self._folder = folder
        self._random = random.Random(plan.seed)
        self._sources = {version: sources_of(version, releases) for version in (plan.before, HERE)}
        self._topics = [f"t{number}" for number in range(plan.topics)]
        per_node = max(2, round(plan.share * plan.topics))
        self.interests = {f"n{node}": self._random.sample(self._topics, per_node) for node in range(plan.nodes)}
        self._alive: dict[str, Process] = {}
        self._count = 0
        self.left_s: list[float] = []
        self.joined_s: list[float] = []

    def _start(self, name: str, version: str, listen: str = "127.0.0.1:0") -> Process:
        self._count += 1
        others = [process.address for process in self._alive.values() if process.address]
        log = self._folder / f"{name}.{self._count}.log"
        task = {
            "name": name,
            "version": version,
            "topics": self.interests[name],
            "listen": listen,
            "join": self._random.sample(others, min(2, len(others))),
            "log": str(log),
            "rate": self.plan.rate / self.plan.nodes,
            "payload": self.plan.payload,
            "seed": self.plan.seed * 1000 + self._count,
            "plain": not self.plan.compiled,
        }
        environment = {**os.environ, "PYTHONPATH": str(self._sources[version])}
        command = [sys.executable, str(Path(__file__).with_name("upgrade_member.py")), json.dumps(task)]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=self._folder)
        self._alive[name] = Process(name, version, child, log)
        return self._alive[name]

    @staticmethod
    def _wait_until_joined(process: Process) -> None:
        assert process.child.stdout is not None
        process.address = process.child.stdout.readline().strip()
        if not process.address:
            raise RuntimeError(f"{process.name} of version {process.version} has not joined: its log is {process.log}")

    def run(self) -> None:
        """The whole course; all processes have ended when it returns."""
        try:
            names = list(self.interests)
            for name in names:
                self._wait_until_joined(self._start(name, self.plan.before))
            time.sleep(self.plan.pause_s)
            for number, name in enumerate(names):
                self._replace(name, HERE)
                if number < self.plan.back:
                    self._replace(name, self.plan.before)
                    self._replace(name, HERE)
            self._signal(signal.SIGUSR1)
            time.sleep(self.plan.margin_s)
            self._signal(signal.SIGQUIT)
            for process in self._alive.values():
                process.child.wait(30)
        finally:
            for process in self._alive.values():
                process.child.kill()
                process.child.wait()

    def _signal(self, number: int) -> None:
        for process in self._alive.values():
            process.child.send_signal(number)

    def _replace(self, name: str, version: str) -> None:
        """The node leaves in good order; one of the other version takes its name and its port."""
        former = self._alive[name]
        begun = time.monotonic()
        former.child.send_signal(signal.SIGTERM)
        former.child.wait(60)
        left = time.monotonic()
        del self._alive[name]
        process = self._start(name, version, former.address)
        self._wait_until_joined(process)
        self.left_s.append(left - begun)
        self.joined_s.append(time.monotonic() - left)
        time.sleep(self.plan.pause_s)


@dataclass
class ProcessLog:
    """What one process wrote. Times are in microseconds; `left`: when it was asked to leave."""

    name: str = ""
    version: str = ""
    node: int = 0
    joined: int | None = None
    left: int | None = None
    ended: bool = False
    published: list[tuple[int, Stream, int]] = field(default_factory=list)
    longest_wait: int = 0
    delivered: dict[tuple[Stream, int], int] = field(default_factory=dict)
    told: set[tuple[Stream, int]] = field(default_factory=set)
    duplicated: int = 0

    @property
    def is_former(self) -> bool:
        return self.version != HERE

    def is_due(self, at: int, margin: int) -> bool:
        """Whether it should be given what was published at a time, had it wanted it."""
        return self.joined is not None and self.joined < at and (self.left is None or at + margin < self.left)


def read_log(path: Path) -> ProcessLog:
    log = ProcessLog()
    for line in path.read_text().splitlines():
        at, kind, *words = line.split()
        match kind:
            case "I":
                log.node, log.name, log.version = int(words[0]), words[1], words[2]
            case "S":
                log.joined = int(at)
            case "P":
                log.published.append((int(at), (words[0], log.node, int(words[1])), int(words[2])))
                log.longest_wait = max(log.longest_wait, int(words[3]))
            case "D":
                key = (words[0], int(words[1]), int(words[2])), int(words[3])
                log.duplicated += key in log.delivered
                log.delivered.setdefault(key, int(at))
            case "G":
                stream = words[0], int(words[1]), int(words[2])
                log.told |= {(stream, sequence) for sequence in range(int(words[3]), int(words[4]) + 1)}
            case "L":
                log.left = int(at)
            case "E":
                log.ended = True
    return log


@dataclass
class Verdict:
    """What became of all publications. `apart`: what former nodes lost by their own limits, by its kind."""

    processes: int = 0
    accepted: int = 0
    seconds: float = 0.0
    due: int = 0
    lost: int = 0
    told: int = 0
    duplicated: int = 0
    unended: int = 0
    longest_stall_s: float = 0.0
    stall_by_version: dict[str, float] = field(default_factory=dict)
    longest_wait_s: float = 0.0
    apart: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.due > 0 and not (self.lost or self.told or self.duplicated or self.unended)

    def lines(self) -> list[str]:
        rate = self.accepted / self.seconds if self.seconds else 0.0
        stalls = ", ".join(f"{version} {seconds:.2f} s" for version, seconds in sorted(self.stall_by_version.items()))
        return [
            f"processes {self.processes}, ended otherwise than asked {self.unended}",
            f"publications accepted {self.accepted}, {rate:.0f} a second; longest wait {self.longest_wait_s:.2f} s",
            f"deliveries due {self.due}",
            f"lost {self.lost}",
            f"told as gaps {self.told}",
            f"duplicated {self.duplicated}",
            f"longest stall {self.longest_stall_s:.2f} s (by version of the subscriber: {stalls})",
            *(f"apart, {kind}: {count}" for kind, count in sorted(self.apart.items())),
        ]


def judge(logs: Sequence[ProcessLog], interests: dict[str, list[str]], margin_s: float) -> Verdict:
    """Every publication at every process it is due at; a stall is the longest time one took to get there."""
    verdict = Verdict(len(logs), unended=sum(not log.ended for log in logs))
    margin = int(margin_s * 1e6)
    for log in logs:
        verdict.accepted += len(log.published)
        verdict.duplicated += log.duplicated
        verdict.longest_wait_s = max(verdict.longest_wait_s, log.longest_wait / 1e6)
    times = [at for log in logs for at, _, _ in log.published]
    verdict.seconds = (max(times) - min(times)) / 1e6 if times else 0.0
    for publisher in logs:
        for at, stream, sequence in publisher.published:
            for log in logs:
                if stream[0] in interests[log.name] and log.is_due(at, margin):
                    _judge_one(verdict, publisher, log, at, (stream, sequence))
    return verdict


def _judge_one(verdict: Verdict, publisher: ProcessLog, log: ProcessLog, at: int, key: tuple[Stream, int]) -> None:
    verdict.due += 1
    if key in log.delivered:
        stall = (log.delivered[key] - at) / 1e6
        verdict.longest_stall_s = max(verdict.longest_stall_s, stall)
        verdict.stall_by_version[log.version] = max(verdict.stall_by_version.get(log.version, 0.0), stall)
        return
    is_told = key in log.told
    if len(verdict.examples) < 20:
        how = "is told" if is_told else "lacks"
        (topic, _, _), sequence = key
        verdict.examples.append(f"{log.name} ({log.version}) {how} {topic} {sequence} of {publisher.name} at {at}")
    suffix = ", told" if is_told else ", silent"
    if publisher.is_former and publisher.left is not None and at > publisher.left - TAIL_US:
        verdict.apart["tail" + suffix] += 1
    elif log.is_former:
        verdict.apart["former subscriber" + suffix] += 1
    elif is_told:
        verdict.told += 1
    else:
        verdict.lost += 1


def run_plan(plan: Plan, folder: Path, releases: Path) -> tuple[Verdict, Rolling]:
    rolling = Rolling(plan, folder, releases)
    rolling.run()
    logs = [read_log(path) for path in _logs(folder)]
    return judge(logs, rolling.interests, plan.margin_s), rolling


def _logs(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob("*.log"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--before", default="0.1.0")
    parser.add_argument("--back", type=int, default=0)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between two replacements")
    parser.add_argument("--margin", type=float, default=10.0)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    plan = Plan(
        told.nodes, told.topics, told.rate, told.before, told.back, told.pause, told.margin, told.share, seed=told.seed,
        compiled=True,
    )  # fmt: skip
    folder = told.folder or Path(tempfile.mkdtemp(prefix="omen-upgrade-"))
    verdict, rolling = run_plan(plan, folder, BUILT)
    print("\n".join([*verdict.lines(), *verdict.examples]))
    print(f"leaving took {max(rolling.left_s):.1f} s at most, joining {max(rolling.joined_s):.1f} s; logs in {folder}")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

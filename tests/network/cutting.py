"""A network is cut in two while both sides publish, and healed again: does everything arrive?

    python -m tests.network.cutting --seconds 20
    python -m tests.network.cutting --seconds 660 --after 40 --rate 16
    python -m tests.network.cutting --seconds 0.6 6.6 18 --faster 100 --after 8

Several `--seconds` are cuts one after the other. `--faster` compresses time: nodes forget each other, their tombstones
and refusals so many times sooner, and notice losses five times sooner. So 6.6 seconds are a cut of 11 minutes.

What windows keep no longer when the network is back has to be told as a gap; all the rest has to be delivered.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from omen.net.local.forking import fork, preload
from omen.net.security.config import Security
from omen.net.settings import LIVE, Limits, NodeConfig
from omen.net.state import read_states
from omen.protocol.config import Config

from .member import Task, be_member, clock
from .namespaces import SIDES, laid_cable
from .proxies import laid_proxies
from .verdict import ProcessLog, Verdict, judge, read_log

TOPICS = tuple(f"t{number}" for number in range(6))
EACH_SIDE = 4
WINDOW_S = 120.0
BEFORE_S = 2.0
QUICKER = 5  # heartbeats come no sooner than a busy machine can send them
PATIENCE_S = 180.0
SETTLED_US = 2_000_000  # what is said later than this after the cut has no way left that was there before it
PROMPT_US = 2_000_000  # in one cluster a publication takes no longer
ONE_CLUSTER_S = 30.0


@dataclass(frozen=True)
class Plan:
    """`cuts`: seconds of each. `after_s`: how long publishing goes on after the last. `rate`: all nodes together."""

    cuts: tuple[float, ...] = (20.0,)
    after_s: float = 4.0
    rate: float = 40.0
    window_s: float = WINDOW_S
    faster: float = 1.0
    each_side: int = EACH_SIDE

    @property
    def settings(self) -> Config:
        """Windows cover the healing; where time is compressed a node forgets as if a long time had passed."""
        windows = replace(LIVE.dissemination, window_age=round(self.window_s * 1e6))
        settings = replace(LIVE, dissemination=windows)
        if self.faster == 1.0:
            return settings if self.cuts[0] > LIVE.audit_period / 1e6 else replace(settings, audit_period=4_000_000)
        return replace(
            settings,
            heartbeat_period=LIVE.heartbeat_period // QUICKER,
            suspicion_time=LIVE.suspicion_time // QUICKER,
            audit_period=LIVE.audit_period // QUICKER,
            tombstone_life=round(LIVE.tombstone_life / self.faster),
            lost_retry=max(round(LIVE.lost_retry / self.faster), 1_000_000),
            refusal_memory=round(LIVE.refusal_memory / self.faster),
        )

    @property
    def limits(self) -> Limits:
        return replace(Limits(), give_up_after_s=Limits().give_up_after_s / self.faster)


class Divide(Protocol):
    """What lies between the two sides."""

    def address_of(self, side: str) -> str: ...

    def enter(self, side: str) -> None: ...

    def cut(self) -> None: ...

    def heal(self) -> None: ...


@dataclass(frozen=True)
class Missing:
    """Deliveries that did not happen: nothing tells of them; told, but windows kept them; told, as they should be."""

    silent: int = 0
    kept: int = 0
    told: int = 0


@dataclass
class Course:
    """`one_s`: after each cut, how long until there was one cluster. `crossed`: deliveries before it was healed of what
    the other side said while it was cut; of so many `said`.
    """

    verdict: Verdict
    how: str
    healed_s: float
    said: int
    crossed: int
    one_s: list[float]
    missing: Missing

    @property
    def is_good(self) -> bool:
        verdict, missing = self.verdict, self.missing
        whole = not (missing.silent or missing.kept or verdict.duplicated or verdict.disordered)
        return whole and verdict.due > 0 and self.said > 0 and self.crossed == 0 and max(self.one_s) <= ONE_CLUSTER_S


@contextmanager
def divide(how: str) -> Iterator[tuple[str, Divide]]:
    """Namespaces where the kernel allows them, else proxies between the nodes."""
    if how in ("auto", "namespaces"):
        with laid_cable() as cable:
            if cable is not None:
                yield "namespaces", cable
                return
        if how == "namespaces":
            raise OSError("no network namespaces here")
    with laid_proxies() as proxies:
        yield "proxies", proxies


class Cutting:
    """Nodes on two sides."""

    def __init__(self, folder: Path, between: Divide, plan: Plan) -> None:
        self.folder = folder
        self.between = between
        self.plan = plan
        self.pids: list[int] = []

    def start(self) -> None:
        for part in ("logs", "nodes", "trouble"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        preload()
        for number in range(2 * self.plan.each_side):
            side = SIDES[number % 2]
            topics = tuple(TOPICS[(number + step) % len(TOPICS)] for step in range(4))
            config = NodeConfig(
                name=f"{side}{number}",
                listen=f"{self.between.address_of(side)}:0",
                cluster="cut",
                security=Security(open=True),
                topics=topics,
                join=tuple(state["address"] for state in read_states(self.folder / "nodes")[:1]),
                state=str(self.folder / "nodes"),
                protocol=self.plan.settings,
                limits=self.plan.limits,
            )
            log = self.folder / "logs" / f"{config.name}.log"
            task = Task(log, self.plan.rate / (2 * self.plan.each_side), TOPICS, 0.0, number)
            self.pids.append(fork(partial(self._be, side, config, task), self.folder / "trouble" / config.name))
            while not (log.exists() and "\n" in log.read_text()):
                time.sleep(0.05)

    def _be(self, side: str, config: NodeConfig, task: Task) -> None:
        self.between.enter(side)
        be_member(config, None, task)

    def tell(self, number: signal.Signals) -> None:
        for pid in self.pids:
            os.kill(pid, number)

    def wait_until_whole(self) -> float:
        """Until the logs show everything delivered; how long that took."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE_S:
            silent = missing_in(self.folder, clock(), 0.0).silent
            if not silent:
                break
            time.sleep(0.5)
        return time.monotonic() - begun

    def end(self) -> None:
        self.tell(signal.SIGQUIT)
        for pid in self.pids:
            os.waitpid(pid, 0)


def count_crossings(folder: Path, cut: int, healed: int) -> tuple[int, int]:
    """Publications said while the network was cut, and how often one was delivered on the other side meanwhile."""
    paths = list((folder / "logs").glob("*.log"))
    said: dict[tuple[str, str, str, str], str] = {}
    for path in paths:
        node = str(read_log(path).node)
        for at, kind, *words in map(str.split, path.read_text().splitlines()):
            if kind == "P" and cut + SETTLED_US < int(at) < healed:
                topic, incarnation, sequence = words
                said[topic, node, incarnation, sequence] = path.stem[0]
    crossed = 0
    for path in paths:
        for at, kind, *words in map(str.split, path.read_text().splitlines()):
            if kind == "D" and int(at) < healed:
                topic, node, incarnation, sequence = words
                crossed += said.get((topic, node, incarnation, sequence), path.stem[0]) != path.stem[0]
    return len(said), crossed


def seconds_until_one(folder: Path, healed: int, until: int) -> float:
    """How long after a cut the last publication was said that took long to some subscriber, or did not get there."""
    logs = [read_log(path) for path in (folder / "logs").glob("*.log")]
    arrived = {log.name: _arrivals(folder, log) for log in logs}
    last = healed
    for publisher in logs:
        for at, topic, incarnation, sequence in publisher.published:
            if not healed < at < until - PROMPT_US:
                continue
            for log in logs:
                came = arrived[log.name].get((topic, publisher.node, incarnation, sequence))
                if log.covers(topic, at) and (came is None or came - at > PROMPT_US):
                    last = max(last, at)
    return (last - healed) / 1e6


def _arrivals(folder: Path, log: ProcessLog) -> dict[tuple[str, int, int, int], int]:
    lines = (folder / "logs" / f"{log.name}.log").read_text().splitlines()
    found = {}
    for at, kind, *words in map(str.split, lines):
        if kind == "D":
            found[words[0], int(words[1]), int(words[2]), int(words[3])] = int(at)
    return found


def missing_in(folder: Path, healed: int, window_s: float) -> Missing:
    """What was due and not delivered. Windows kept what was said within `window_s` before the network was back."""
    logs = [read_log(path) for path in (folder / "logs").glob("*.log")]
    silent = kept = told = 0
    for log in logs:
        gaps: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        for topic, node, incarnation, first, last, *_ in map(str.split, log.gaps):
            gaps.setdefault((topic, int(node), int(incarnation)), []).append((int(first), int(last)))
        for publisher in logs:
            for at, topic, incarnation, sequence in publisher.published:
                stream = topic, publisher.node, incarnation
                if not log.covers(topic, at) or log.has(stream, sequence):
                    continue
                if not any(first <= sequence <= last for first, last in gaps.get(stream, ())):
                    silent += 1
                elif at > healed - window_s * 1e6:
                    kept += 1
                else:
                    told += 1
    return Missing(silent, kept, told)


def run(folder: Path, plan: Plan, how: str = "auto") -> Course:
    """Some seconds whole, cut, some seconds whole again, as often as the plan says; then until all is delivered."""
    times: list[tuple[int, int, int]] = []
    with divide(how) as (found, between):
        cutting = Cutting(folder, between, plan)
        try:
            cutting.start()
            for seconds in plan.cuts:
                time.sleep(BEFORE_S)
                between.cut()
                cut = clock()
                time.sleep(seconds)
                healed = clock()
                between.heal()
                time.sleep(plan.after_s)
                times.append((cut, healed, clock()))
            cutting.tell(signal.SIGUSR1)
            healed_s = plan.after_s + cutting.wait_until_whole()
        finally:
            cutting.end()
    crossings = [count_crossings(folder, cut, healed) for cut, healed, _ in times]
    ones = [seconds_until_one(folder, healed, until) for _, healed, until in times]
    verdict = judge((folder / "logs").glob("*.log"))
    missing = missing_in(folder, times[-1][1], plan.window_s - ONE_CLUSTER_S)
    return Course(
        verdict, found, healed_s, sum(said for said, _ in crossings), sum(n for _, n in crossings), ones, missing
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, nargs="+", default=[20.0])
    parser.add_argument("--faster", type=float, default=1.0, help="nodes forget so many times sooner")
    parser.add_argument("--after", type=float, default=4.0, help="seconds of publishing after each cut")
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--window", type=float, default=WINDOW_S, help="seconds that nodes keep publications")
    parser.add_argument("--each-side", type=int, default=EACH_SIDE)
    parser.add_argument("--how", choices=("auto", "namespaces", "proxies"), default="auto")
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    folder = told.folder or Path(tempfile.mkdtemp(prefix="omen-cut-"))
    plan = Plan(tuple(told.seconds), told.after, told.rate, told.window, told.faster, told.each_side)
    course = run(folder, plan, told.how)
    cuts = " and ".join(f"{seconds:g}" for seconds in told.seconds)
    print(f"cut for {cuts} s by {course.how}, all there {course.healed_s:.1f} s after; logs in {folder}")
    print("\n".join([*course.verdict.lines(), *course.verdict.examples[:5]]))
    print(f"said while cut {course.said}, delivered across the cut {course.crossed}")
    print("one cluster again after " + ", ".join(f"{seconds:.1f}" for seconds in course.one_s) + " s")
    missing = course.missing
    print(f"not delivered: silent {missing.silent}, kept by windows {missing.kept}, told as gaps {missing.told}")
    return 0 if course.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

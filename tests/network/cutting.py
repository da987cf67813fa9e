"""A network is cut in two while both sides publish, and healed again: does everything arrive?

python -m tests.network.cutting --seconds 20
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
from omen.net.settings import LIVE, NodeConfig
from omen.net.state import read_states

from .member import Task, be_member, clock
from .namespaces import SIDES, laid_cable
from .proxies import laid_proxies
from .verdict import Verdict, judge, read_log

TOPICS = tuple(f"t{number}" for number in range(6))
EACH_SIDE = 4
SETTINGS = replace(
    LIVE,
    audit_period=4_000_000,
    dissemination=replace(LIVE.dissemination, window_age=120_000_000),  # so that windows cover the cut and its healing
)
PATIENCE_S = 180.0
SETTLED_US = 2_000_000  # what is said later than this after the cut has no way left that was there before it


class Divide(Protocol):
    """What lies between the two sides."""

    def address_of(self, side: str) -> str: ...

    def enter(self, side: str) -> None: ...

    def cut(self) -> None: ...

    def heal(self) -> None: ...


@dataclass
class Course:
    """`crossed`: deliveries before it was healed of what the other side said while it was cut; of so many `said`."""

    verdict: Verdict
    how: str
    healed_s: float
    said: int
    crossed: int

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and self.said > 0 and self.crossed == 0


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

    def __init__(self, folder: Path, between: Divide, rate: float) -> None:
        self.folder = folder
        self.between = between
        self.rate = rate
        self.pids: list[int] = []

    def start(self) -> None:
        for part in ("logs", "nodes", "trouble"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        preload()
        for number in range(2 * EACH_SIDE):
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
                protocol=SETTINGS,
            )
            log = self.folder / "logs" / f"{config.name}.log"
            task = Task(log, self.rate / (2 * EACH_SIDE), TOPICS, 0.0, number)
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
            if judge((self.folder / "logs").glob("*.log"), ended=False).is_good:
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


def run(folder: Path, seconds: float, how: str = "auto", rate: float = 40.0) -> Course:
    """Some seconds whole, `seconds` cut, some seconds whole again; then until all is delivered."""
    with divide(how) as (found, between):
        cutting = Cutting(folder, between, rate)
        try:
            cutting.start()
            time.sleep(4.0)
            between.cut()
            cut = clock()
            time.sleep(seconds)
            healed = clock()
            between.heal()
            time.sleep(4.0)
            cutting.tell(signal.SIGUSR1)
            healed_s = 4.0 + cutting.wait_until_whole()
        finally:
            cutting.end()
    return Course(judge((folder / "logs").glob("*.log")), found, healed_s, *count_crossings(folder, cut, healed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--how", choices=("auto", "namespaces", "proxies"), default="auto")
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    folder = told.folder or Path(tempfile.mkdtemp(prefix="omen-cut-"))
    course = run(folder, told.seconds, told.how)
    print(f"cut for {told.seconds:.0f} s by {course.how}, all there {course.healed_s:.1f} s after; logs in {folder}")
    print("\n".join([*course.verdict.lines(), *course.verdict.examples]))
    print(f"said while cut {course.said}, delivered across the cut {course.crossed}")
    return 0 if course.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

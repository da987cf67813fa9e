"""How fast is the simulator, against another version of the code?

    python -m bench.steps --against PATH_OF_ITS_SRC [--worlds 40] [--rounds 3] [--draw within]

Both versions stay in a process of their own and run the same worlds by turns, one world each, so that whatever else the
machine does meets both alike. Of each world the fastest of the rounds counts, by processor time. A step is an input
that a node handles. Where the protocol has changed in between, so have the steps of a world; the rates still compare.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

FIRST = 900_000


def serve(draw: str) -> None:
    """Run each world whose seed is read, and print what it took; the first once before, to load what has to be."""
    from omen.sim.search import Search, run_world

    search = Search(draw)
    run_world(search, FIRST)
    print("ready", flush=True)
    for line in sys.stdin:
        started = time.process_time()
        world = run_world(search, int(line))
        print(time.process_time() - started, world.steps, flush=True)


class Version:
    """A version of the code at work. `best`: for each seed the fewest seconds, and the steps."""

    def __init__(self, source: Path, draw: str) -> None:
        self.best: dict[int, tuple[float, int]] = {}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--draw", draw],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._ask, self._answer = self._process.stdin, self._process.stdout

    def wait(self) -> None:
        self._answer.readline()

    def run(self, seed: int) -> None:
        print(seed, file=self._ask, flush=True)
        seconds, steps = self._answer.readline().split()
        before = self.best.get(seed, (float("inf"), 0))[0]
        self.best[seed] = (min(before, float(seconds)), int(steps))

    def rate(self) -> float:
        """Steps per processor-second over all worlds."""
        return sum(steps for _, steps in self.best.values()) / sum(seconds for seconds, _ in self.best.values())

    def close(self) -> None:
        self._ask.close()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.steps", description=__doc__)
    parser.add_argument("--against", metavar="SRC", type=Path, help="the folder src of the other version")
    parser.add_argument("--worlds", metavar="N", type=int, default=40)
    parser.add_argument("--rounds", metavar="N", type=int, default=3)
    parser.add_argument("--draw", default="within")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.draw)
        return 0
    sources = [arguments.against.resolve(), Path(__file__).resolve().parent.parent / "src"]
    then, now = versions = [Version(source, arguments.draw) for source in sources]
    for version in versions:
        version.wait()
    for _ in range(arguments.rounds):
        for seed in range(FIRST, FIRST + arguments.worlds):
            for version in versions:
                version.run(seed)
    for version in versions:
        version.close()
    ratio = now.rate() / then.rate()
    print(f"{now.rate():,.0f} steps per processor-second, then {then.rate():,.0f}: {ratio:.2f} times as many")
    return 0


if __name__ == "__main__":
    sys.exit(main())

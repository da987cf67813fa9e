"""Everything at once: nodes with certificates are killed, frozen, restarted, cut off, given new keys and full disks.

    python -m tests.network.everything --nodes 12 --minutes 60

Each round does one thing of each kind in `--faults`, in a drawn order, while all nodes publish and change their topics:

- kill: up to L nodes at once, as `chaos` draws them, and as many come back;
- freeze: a node is stopped (SIGSTOP) for seconds, some of them for longer than the failure detector waits;
- cut: a node loses all its connections at once;
- restart: a node leaves in good order and comes back under its name;
- keys: every certificate is replaced by a new one, which nodes notice by themselves;
- seeds: newcomers find a dead address and a port that is no node's before their seeds;
- disk: newcomers record to a disk that is full.

Exit code 0: of what was accepted by and due at lasting processes nothing was lost, doubled or disordered (gaps that
were told are counted), and at the end there is one ring of all nodes.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from omen.net.security.config import Security
from omen.net.security.key_files import authority_in, make_node
from omen.net.settings import NodeConfig

from .chaos import NEWCOMERS, Chaos, Plan, Process
from .verdict import Verdict

FAULTS = ("kill", "freeze", "cut", "restart", "keys", "seeds", "disk")
LEAVE_S = 30.0


class Everything(Chaos):
    """Chaos with more kinds of it. `done`: how often each was done."""

    def __init__(self, folder: Path, plan: Plan, faults: tuple[str, ...]) -> None:
        super().__init__(folder, plan)
        self.faults = faults
        self.done: Counter[str] = Counter()
        self._silent = socket.socket()
        self._silent.bind(("127.0.0.1", 0))
        self._silent.listen()  # takes connections, and never says a word

    def security_of(self, name: str) -> Security:
        return replace(super().security_of(name), watch_s=1.0)

    def _fork(self, config: NodeConfig, origin: Any = None, origins: Any = ()) -> None:
        if config.join and "seeds" in self.faults:
            silent = f"127.0.0.1:{self._silent.getsockname()[1]}"
            config = replace(config, join=("127.0.0.1:1", silent, *config.join))
            self.done["seeds"] += 1
        if config.join and "disk" in self.faults:
            config = replace(config, record="/dev/full")
            self.done["disk"] += 1
        super()._fork(replace(config), origin, origins)

    def _one_round(self) -> None:
        """One of each, one after the other; all is repaired in between only where L is at stake."""
        order = [fault for fault in self.faults if fault not in ("seeds", "disk")]
        self.random.shuffle(order)
        for fault in order:
            if time.monotonic() - self._begun > self.plan.seconds:
                break
            getattr(self, f"_do_{fault}")()
            self.done[fault] += 1
        self.told.kills = max(self.told.kills, 1)
        self._reap()
        self.fill_up()
        print(f"{time.monotonic() - self._begun:.0f} s: {dict(self.done)} {self.told}", file=sys.stderr, flush=True)

    def _do_kill(self) -> None:
        self.kill(self.plan.kills)
        self.told.longest_mend_s = max(self.told.longest_mend_s, self.wait_until_repaired())
        self.fill_up()
        self.wait_until_repaired()

    def _do_freeze(self) -> None:
        self.stop_one()
        self.wait_until_repaired()

    def _do_cut(self) -> None:
        os.kill(self._any().pid, signal.SIGUSR2)
        time.sleep(1.0)

    def _do_restart(self) -> None:
        process = self._any()
        os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + LEAVE_S
        while not os.waitpid(process.pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{process.config.name} has not left within {LEAVE_S:g} s")
            time.sleep(0.1)
        self.dead.append(self.alive.pop(process.config.name).config)
        self.fill_up()
        self.wait_until_repaired()

    def _do_keys(self) -> None:
        folder = self.folder / "keys"
        authority = authority_in(folder)
        for name in [*self.interests.nodes.tolist(), NEWCOMERS]:
            make_node(folder, authority, self.folder.name, name, 30)
        time.sleep(2.0)

    def _any(self) -> Process:
        return self.alive[self.random.choice(sorted(self.alive))]

    def run_for(self) -> Verdict:
        """As `run`, until time is over."""
        self.plan = replace(self.plan, longest_s=self.plan.seconds)
        verdict = self.run()
        self._silent.close()
        return verdict

    def finish(self) -> None:
        super().finish()
        self.done["rings"] = self.count_rings()

    def count_rings(self) -> int:
        """Rings that the first successors of all nodes make; nodes that do not answer are rings of their own."""
        seen = self.look()
        left, rings = set(self.alive), 0
        while left:
            rings += 1
            name = min(left)
            while name in left:
                left.discard(name)
                successors = seen.get(name, {}).get("successors", [])
                name = successors[0] if successors else ""
        return rings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--freeze-seconds", type=float, default=12.0)
    parser.add_argument("--faults", default=",".join(FAULTS), help="of kill,freeze,cut,restart,keys,seeds,disk")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    faults = tuple(told.faults.split(","))
    if not set(faults) <= set(FAULTS):
        parser.error(f"--faults: of {', '.join(FAULTS)}")
    plan = Plan(told.nodes, told.topics, told.minutes * 60, 1 << 30, told.rate, stop_s=told.freeze_seconds)
    folder = told.folder or Path(tempfile.mkdtemp(prefix="omen-everything-"))
    chaos = Everything(folder, replace(plan, seed=told.seed, tls=True), faults)
    begun = time.monotonic()
    verdict = chaos.run_for()
    print(f"{time.monotonic() - begun:.0f} s, {dict(chaos.done)}, {chaos.told}, logs in {folder}")
    print("\n".join([*verdict.lines(), *verdict.examples]))
    good = verdict.is_good and not (chaos.told.died or chaos.told.unrepaired) and chaos.done["rings"] == 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

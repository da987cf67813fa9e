"""What nodes take that do nothing: separate `omen node` processes, each with its topics, after some were lost.

python -m bench.idle [--src OLD/src] [--nodes 20] [--lost 2] [--topics 100] [--seconds 60]: prints one JSON object. With
`--src` another version is measured, from its sources. Nodes join one by one, so that each start is timed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import ROOT, machine_facts

POOL = 2  # topics are drawn from so many times as many
REPAIR_S, POLL_S, PATIENCE_S = 20.0, 0.01, 120.0
BYTES = re.compile(r"^omen_(?:bytes_sent|sent_bytes)_total\{.*\} (\S+)$", re.MULTILINE)


class Node:
    """One process, from its start to its end."""

    def __init__(self, folder: Path, number: int, topics: list[str], join: str, source: Path) -> None:
        settings = folder / f"n{number}.toml"
        settings.write_text(
            f'name = "n{number}"\ntopics = {json.dumps(topics)}\njoin = {json.dumps([join] if join else [])}\n'
            f'http = "127.0.0.1:0"\nstate = {json.dumps(str(folder / "state"))}\n'
        )
        self._state = folder / "state" / f"n{number}.json"
        environment = os.environ | {"PYTHONPATH": str(source)}
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "omen.cli", "node", "--config", str(settings)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"n{number}.log").open("w"),
        )
        self.address, self.http = self._wait(begun)
        self.start_s = time.perf_counter() - begun

    def _wait(self, begun: float) -> tuple[str, str]:
        """Until it says that it is part of the cluster."""
        while time.perf_counter() - begun < PATIENCE_S:
            time.sleep(POLL_S)
            try:
                state = json.loads(self._state.read_text())
                with urllib.request.urlopen(f"http://{state['http']}/healthz", timeout=5) as page:
                    if json.load(page)["status"] == "ok":
                        return state["address"], state["http"]
            except (OSError, ValueError, KeyError):
                continue
        raise TimeoutError(f"{self._state}: the node did not join")

    def bytes_sent(self) -> float:
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=20) as page:
            return sum(map(float, BYTES.findall(page.read().decode())))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000

    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())


def measure(source: Path, count: int, lost: int, topics: int, seconds: float) -> dict[str, Any]:
    """Start them, kill some, let the others repair, look at them for a while."""
    draw = random.Random(1)
    names = [f"t{number}" for number in range(POOL * topics)]
    nodes: list[Node] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number in range(count + lost):
                join = nodes[0].address if nodes else ""
                nodes.append(Node(Path(folder), number, sorted(draw.sample(names, topics)), join, source))
            starts = [node.start_s for node in nodes]
            for node in nodes[1 : lost + 1]:
                node.process.send_signal(signal.SIGKILL)
                node.process.wait()
            alive = [nodes[0], *nodes[lost + 1 :]]
            time.sleep(REPAIR_S)
            cpu, sent, begun = [node.cpu_s() for node in alive], [node.bytes_sent() for node in alive], time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - begun
            used = [node.cpu_s() - before for node, before in zip(alive, cpu, strict=True)]
            rate = [(node.bytes_sent() - before) / took for node, before in zip(alive, sent, strict=True)]
            resident = [node.resident_mb() for node in alive]
            return {
                "nodes": count,
                "topics": topics,
                "start_s": round(median(starts), 2),
                "start_s_longest": round(max(starts), 2),
                "processor_percent": round(100 * sum(used) / took / count, 2),
                "resident_mb": round(median(resident), 1),
                "resident_mb_most": round(max(resident), 1),
                "descriptors": median(node.descriptors() for node in alive),
                "sent_bytes_per_s": round(median(rate)),
                **machine_facts(),
            }
        finally:
            for node in nodes:
                node.process.kill()
                node.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=ROOT / "src")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--lost", type=int, default=2)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    told = parser.parse_args()
    print(json.dumps(measure(told.src.resolve(), told.nodes, told.lost, told.topics, told.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

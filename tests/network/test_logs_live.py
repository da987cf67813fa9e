"""At 3 am: what happened to a cluster stands in the logs of its nodes, with names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OMEN = [sys.executable, "-m", "omen.cli"]
QUICK = "[protocol]\nheartbeat_period = 0.5\nsuspicion_time = 0.5\ngossip_period = 0.1\n"
PATIENCE_S = 30.0


class Node:
    """One `omen node` whose log is JSON lines in a file."""

    def __init__(self, folder: Path, name: str, join: list[str]) -> None:
        settings = folder / f"{name}.toml"
        settings.write_text(
            f"name = '{name}'\njoin = {join}\ntopics = ['tea']\nlog = 'json'\nengine = 'eager'\n{QUICK}"
        )
        self._log = folder / f"{name}.log"
        with self._log.open("w") as stderr:
            command = [*OMEN, "node", "--config", str(settings), "--json"]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        assert self.process.stdout is not None
        self.address = json.loads(self.process.stdout.readline())["address"]

    def lines(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The lines of an event that have these fields."""
        written = [json.loads(line) for line in self._log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in written if line["event"] == event and fields.items() <= line.items()]


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_freeze_is_told_by_the_others_and_by_the_node_itself(tmp_path: Path) -> None:
    """Suspected, declared failed and by which node, repaired with which links, rejoined; then one leaves."""
    nodes: list[Node] = []
    try:
        for name in ("ann", "bob", "cat"):
            nodes.append(Node(tmp_path, name, [node.address for node in nodes]))
        ann, bob, cat = nodes
        time.sleep(1.0)  # so that it has sent heartbeats, and knows that it stood still
        os.kill(cat.process.pid, signal.SIGSTOP)
        wait_for(lambda: any(node.lines("repair_finished", kind="leave", peer="cat") for node in (ann, bob)))
        os.kill(cat.process.pid, signal.SIGCONT)
        wait_for(lambda: len(cat.lines("node_joined")) == 2)
        assert sum(len(node.lines("peer_joined", peer="cat")) for node in (ann, bob)) == 2
        for node in (ann, bob):
            assert node.lines("peer_suspected", peer="cat"), node.address
        told = [*ann.lines("peer_declared_failed", peer="cat"), *bob.lines("peer_declared_failed", peer="cat")]
        assert told and all(line["by"] in ("ann", "bob") and line["cause"] for line in told)
        (repairer,) = [node for node in (ann, bob) if node.lines("repair_begun", kind="leave", peer="cat")]
        assert repairer.lines("repair_finished", kind="leave", peer="cat")[0]["links"]
        assert cat.lines("node_stood_still")[0]["for_s"] > 1
        assert cat.lines("node_rejoined")
        bob.process.send_signal(signal.SIGTERM)
        assert bob.process.wait(PATIENCE_S) == 0
        assert bob.lines("node_left", repaired=True)
        wait_for(lambda: ann.lines("peer_left", peer="bob") or cat.lines("peer_left", peer="bob"))
    finally:
        for node in nodes:
            node.process.kill()
            node.process.communicate()

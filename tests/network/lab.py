"""Processes of `omen node` of any version, seen from outside: their pages, their logs, their exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .cold_starts import free_ports

PATIENCE_S = 40.0
Found = tuple[bool, str]


class Node:
    """A process of `omen node` with its settings."""

    def __init__(
        self, lab: Lab, name: str, settings: dict[str, Any], options: tuple[str, ...] = (), output: int | None = None
    ) -> None:
        self.port, self.page_port = free_ports(2)  # of which the settings may name others
        told = {"name": name, "listen": f"127.0.0.1:{self.port}", "http": f"127.0.0.1:{self.page_port}"} | settings
        lab.count += 1
        self.file = lab.folder / f"{lab.count}-{name}.toml"
        self.file.write_text(_toml(told))
        self.log = self.file.with_suffix(".log")
        self.begun = time.monotonic()
        with self.log.open("w") as out:
            command = [sys.executable, "-m", "omen.cli", "node", "--config", str(self.file), *options]
            to = out if output is None else output
            self.process = subprocess.Popen(command, stdout=to, stderr=to, env=lab.environment, cwd=lab.folder)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def page(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.page_port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""

    def topology(self) -> dict[str, Any]:
        code, text = self.page("/topology")
        return json.loads(text) if code == 200 else {}

    @property
    def is_up(self) -> bool:
        return self.page("/healthz")[0] == 200

    def seconds_until_up(self, patience_s: float = PATIENCE_S) -> float | None:
        """From its start; None: it has ended, or is not there in time."""
        while time.monotonic() - self.begun < patience_s and self.process.poll() is None:
            if self.is_up:
                return time.monotonic() - self.begun
            time.sleep(0.05)
        return None

    def seconds_until_ended(self, patience_s: float = PATIENCE_S) -> float | None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
            return time.monotonic() - self.begun
        return None

    def said(self) -> str:
        return self.log.read_text()


class Lab:
    """Starts nodes of one version, and ends them."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self.count = folder, 0
        self.environment = os.environ | {"PYTHONPATH": str(source)}
        self._nodes: list[Node] = []

    def start(self, name: str, *options: str, output: int | None = None, **settings: Any) -> Node:
        """`output`: the descriptor it writes to instead of its log."""
        self._nodes.append(Node(self, name, {"topics": ["tea"]} | settings, options, output))
        return self._nodes[-1]

    def run(self, script: str, timeout_s: float = 60.0) -> str:
        """What a script prints that uses this version as a library."""
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=timeout_s
        )
        return done.stdout.strip() or done.stderr.strip()[-200:]

    def pair(self, **settings: Any) -> tuple[Node, Node]:
        first = self.start("n1", **settings)
        first.seconds_until_up()
        second = self.start("n2", join=[first.address], **settings)
        second.seconds_until_up()
        return first, second

    def end(self) -> None:
        for node in self._nodes:
            with suppress(ProcessLookupError):
                node.process.send_signal(signal.SIGCONT)
            node.process.kill()
            node.process.wait()
        self._nodes.clear()


def _toml(settings: dict[str, Any]) -> str:
    plain = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    tables = [f"[{key}]\n{_toml(value)}" for key, value in settings.items() if isinstance(value, dict)]
    return "\n".join([*plain, *tables]) + "\n"


def linked(nodes: list[Node]) -> bool:
    return all(len(node.topology().get("links", ())) >= 1 for node in nodes)


def wait(condition: Callable[[], object], patience_s: float) -> float | None:
    begun = time.monotonic()
    while time.monotonic() - begun < patience_s:
        if condition():
            return time.monotonic() - begun
        time.sleep(0.1)
    return None


def told(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"

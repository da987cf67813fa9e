"""Cases in which a cluster did not come together, or did not say how it is: what a version makes of each.

    python -m tests.network.before                                  # this version
    python -m tests.network.before --src OLD/src                    # another one, from its sources
    python -m tests.network.before --case mutual_seeds --case name_twice

Everything is seen from outside: processes of `omen node`, their pages, their logs, their exit codes. So the same lines
can be run against a version that knows nothing of the tests. Exit code 1: a case does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .cold_starts import free_ports

ROOT = Path(__file__).parents[2]
PATIENCE_S = 40.0
Found = tuple[bool, str]


class Node:
    """A process of `omen node` with its settings."""

    def __init__(self, lab: Lab, name: str, settings: dict[str, Any]) -> None:
        self.port, self.page_port = free_ports(2)
        told = {"name": name, "listen": f"127.0.0.1:{self.port}", "http": f"127.0.0.1:{self.page_port}"} | settings
        lab.count += 1
        self.file = lab.folder / f"{lab.count}-{name}.toml"
        self.file.write_text(_toml(told))
        self.log = self.file.with_suffix(".log")
        self.begun = time.monotonic()
        with self.log.open("w") as out:
            command = [sys.executable, "-m", "omen.cli", "node", "--config", str(self.file)]
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=lab.environment, cwd=lab.folder)

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

    def start(self, name: str, **settings: Any) -> Node:
        self._nodes.append(Node(self, name, {"topics": ["tea"]} | settings))
        return self._nodes[-1]

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


def _linked(nodes: list[Node]) -> bool:
    return all(len(node.topology().get("links", ())) >= 1 for node in nodes)


def _wait(condition: Callable[[], object], patience_s: float) -> float | None:
    begun = time.monotonic()
    while time.monotonic() - begun < patience_s:
        if condition():
            return time.monotonic() - begun
        time.sleep(0.1)
    return None


def _told(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


def mutual_seeds(lab: Lab) -> Found:
    """Three nodes, each lists the other two."""
    ports = free_ports(3)
    nodes = []
    for number, port in enumerate(ports):
        others = [f"127.0.0.1:{other}" for other in ports if other != port]
        nodes.append(lab.start(f"n{number}", listen=f"127.0.0.1:{port}", join=others))
    took = [node.seconds_until_up() for node in nodes]
    return all(took) and _linked(nodes), "up after " + ", ".join(map(_told, took))


def own_spelling(lab: Lab) -> Found:
    """A first node lists itself as localhost, and a seed that is silent."""
    alone = lab.start("n0").seconds_until_up() or 0.0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (port,) = free_ports(1)
        join = [f"localhost:{port}", f"127.0.0.1:{silent.getsockname()[1]}"]
        took = lab.start("n1", listen=f"127.0.0.1:{port}", join=join).seconds_until_up()
    return took is not None and took < alone + 3.0, f"up after {_told(took)}, without seeds {alone:.1f} s"


def began_apart(lab: Lab) -> Found:
    """Two nodes of one cluster: one lists the other, which was not there yet."""
    (port,) = free_ports(1)
    (own,) = free_ports(1)
    seeds = [f"127.0.0.1:{port}", f"127.0.0.1:{own}"]
    second = lab.start("n2", listen=f"127.0.0.1:{own}", join=seeds)
    second.seconds_until_up()
    first = lab.start("n1", listen=f"127.0.0.1:{port}")
    first.seconds_until_up()
    took = _wait(lambda: _linked([first, second]), 30.0)
    return took is not None, f"one cluster after {_told(took)}"


def bad_seed(lab: Lab) -> Found:
    """One of two seeds is a node of another cluster."""
    good, other = lab.start("n1"), lab.start("x1", cluster="other")
    good.seconds_until_up()
    other.seconds_until_up()
    third = lab.start("n3", join=[other.address, good.address])
    took = third.seconds_until_up()
    return took is not None, f"up after {_told(took)}, exit code {third.process.poll()}"


def silent_seed(lab: Lab) -> Found:
    """The first of two seeds takes connections and says nothing."""
    good = lab.start("n1")
    alone = good.seconds_until_up() or 0.0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = lab.start("n2", join=[f"127.0.0.1:{silent.getsockname()[1]}", good.address])
        took = node.seconds_until_up()
    return took is not None and took < alone + 2.0, f"up after {_told(took)}, without it {alone:.1f} s"


def refused_at_once(lab: Lab) -> Found:
    """The only seed belongs to another cluster."""
    other = lab.start("x1", cluster="other")
    other.seconds_until_up()
    node = lab.start("n1", join=[other.address])
    took = node.seconds_until_ended()
    return took is not None and took < 5.0 and "belongs to cluster" in node.said(), f"ended after {_told(took)}"


def name_twice(lab: Lab) -> Found:
    """A second node takes the name of one that is alive."""
    first, _ = lab.pair()
    again = lab.start("n2", join=[first.address])
    code = again.process.wait(PATIENCE_S) if again.seconds_until_ended(20.0) else None
    return code == 2 and "taken" in again.said(), f"the second {'is up' if code is None else f'ends with {code}'}"


def expired_certificate(lab: Lab) -> Found:
    """A node whose own certificate has expired."""
    from omen.net.security.key_files import authority_in, make_authority, make_node

    keys = lab.folder / "keys"
    make_authority(keys, "omen", 30)
    for name in ("n1", "n2"):
        make_node(keys, authority_in(keys), "omen", name, 30 if name == "n1" else 0)
    first = lab.start("n1", security=_keys(keys, "n1"))
    first.seconds_until_up()
    late = lab.start("n2", join=[first.address], security=_keys(keys, "n2"))
    took = late.seconds_until_ended()
    return took is not None and took < 5.0 and "expired" in late.said(), f"ended after {_told(took)}"


def foreign_certificate(lab: Lab) -> Found:
    """A node whose certificate the others do not believe: it hears that, and not only that something is wrong."""
    from omen.net.security.key_files import make_cluster_keys

    ours, theirs = lab.folder / "ours", lab.folder / "theirs"
    make_cluster_keys(ours, "omen", ["n1"], 30)
    make_cluster_keys(theirs, "omen", ["n2"], 30)
    both = theirs / "both.pem"
    both.write_text((ours / "ca.pem").read_text() + (theirs / "ca.pem").read_text())
    first = lab.start("n1", security=_keys(ours, "n1"))
    first.seconds_until_up()
    other = lab.start("n2", join=[first.address], security=_keys(theirs, "n2") | {"authorities": [str(both)]})
    took = other.seconds_until_ended()
    said = "does not believe the authority" in other.said()
    return took is not None and took < 5.0 and said, f"ended after {_told(took)}, {'with' if said else 'without'} why"


def _keys(folder: Path, name: str) -> dict[str, Any]:
    parts = {"certificate": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}
    return {"authorities": [str(folder / "ca.pem")], **parts}


def default_name(lab: Lab) -> Found:
    """Beyond loopback, with the default cluster name and no keys."""
    node = lab.start("n1", listen="0.0.0.0:0", advertise="127.0.0.1:7", security={"open": True})
    took = node.seconds_until_up(15.0)
    return took is None and node.process.poll() == 2, "starts" if took else "does not start"


def unreachable_address(lab: Lab) -> Found:
    """A node gives an address at which it cannot be reached."""
    first = lab.start("n1")
    first.seconds_until_up()
    node = lab.start("n2", join=[first.address], advertise="127.0.0.1:9")
    took = node.seconds_until_ended(15.0)
    return took is not None and "cannot be reached" in node.said(), "joins" if took is None else "is told"


def full_disk(lab: Lab) -> Found:
    """A node records to a disk that is full."""
    first = lab.start("n1")
    first.seconds_until_up()
    node = lab.start("n2", join=[first.address], record="/dev/full")
    up = node.seconds_until_up()
    time.sleep(3.0)
    errors = node.said().count("Traceback")
    return up is not None and errors <= 1 and _linked([first, node]), f"up after {_told(up)}, {errors} tracebacks"


def frozen_node(lab: Lab) -> Found:
    """A node stands still for 12 s: what do the others say?"""
    first, second = lab.pair()
    before = len(first.said().splitlines())
    second.process.send_signal(signal.SIGSTOP)
    time.sleep(12.0)
    second.process.send_signal(signal.SIGCONT)
    time.sleep(3.0)
    lines = first.said().splitlines()[before:]
    return any("n2" in line for line in lines), f"{sum('n2' in line for line in lines)} lines name it"


def health_pages(lab: Lab) -> Found:
    """Whether it lives and whether it is ready, apart."""
    node = lab.start("n1")
    node.seconds_until_up()
    codes = [node.page(path)[0] for path in ("/livez", "/readyz")]
    return codes == [200, 200], f"/livez {codes[0]}, /readyz {codes[1]}"


def reload_topics(lab: Lab) -> Found:
    """Topics in the settings change, and SIGHUP comes."""
    node = lab.start("n1")
    node.seconds_until_up()
    node.file.write_text(node.file.read_text().replace('["tea"]', '["tea", "jazz"]'))
    node.process.send_signal(signal.SIGHUP)
    took = _wait(lambda: len(node.topology().get("topics", ())) == 2, 5.0)
    return took is not None, f"taken over after {_told(took)}"


def metrics_names(lab: Lab) -> Found:
    """Metrics that every Prometheus client has, and units in names."""
    node = lab.start("n1")
    node.seconds_until_up()
    page = node.page("/metrics")[1]
    wanted = ("omen_build_info", "process_resident_memory_bytes", "omen_delivery_latency_seconds")
    missing = [name for name in wanted if name not in page]
    return not missing, f"without {', '.join(missing)}" if missing else "all there"


def first_start(lab: Lab) -> Found:
    """A first start, with nothing compiled."""
    source = Path(lab.environment["PYTHONPATH"])
    fresh = lab.folder / "fresh"
    shutil.copytree(source, fresh, ignore=shutil.ignore_patterns("__pycache__"))
    lab.environment |= {"PYTHONPATH": str(fresh), "NUMBA_CACHE_DIR": str(lab.folder / "cache")}
    first = lab.start("n1")
    first.seconds_until_up(120.0)
    took = lab.start("n2", join=[first.address]).seconds_until_up(120.0)
    lab.environment |= {"PYTHONPATH": str(source)}
    del lab.environment["NUMBA_CACHE_DIR"]
    return took is not None and took < 5.0, f"up after {_told(took)}"


CASES: tuple[Callable[[Lab], Found], ...] = (
    mutual_seeds, own_spelling, began_apart, bad_seed, silent_seed, refused_at_once, name_twice, expired_certificate,
    foreign_certificate, default_name, unreachable_address, full_disk, frozen_node, health_pages, reload_topics,
    metrics_names, first_start,
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=ROOT / "src")
    parser.add_argument("--case", action="append", choices=[case.__name__ for case in CASES])
    told = parser.parse_args()
    failed = 0
    for case in CASES:
        if told.case and case.__name__ not in told.case:
            continue
        with tempfile.TemporaryDirectory() as folder:
            lab = Lab(Path(folder), told.src.resolve())
            try:
                holds, words = case(lab)
            finally:
                lab.end()
        failed += not holds
        print(f"{'holds' if holds else 'FAILS'}  {case.__name__}: {words}  ({case.__doc__})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""How anything here is timed, in which process, and what is said about the machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Timing:
    """Several runs of the same thing: by the clock on the wall, and in processor time."""

    wall_s: tuple[float, ...]
    processor_s: tuple[float, ...]

    @property
    def median_wall_s(self) -> float:
        return statistics.median(self.wall_s)

    @property
    def median_processor_s(self) -> float:
        return statistics.median(self.processor_s)


@dataclass(frozen=True)
class Row:
    """What was measured against what is to be reached. Times are medians."""

    what: str
    wall_s: float
    processor_s: float
    runs: int
    target_s: float | None = None
    peak_mb: float | None = None
    target_mb: float | None = None
    details: dict[str, Any] = field(default_factory=dict)


def time_runs(run: Callable[[], object], runs: int, warm_up: bool = True) -> Timing:
    """Times a call, after one that warms it up and is not counted."""
    if warm_up:
        run()
    wall, processor = [], []
    for _ in range(runs):
        started, worked = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - started)
        processor.append(time.process_time() - worked)
    return Timing(tuple(wall), tuple(processor))


def time_command(
    command: Sequence[str], runs: int, environment: dict[str, str] | None = None, warm_up: bool = True
) -> Timing:
    """Times a whole process, from its start to its end."""

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **(environment or {})})

    if warm_up:
        run()
    wall, processor = [], []
    for _ in range(runs):
        started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - started)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Timing(tuple(wall), tuple(processor))


def run_apart(module: str, *arguments: str) -> dict[str, Any]:
    """What a module of this folder, run in a process of its own, prints as JSON: its memory is then its own as well."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak_mb() -> float:
    """The most memory this process has held so far, interpreter and compiled kernels included."""
    status = Path("/proc/self/status")
    if status.exists():  # not getrusage: what it says starts at what the parent process held
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine_facts() -> dict[str, Any]:
    """What a number depends on, apart from the code."""
    load = os.getloadavg()
    return {
        "date": date.today().isoformat(),
        "code": _code(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numba": version("numba"),
        "numpy": version("numpy"),
        "load_average": [round(one, 1) for one in load],
    }


def _code() -> str:
    """The commit that is measured, and whether the sources differ from it."""
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, check=True)
        changed = subprocess.run(["git", "status", "--short", "src"], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.decode().strip() + (" with changes" if changed.stdout.strip() else "")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write_result(name: str, title: str, introduction: str, before: dict[str, Any], rows: Sequence[Row]) -> None:
    """Keeps what one part measured; the page is made from all that is kept. `before`: the facts when it began."""
    RESULTS.mkdir(exist_ok=True)
    found = {
        "title": title,
        "introduction": introduction,
        "machine": {**before, "load_average_after": machine_facts()["load_average"]},
        "rows": [asdict(row) for row in rows],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

"""The process of a node, by the names that all Prometheus clients use. Where there is no /proc, what can be had."""

from __future__ import annotations

import os
from pathlib import Path

from omen.net.observe.metrics import Page

PROC = Path("/proc")


def write_process(page: Page, proc: Path = PROC) -> None:
    """Processor time, memory, file descriptors and the start of this process."""
    times = os.times()
    page.counter("process_cpu_seconds_total", "Processor time, user and system.", times.user + times.system)
    try:
        fields = (proc / "self/stat").read_text().rpartition(")")[2].split()
        booted = next(
            int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line.startswith("btime ")
        )
        descriptors = len(list((proc / "self/fd").iterdir()))
    except (OSError, StopIteration):
        return
    started = booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    page.gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", started)
    page.gauge("process_virtual_memory_bytes", "Virtual memory.", int(fields[20]))
    page.gauge("process_resident_memory_bytes", "Resident memory.", int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    page.gauge("process_open_fds", "Open file descriptors.", descriptors)
    page.gauge("process_max_fds", "File descriptors that may be open.", _most_descriptors())


def _most_descriptors() -> float:
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit  # not on every system

    soft, _ = getrlimit(RLIMIT_NOFILE)
    return 0 if soft == RLIM_INFINITY else soft

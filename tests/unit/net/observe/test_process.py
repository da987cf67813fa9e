"""The process of a node in its metrics."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from omen.net.observe.metrics import Page
from omen.net.observe.process import write_process


def values(proc: Path | None = None) -> dict[str, float]:
    page = Page()
    write_process(page, *([] if proc is None else [proc]))
    return {s.name: s.value for family in text_string_to_metric_families(page.text()) for s in family.samples}


def test_this_process_is_told_by_the_names_that_all_clients_use() -> None:
    found = values()
    assert 0 < found["process_cpu_seconds_total"] < 10_000
    assert 1e6 < found["process_resident_memory_bytes"] < found["process_virtual_memory_bytes"]
    assert time.time() - 86_400 < found["process_start_time_seconds"] <= time.time() + 1
    assert 3 <= found["process_open_fds"] <= found["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert os.times().user + os.times().system >= found["process_cpu_seconds_total"]


def test_without_proc_there_is_processor_time_alone(tmp_path: Path) -> None:
    assert set(values(tmp_path)) == {"process_cpu_seconds_total"}

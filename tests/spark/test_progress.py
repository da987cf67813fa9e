"""The progress line, on a terminal of the test's own."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from omen.pipeline import progress

pytestmark = pytest.mark.spark


def slowly(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(0.5)
        yield batch


def read_all(terminal: int) -> str:
    """What was written to it, until nothing comes for half a second."""
    shown = b""
    while select.select([terminal], [], [], 0.5)[0]:
        shown += os.read(terminal, 100_000)
    return shown.decode()


def test_a_person_who_watches_sees_stages_go_by(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, terminal = os.openpty()
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.1)
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(progress.sys, "stderr", stream)
        with progress.stage_progress(spark):
            progress.announce_step("waiting")
            spark.range(0, 12, 1, 12).mapInArrow(slowly, "id long").count()
        monkeypatch.undo()
        shown = read_all(watcher)
    os.close(watcher)
    lines = shown.split("\r\x1b[K")
    assert lines[0] == lines[-1] == ""
    bars = [re.fullmatch(r"(?:working|waiting) \[(#*)(\.*)\] (\d+)/(\d+) tasks", line) for line in lines[1:-1]]
    assert all(bar and len(bar[1]) == 30 * int(bar[3]) // int(bar[4]) and len(bar[1] + bar[2]) == 30 for bar in bars)
    done = [int(bar[3]) for bar in bars if bar and bar[4] == "12"]
    assert done == sorted(done)
    assert done[-1] > 0


def test_nothing_is_shown_where_nobody_watches(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with progress.stage_progress(spark):
        assert spark.range(0, 4, 1, 2).mapInArrow(slowly, "id long").count() == 4
    assert capfd.readouterr().err == ""

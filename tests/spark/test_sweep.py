"""What Spark does in a sweep: cells become tasks, and what dies takes only its own cell with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omen.pipeline import sweep as engine
from omen.sweep.cells import Cell, WorkloadSpec
from omen.sweep.kinds import run_cell
from omen.sweep.table import CellTable

pytestmark = pytest.mark.spark


def cells(count: int, name: str = "gm") -> list[Cell]:
    return [Cell("design", WorkloadSpec(30, 10, "uniform", "3", seed), name) for seed in range(count)]


def test_spark_measures_what_one_process_measures(spark: SparkSession, tmp_path: Path) -> None:
    wanted = [*cells(12), Cell("design", WorkloadSpec(folder=str(tmp_path / "none")), "gm")]
    swept = engine.sweep(wanted, tmp_path / "s")
    for one, alone in zip(swept.results, map(run_cell, wanted), strict=True):
        assert {**one.values, "design_s": 0} == {**alone.values, "design_s": 0} or not alone.ok
        assert bool(one.error) == bool(alone.error)
    assert engine.sweep(wanted, tmp_path / "s").reused == 12


def test_a_task_that_dies_costs_only_the_cell_that_killed_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = Cell("design", WorkloadSpec(30, 10, "uniform", "3", 99), "gm")

    class Deadly(engine._BundleRunner):
        def __call__(self, batches):  # type: ignore[no-untyped-def]
            if any(plain["workload"].get("seed") == 99 for plain in self.cells):
                raise SystemExit("the worker is gone")
            yield from super().__call__(batches)

    monkeypatch.setattr(engine, "_BundleRunner", Deadly)
    results = engine.run_on_spark(spark, [*cells(2), deadly])
    assert [one.ok for one in results] == [True, True, False]
    assert "died" in results[2].error


@pytest.mark.slow
def test_a_sweep_killed_with_9_goes_on_where_it_was(tmp_path: Path) -> None:
    grid = tmp_path / "g.toml"
    grid.write_text(
        'seeds = 40\nworkload = {nodes = 600, topics = 60, sizes = 12}\nrun = {algorithm = ["low-oda", "gm2"]}\n'
    )
    command = [sys.executable, "-m", "omen.cli", "sweep", str(grid), "--out", str(tmp_path / "s")]
    command += ["--engine", "local"]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 120
    while len(CellTable(tmp_path / "s").read()) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = CellTable(tmp_path / "s").read()
    assert 3 <= len(kept) < 80, "killed in the middle"
    finished = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert f'"reused": {len(kept)}' in finished.stdout

"""The table of results and the local runner of a sweep; what Spark does is in tests/spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omen.errors import CannotWrite
from omen.sweep import runner
from omen.sweep.cells import Cell, CellResult, WorkloadSpec
from omen.sweep.grid import make_grid
from omen.sweep.kinds import run_cell
from omen.sweep.table import CellTable

WORKLOAD: dict[str, Any] = {"nodes": [12, 20], "topics": 6, "sizes": 2}
TINY = WorkloadSpec(16, 6, "uniform", "2", 0)


def grid_of(**tables: Any) -> tuple[Cell, ...]:
    return make_grid({"workload": WORKLOAD, **tables}).cells


def test_a_failing_cell_records_its_error_and_stops_no_other(tmp_path: Path) -> None:
    missing = Cell("design", WorkloadSpec(folder=str(tmp_path / "none")), "gm")
    good = Cell("design", TINY, "gm")
    swept = runner.sweep([missing, good], tmp_path / "s")
    assert [one.ok for one in swept.results] == [False, True]
    assert "none" in swept.failed[0].error


def test_a_finished_cell_is_not_run_again_and_a_failed_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("design", WorkloadSpec(16, 6, "uniform", "2", seed), "gm") for seed in range(3)]
    ran: list[Cell] = []

    def counting(cell: Cell) -> CellResult:
        ran.append(cell)
        return CellResult(cell, {}, {}, 0.1, "no luck") if len(ran) == 1 else run_cell(cell)

    monkeypatch.setattr(runner, "run_cell", counting)
    assert len(runner.sweep(cells, tmp_path / "s").failed) == 1
    again = runner.sweep(cells, tmp_path / "s")
    assert again.reused == 2
    assert not again.failed
    assert len(ran) == 4


def test_a_sweep_that_dies_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("design", WorkloadSpec(16, 6, "uniform", "2", seed), "gm") for seed in range(3)]

    def dies(cell: Cell) -> CellResult:
        if len(CellTable(tmp_path / "s").read()) == 1:
            raise KeyboardInterrupt
        return run_cell(cell)

    monkeypatch.setattr(runner, "run_cell", dies)
    with pytest.raises(KeyboardInterrupt):
        runner.sweep(cells, tmp_path / "s")
    monkeypatch.undo()
    assert runner.sweep(cells, tmp_path / "s").reused == 1


def test_what_comes_back_after_an_interrupt_is_not_kept(tmp_path: Path) -> None:
    cells = [Cell("design", WorkloadSpec(16, 6, "uniform", "2", seed), "gm") for seed in range(2)]
    begun, interrupted, late = threading.Event(), threading.Event(), threading.Event()

    def run_bundle(bundle: Sequence[Cell]) -> list[CellResult]:
        if bundle[0] == first:
            begun.wait(10)
            raise KeyboardInterrupt
        begun.set()
        interrupted.wait(10)
        late.set()
        return [CellResult(cell, {}, {}, 0.0, "the task died") for cell in bundle]

    schedule = runner.Schedule(cells, 0, lambda progress: None)
    first = schedule.queue[0]
    table = CellTable(tmp_path / "s")
    with table.opened():
        with pytest.raises(KeyboardInterrupt):
            runner.run_schedule(schedule, table, runner.Workers(run_bundle, 2))
        interrupted.set()
        assert late.wait(10)
        time.sleep(0.1)
        assert table.read() == {}


def test_two_sweeps_do_not_write_to_one_folder(tmp_path: Path) -> None:
    table = CellTable(tmp_path / "s")
    with table.opened(), pytest.raises(CannotWrite, match="another sweep"):
        runner.sweep([], tmp_path / "s")


def test_what_there_is_can_be_reported_while_a_sweep_is_under_way(tmp_path: Path) -> None:
    cells = grid_of(run={"algorithm": "gm"})
    runner.sweep(cells[:1], tmp_path)
    with CellTable(tmp_path).opened():
        found = runner.stored(cells, tmp_path)
    assert [one.cell for one in found.results] == list(cells[:1])


def test_a_folder_that_is_not_a_sweeps_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(CannotWrite, match="not empty"):
        runner.sweep([], tmp_path)


def test_progress_tells_how_long_is_left(tmp_path: Path) -> None:
    told: list[runner.Progress] = []
    runner.sweep(grid_of(seeds=2, run={"algorithm": ["gm", "gm2"]}), tmp_path / "s", tell=told.append)
    assert told[-1].done == told[-1].total == 8
    assert told[-1].left_s == 0
    assert all(one.left_s is not None for one in told)


def test_a_slow_first_cell_is_forgotten_in_the_time_left() -> None:
    cells = [Cell("design", WorkloadSpec(16, 6, "uniform", "2", seed), "gm") for seed in range(200)]
    told: list[float] = []
    schedule = runner.Schedule(cells, 0, lambda progress: told.append(progress.left_s or 0.0))
    schedule.note([CellResult(cells[0], {}, {}, 60.0)], 1)
    schedule.note([CellResult(cell, {}, {}, 0.01) for cell in cells[1:100]], 1)
    assert told[0] > 1000
    assert told[1] == pytest.approx(100 * 0.01, rel=0.5)
    assert len(schedule.next_bundle()) > 1

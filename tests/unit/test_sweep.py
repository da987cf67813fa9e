"""Grids, cells, the table of results and the local engine of `omen sweep`; what Spark does is in tests/spark."""

from __future__ import annotations

import json
import re
import textwrap
import threading
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commands import run, run_json
from omen.cli.sweep import EPILOG
from omen.errors import CannotWrite, InvalidInput
from omen.sweep import runner
from omen.sweep.cells import Cell, CellResult, WorkloadSpec, pairs
from omen.sweep.grid import make_grid
from omen.sweep.kinds import interests_of, run_cell, top_intersection
from omen.sweep.table import CellTable

WORKLOAD: dict[str, Any] = {"nodes": [12, 20], "topics": 6, "sizes": 2}
TINY = WorkloadSpec(16, 6, "uniform", "2", 0)


def grid_of(**tables: Any) -> tuple[Cell, ...]:
    return make_grid({"workload": WORKLOAD, **tables}).cells


def test_lists_in_a_grid_are_combined_with_one_another_and_with_seeds() -> None:
    cells = grid_of(seeds=3, run=[{"algorithm": ["gm", "low-oda"]}, {"system": "shadow", "lambda": [1, 2, 3]}])
    assert len(cells) == 2 * 3 * (2 + 3)
    assert len({cell.id for cell in cells}) == len(cells)


def test_a_cell_listed_twice_is_one_cell() -> None:
    assert len(grid_of(run=[{"algorithm": "gm"}, {"algorithm": ["gm", "gm"]}])) == 2


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"run": {"algorithm": "low-odda"}}, "did you mean 'low-oda'"),
        ({"run": {"system": "shadw"}}, "did you mean 'shadow'"),
        ({"run": {"algorithm": "gm", "rhoo": 3}}, "there is no 'rhoo'"),
        ({"run": {"algorithm": "low-oda", "rho": 0.5}}, "rho must be"),
        ({"run": {"algorithm": "gm"}, "sedes": 3}, "did you mean 'seeds'"),
        ({"run": {"algorithm": "gm"}, "seeds": 0}, "seeds must be"),
        ({"run": {"algorithm": "gm", "system": "shadow"}}, "an algorithm or a system"),
        ({"run": {"algorithm": "gm", "kind": "replay"}}, "names a system"),
        ({"run": {"algorithm": "gm", "kind": "desing"}}, "did you mean 'design'"),
        ({}, "there is no [run]"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9, "topics": 3}}, "needs sizes"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9, "topics": 3, "sizes": 7}}, "cannot want 7"),
        ({"run": {"algorithm": "gm"}, "workload": {"nodes": 9.5, "topics": 3, "sizes": 2}}, "whole number"),
        (
            {"run": {"algorithm": "gm"}, "workload": {**WORKLOAD, "popularity": "zipff"}},
            "popularity 'zipff' is not one of",
        ),
        ({"run": {"algorithm": "gm", "diameters": {"a": 1}}}, "is no number, text"),
        ({"run": {"algorithm": "gm"}, "figure": {"x": "nodes"}}, "a figure needs y"),
    ],
)
def test_a_bad_grid_is_refused_with_what_would_be_right(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        grid_of(**tables)
    assert said in str(refused.value)


def test_a_grid_that_is_no_toml_is_refused_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text("seeds = = 3")
    assert run("sweep", tmp_path / "g.toml", "--out", tmp_path / "s") == 2
    assert "g.toml: not TOML" in capsys.readouterr().err
    assert run("sweep", tmp_path / "none.toml", "--out", tmp_path / "s") == 2
    assert "no such file" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_the_grids_of_the_help_and_the_documentation_are_grids() -> None:
    shown = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    documented = re.search(r"```toml\n(.*?)```", shown, re.DOTALL)
    assert documented
    assert len(make_grid(tomllib.loads(documented[1])).cells) == 3 * 2 * 3 * (2 + 2)
    helped = textwrap.dedent(EPILOG.split("# grid.toml\n")[1].split("\nA list")[0])
    assert len(make_grid(tomllib.loads(helped)).cells) == 3 * 2 * 3 * (2 + 2)


def test_a_cell_is_the_same_after_a_way_through_json() -> None:
    cell = Cell("replay", TINY, "shadow", pairs({"lambda": 2, "rho": float("inf")}), pairs({"rounds": 5}))
    again = Cell.from_plain(json.loads(json.dumps(cell.to_plain())))
    assert again.id == cell.id
    assert run_cell(again).ok


def test_a_design_cell_tells_what_the_overlay_costs() -> None:
    found = run_cell(Cell("design", TINY, "gm2", settings=pairs({"diameters": True, "check_k": 2, "mesh": 6})))
    assert found.ok
    assert found.values["k_holds"] == 1
    assert found.values["split_topics"] == 0
    assert found.values["avg_degree"] == 2 * found.values["edges"] / 16
    assert {"max_diameter", "mean_diameter", "mesh_avg_degree"} <= set(found.values)


def test_a_replay_cell_tells_what_each_round_changed() -> None:
    found = run_cell(Cell("replay", TINY, "shadow", settings=pairs({"rounds": 8, "verify": "every"})))
    assert found.ok
    assert found.values["judged"] == 8
    assert len(found.series["changed"]) == 8
    before, after = found.series["links_before"], found.series["avg_degree"]
    links = [round(degree * nodes / 2) for degree, nodes in zip(after, found.series["nodes"], strict=True)]
    assert before[1:] == links[:-1]


@pytest.mark.parametrize("system", ["shadow", "omen", "spidercast"])
def test_a_replay_cell_looks_at_diameters_on_the_way(system: str) -> None:
    found = run_cell(Cell("replay", TINY, system, settings=pairs({"rounds": 6, "diameters_every": 2})))
    assert not found.error
    assert found.series["looked_after"] == [2.0, 4.0, 6.0]
    assert found.values["looks"] == 3
    assert found.values["max_diameter_mean"] == sum(found.series["looked_max_diameter"]) / 3
    assert found.values["start_avg_degree"] > 0
    assert ("simulated_s" in found.values) == (system != "shadow")
    if system != "shadow":
        assert found.values["messages_an_event"] == pytest.approx(sum(found.series["messages"]) / 6)


def test_rebuild_and_backups_cells_measure_what_their_names_say() -> None:
    rebuilt = run_cell(Cell("rebuild", TINY, "low-oda", settings=pairs({"rounds": 8, "every": 2})))
    assert rebuilt.values["looks"] == 4
    backups = run_cell(Cell("backups", TINY, "shadow"))
    assert sum(backups.series["nodes_of_primary_degree"]) == 16
    assert backups.values["primaries_min"] <= backups.values["size_mean"] <= backups.values["primaries_max"]


def test_cells_of_simulated_nodes_measure_views_and_lives() -> None:
    views = run_cell(Cell("views", TINY, "omen", pairs({"lambda": 1}), pairs({"rounds": 3})))
    assert views.ok, views.error
    assert len(views.series["views"]) == 16
    assert 0 < views.values["view_mean"] <= 16
    lives = run_cell(Cell("lives", TINY, "spidercast", settings=pairs({"mean_up": 20.0, "duration": 10.0})))
    assert lives.ok, lives.error
    assert lives.values["events"] > 0
    assert lives.values["control_messages"] > 0


def test_likeness_of_interests_is_that_of_the_profile() -> None:
    from omen.workloads.profile import profile_workload

    interests = interests_of(WorkloadSpec(60, 12, "zipf:1", "uniform:2:6", 3))
    likeness = profile_workload(interests, closest=5, sample=60).likeness
    assert top_intersection(interests, 5, block=7) == pytest.approx(likeness.tdi)


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


def test_sweep_writes_a_table_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "g.toml").write_text(
        """
        seeds = 2
        [workload]
        nodes = [12, 20]
        topics = 6
        sizes = 2
        [[run]]
        algorithm = ["gm", "low-oda"]
        [[figure]]
        name = "links"
        x = "nodes"
        y = "edges"
        by = "name"
        """
    )
    out = tmp_path / "s"
    found = run_json(capsys, "sweep", tmp_path / "g.toml", "--out", out, "--engine", "local", "--figures")
    assert found["cells"] == found["run"] == 8
    assert {Path(path).name for path in found["figures"]} == {"links.svg", "links.png", "links.csv"}
    assert len((out / "results.csv").read_text().splitlines()) == 9
    assert (out / "figures" / "links.csv").read_text().count("gm") == 2
    assert run_json(capsys, "sweep", tmp_path / "g.toml", "--out", out, "--engine", "local")["reused"] == 8


def test_a_figure_of_no_column_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "g.toml").write_text(
        'workload = {nodes = 9, topics = 4, sizes = 2}\nrun = {algorithm = "gm"}\nfigure = {x = "nodse", y = "edges"}'
    )
    assert run("sweep", tmp_path / "g.toml", "--engine", "local", "--figures", "--out", tmp_path / "s") == 2
    assert "did you mean 'nodes'" in capsys.readouterr().err


def test_a_slow_first_cell_is_forgotten_in_the_time_left() -> None:
    cells = [Cell("design", WorkloadSpec(16, 6, "uniform", "2", seed), "gm") for seed in range(200)]
    told: list[float] = []
    schedule = runner.Schedule(cells, 0, lambda progress: told.append(progress.left_s or 0.0))
    schedule.note([CellResult(cells[0], {}, {}, 60.0)], 1)
    schedule.note([CellResult(cell, {}, {}, 0.01) for cell in cells[1:100]], 1)
    assert told[0] > 1000
    assert told[1] == pytest.approx(100 * 0.01, rel=0.5)
    assert len(schedule.next_bundle()) > 1

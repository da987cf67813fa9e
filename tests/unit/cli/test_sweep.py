"""`omen sweep`: what it writes, and what it refuses before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json

WORKLOAD = "workload = {nodes = 9, topics = 4, sizes = 2}\n"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('{system = "shadow", rounds = "many"}', "run of shadow: rounds must be a whole number, 0 or more, not 'many'"),
        ('{system = "shadow", rounds = [3, -3]}', "rounds must be a whole number, 0 or more, not -3"),
        ('{system = "shadow", rounds = 2.5}', "rounds must be a whole number"),
        ('{system = "shadow", join_probability = "half"}', "join_probability must be a number, 0 or more"),
        ('{system = "shadow", verify = 3}', "verify must be a text, not 3"),
        ('{algorithm = "gm", diameters = "maybe"}', "diameters must be true or false, not 'maybe'"),
        ('{algorithm = "gm", check_k = true}', "check_k must be a whole number"),
        ('{algorithm = "gm", kind = "replay"}', "names a system, not an algorithm"),
        ("{algorithm = []}", "an empty one leaves nothing to run"),
    ],
)
def test_what_no_worker_could_run_is_refused(
    table: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "g.toml").write_text(f"{WORKLOAD}run = {table}\n")
    assert run("sweep", tmp_path / "g.toml", "--out", tmp_path / "s", "--engine", "local") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_a_whole_number_will_do_where_a_number_is_asked_for(tmp_path: Path) -> None:
    table = '{system = "shadow", rounds = 2, join_probability = 1, verify = "every", diameters = true}'
    (tmp_path / "g.toml").write_text(f"{WORKLOAD}run = {table}\n")
    assert run("sweep", tmp_path / "g.toml", "--out", tmp_path / "s", "--engine", "local") == 0


def test_one_cell_that_failed_is_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text('workload = {folder = "nowhere"}\nrun = {algorithm = "gm"}\n')
    assert run("sweep", tmp_path / "g.toml", "--out", tmp_path / "s", "--engine", "local") == 1
    told = capsys.readouterr().err
    assert "1 cell failed:" in told
    assert "nowhere: no such file or folder" in told
    assert "no such file or folder" in (tmp_path / "s" / "results.csv").read_text()


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


def test_a_grid_that_is_no_toml_is_refused_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text("seeds = = 3")
    assert run("sweep", tmp_path / "g.toml", "--out", tmp_path / "s") == 2
    assert "g.toml: not TOML" in capsys.readouterr().err
    assert run("sweep", tmp_path / "none.toml", "--out", tmp_path / "s") == 2
    assert "no such file" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.interests import Interests
from omen.tables import read_table, write_workload


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    pairs = [("ann", "tea"), ("bob", "tea"), ("bob", "rum"), ("cid", "rum")]
    write_workload(tmp_path / "w", Interests.from_pairs(pairs, nodes=["ann", "bob", "cid", "dan"]), {})
    return tmp_path / "w"


def test_profile_prints_a_table_or_json(workload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", "profile", "--workload", str(workload)]) == 0
    shown = capsys.readouterr().out
    assert "without topics" in shown
    assert "shared with the 20 closest" in shown
    assert main(["workload", "profile", "--workload", str(workload), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["topics"], found["nodes_without_topics"]) == (4, 2, 1)
    assert found["largest_topics"] == [{"topic": "rum", "subscribers": 2}, {"topic": "tea", "subscribers": 2}]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_profile_draws_the_same_figure_each_time(workload: Path, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a", "b"):
        figure = f"{tmp_path}/{name}.{kind}"
        assert main(["workload", "profile", "--workload", str(workload), "--figure", figure, "--json"]) == 0
    first, second = (tmp_path / f"{name}.{kind}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 1000


def test_profile_writes_its_distributions(workload: Path, tmp_path: Path) -> None:
    table = tmp_path / "d.csv"
    assert main(["workload", "profile", "--workload", str(workload), "--table", str(table), "--json"]) == 0
    values = read_table(table, ["distribution", "value"])["value"]
    assert values.labels[values.codes].tolist() == [0, 1, 2, 2]


def test_a_figure_of_unknown_kind_is_refused(workload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", "profile", "--workload", str(workload), "--figure", "x.bmp"]) == 2
    assert ".svg, .png, .pdf" in capsys.readouterr().err

"""`omen reproduce --data` from an empty folder: inputs are made from graphs and a trace before anything is swept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omen.cli.main import main
from omen.report.experiments import inputs

pytestmark = pytest.mark.spark

NODES = 40


@pytest.fixture
def tiny_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the same form as the real ones, and samples that are as small."""
    folder = tmp_path / "data"
    folder.mkdir()
    graphs = {name: (file, directed, NODES // 2) for name, (file, directed, _) in inputs.GRAPHS.items()}
    monkeypatch.setattr(inputs, "GRAPHS", graphs)
    edges = "".join(f"{one} {(one + step) % NODES}\n" for one in range(NODES) for step in (1, 2, 5))
    (folder / graphs["fb1k"][0]).write_bytes(gzip.compress(edges.encode()))
    added = "".join(f"0,{machine},0,p,0.5,0.2\n" for machine in range(NODES))
    removed = "".join(f"{600 + machine}000000,{machine},1,p,,\n" for machine in range(0, NODES, 4))
    (folder / inputs.MACHINES).write_bytes(gzip.compress((added + removed).encode()))
    return folder


def test_a_new_folder_is_begun_and_gone_on_with(
    spark: SparkSession, tiny_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"reproduce all --data {tiny_data} --out {tmp_path}/new --engine none --json"
    assert main(command.split()) == 0
    first = json.loads(capsys.readouterr().out)
    assert {"fb1k", "fb1k-churn"} <= {path.name for path in (tmp_path / "new" / "inputs").iterdir()}
    assert main(command.split()) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == first["summary"]


def test_a_folder_of_somebody_else_is_left_as_it_is(
    spark: SparkSession, tiny_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "letter.txt").write_text("dear")
    assert main(f"reproduce omen --data {tiny_data} --out {theirs} --engine none".split()) != 0
    assert "left as it is" in capsys.readouterr().err
    assert [path.name for path in theirs.iterdir()] == ["letter.txt"]

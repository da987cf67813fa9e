"""omen workload import: the loud lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json


def test_blanks_around_names_and_many_rejected_rows_are_said_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("node,topic\n ann,tea\nann,tea\n,tea\n")
    assert run("workload import --table", tmp_path / "t.csv", "--out", tmp_path / "w") == 0
    assert capsys.readouterr().err.splitlines() == [
        f"WARNING: 33% of the rows were rejected; the table {tmp_path / 'w'}/rejected has each with its reason",
        "WARNING: 1 of the nodes have blanks around their names, and count as other names than those without blanks",
    ]
    told = run_json(capsys, "workload import --table", tmp_path / "t.csv", "--out", tmp_path / "w")
    assert told["padded"] == {"nodes": 1, "topics": 0}


def test_a_clean_table_is_imported_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"n{number},t\n" for number in range(200))
    (tmp_path / "t.csv").write_text(f"node,topic\n{rows},t\n")
    assert run("workload import --table", tmp_path / "t.csv", "--out", tmp_path / "w") == 0
    assert capsys.readouterr().err == ""


def test_a_table_with_other_columns_points_to_the_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("user,channel\nann,tea\n")
    assert run("design --workload", tmp_path / "t.csv") == 2
    assert "omen workload import --node-column" in capsys.readouterr().err


def test_rows_that_are_no_utf8_point_to_the_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_bytes("node,topic\nann,thé\nbob,tea\n".encode("latin-1"))
    command = ("workload import --table", tmp_path / "t.csv", "--out", tmp_path / "w")
    assert run(*command) == 0
    assert "WARNING: 1 row is not readable as text: --encoding" in capsys.readouterr().err
    assert run(*command, "--encoding", "latin-1") == 0
    assert capsys.readouterr().err == ""
    assert run(*command, "--encoding", "latin-1", "--engine", "spark") == 2
    assert "--engine spark reads UTF-8 alone" in capsys.readouterr().err

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    assert (
        run("workload synth --nodes 80 --topics 15 --popularity zipf:1 --sizes 4 --seed 3 --out", tmp_path / "w") == 0
    )
    return tmp_path / "w"


def test_a_polished_design_is_judged_and_told_with_what_was_before(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    plain = run_json(capsys, "design --algorithm gm --workload", workload)
    told = run_json(capsys, "design --algorithm gm --polish --workload", workload, "--out", tmp_path / "o.parquet")
    before = {f"{name}_before": plain[name] for name in ("edges", "avg_degree", "max_degree")}
    assert (plain["polished"], told["polished"]) == (None, before)
    assert told["topic_connected"]
    assert told["max_degree"] < plain["max_degree"]
    assert told["edges"] <= plain["edges"]
    assert run("check --workload", workload, "--overlay", tmp_path / "o.parquet") == 0
    assert run("design --polish --workload", workload) == 0
    assert "before polishing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--algorithm gm2", "--polish is for gm, low-oda, minmax-oda"),
        ("--rounds auto", "goes with neither --rounds"),
        ("--engine spark --out o", "goes with neither --rounds"),
    ],
)
def test_what_polishing_does_not_know_is_refused(
    words: str, complaint: str, workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"design --polish {words} --workload", workload) == 2
    assert complaint in capsys.readouterr().err

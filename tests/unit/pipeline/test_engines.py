from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands import run
from omen.pipeline import engines

SMALL = "workload synth --nodes 50 --topics 5 --sizes 2 --out"


def test_a_small_workload_is_made_without_spark(tmp_path: Path) -> None:
    program = (
        "import sys; from omen.cli.main import main\n"
        f"status = main({SMALL.split()!r} + [{str(tmp_path / 'w')!r}])\n"
        "sys.exit(status or 'pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("engine", "large", "installed", "spark"),
    [
        ("auto", False, True, False),
        ("auto", True, True, True),
        ("auto", True, False, False),
        ("local", True, True, False),
        ("spark", False, False, True),
    ],
)
def test_spark_is_started_where_asked_for_or_where_it_pays(
    monkeypatch: pytest.MonkeyPatch, engine: str, large: bool, installed: bool, spark: bool
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: object() if installed else None)
    chosen = engines.choose_engine(engine, large, "7 MB", "5 MB")
    assert chosen.is_spark is spark
    assert (chosen.why is not None) is (engine == "auto")


@pytest.mark.parametrize(
    "words",
    [
        "check --workload none --overlay none",
        "design --algorithm ring-pt --workload none --out o",
        "workload profile --workload none",
        "workload import --table none --out w",
    ],
)
def test_an_input_that_is_not_there_is_found_before_spark_starts(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(f"{words} --engine spark --master spark://127.0.0.1:1") == 2
    assert "none: " in (said := capsys.readouterr().err)
    assert "no such file" in said

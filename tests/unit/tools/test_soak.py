"""Long runs: each can be given alone, its verdict is kept, and what has gone well is not run again."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools import soak


def test_every_run_is_a_module_that_exists() -> None:
    for runs in soak.PARTS.values():
        for command in runs.values():
            assert importlib.util.find_spec(command.split()[0]) is not None, command


@pytest.mark.parametrize("part", ["worlds", "stalls"])
def test_no_run_loads_what_a_record_does_not_name(part: str) -> None:
    simulated = part in soak.SIMULATED
    parts = soak.SIMULATED if simulated else tuple(soak.PARTS)
    modules = {command.split()[0] for name in parts for command in soak.PARTS[name].values()}
    modules = (modules - {"omen.cli"}) | ({"omen.sim"} if simulated else {"omen.cli.node", "omen.cli.simulate"})
    rooms = {
        each.removeprefix(":(exclude)src/omen/") for each in soak.places(part) if each.startswith(":(exclude)src/omen/")
    }
    program = (
        "import importlib, pkgutil, sys\n"
        f"for name in {sorted(modules)!r}: importlib.import_module(name)\n"
        "import omen.sim\n"
        "for each in pkgutil.walk_packages(omen.sim.__path__, 'omen.sim.'): importlib.import_module(each.name)\n"
        f"print(sorted(set(sys.modules) & { ({f'omen.{room}' for room in rooms})!r}))"
    )
    paths = os.pathsep.join(str(soak.ROOT / place) for place in ("src", "tests", "."))
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"lost": 1, "told": 2}', '{"lost": 0, "told": null}'], "2 runs: lost 1, told 2"),
        (
            ['{"lost": 0, "longest_s": 0.5, "edge_s": 0.0}', '{"lost": 0, "longest_s": 1.5}'],
            "2 runs: lost 0, highest longest_s 1.5",
        ),
        (["much", "3 worlds, 0 failures", ""], "3 worlds, 0 failures"),
        (["deliveries 9", "lost 0", "out of order 2", "replayed 0"], "lost 0; out of order 2; replayed 0"),
        (['{"nodes": 3}'], '{"nodes": 3}'),
        ([], "nothing printed"),
    ],
)
def test_a_run_comes_to_its_sums_or_its_last_line(lines: list[str], told: str) -> None:
    assert soak.summarise(lines) == told


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One part of two runs, the second of which fails."""
    monkeypatch.setattr(soak, "PARTS", {"small": {"well": "timeit -n 1 -r 1 1", "ill": "timeit -n 1 -r 1 unknown"}})
    monkeypatch.setattr(soak, "RECORDS", tmp_path / "soak.jsonl")
    monkeypatch.setattr(soak, "PAGE", tmp_path / "soak.md")
    monkeypatch.setattr(soak, "OUTPUT", tmp_path / "output")
    monkeypatch.setattr(soak, "code_now", lambda part: "abc1234")
    return tmp_path


def test_runs_are_recorded_and_those_that_went_well_are_not_made_again(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "read_records", lambda: _read(small / "soak.jsonl"))
    assert soak.main(["small"]) == 1
    assert [record.status for record in soak.read_records()] == [0, 1]
    page = (small / "soak.md").read_text()
    assert "`python -m timeit -n 1 -r 1 1` | abc1234" in page and "Not run yet" not in page
    assert soak.main(["small", "well"]) == 0
    assert "well: has gone well at abc1234" in capsys.readouterr().out
    assert soak.main(["small"]) == 1
    assert [record.run for record in soak.read_records()] == ["well", "ill", "ill"]
    assert soak.main(["small", "well", "--again"]) == 0


_read = soak.read_records


def test_a_run_that_is_not_there_is_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["small", "wel"])
    assert "small has no run 'wel' (it has well, ill)" in capsys.readouterr().err
    assert soak.main(["small", "well", "--list"]) == 0
    assert "python -m timeit" in capsys.readouterr().out

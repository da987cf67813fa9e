"""The search of the day: printed, run, and a failure among its worlds is a file and a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import search_of_the_day as tool

DAY = ["--day", "20260131", "--within", "1", "--beyond", "0"]


def test_seeds_of_the_day_are_printed_and_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert tool.seeds_of("20260131", 5) == "20260131000..20260131004"
    assert tool.main([*DAY, "--failures", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "--worlds within --seeds 20260131000..20260131000" in told
    assert "1 worlds" in told and "warning" not in told


@pytest.mark.parametrize(("words", "code", "told"), [(["--warn"], 0, "warning: "), ([], 1, "failed: ")])
def test_a_world_that_fails_is_a_scenario_and_a_warning(
    words: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(command: list[str]) -> int:
        folder = Path(command[command.index("--failures") + 1])
        folder.mkdir(parents=True)
        (folder / "within-20260131000.toml").touch()
        return 1

    monkeypatch.setattr(tool, "omen", fail)
    assert tool.main([*DAY, *words, "--failures", str(tmp_path)]) == code
    path = tmp_path / "20260131" / "within-20260131000.toml"
    assert f"{told}a world of 20260131 fails, its scenario: {path}" in capsys.readouterr().out


def test_a_search_that_does_not_run_is_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "omen", lambda _: 1)
    with pytest.raises(SystemExit) as ended:
        tool.main([*DAY, "--warn", "--failures", str(tmp_path)])
    assert ended.value.code == 1, "no scenario was written: it is not a world that failed"

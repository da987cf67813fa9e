"""Who watches a sweep is told how far it is and how long it will still take."""

from __future__ import annotations

import io
import re
import sys

import pytest

from omen.cli import progress as telling
from omen.cli.progress import duration, sweeping
from omen.sweep.runner import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    with sweeping("sweeping g") as tell:
        tell(Progress(1, 0, 2000, 0, None))
        tell(Progress(1500, 2, 2000, 40, 720.0))
    seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    shown = [line.strip() for line in re.split(r"[\r\n]+", seen) if line.strip()]
    assert re.fullmatch(r"sweeping g ━+ +1/2000 cells", shown[0])
    assert re.fullmatch(r"sweeping g ━+[╸╺]?━* 1500/2000 cells \(40 were there\), 2 failed, 12 min left", shown[-1])
    assert screen.getvalue().rstrip().endswith("\x1b[2K"), "the line is wiped off"


def test_a_log_has_a_line_a_minute(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr(telling.time, "monotonic", lambda: now[0])
    with sweeping("sweeping g") as tell:
        for second in range(0, 150, 10):
            now[0] = float(second)
            tell(Progress(second, 0, 150, 0, 150.0 - second))
    assert capsys.readouterr().err.splitlines() == [
        "sweeping g: 60 of 150 cells, 2 min left",
        "sweeping g: 120 of 150 cells, 30 s left",
    ]


@pytest.mark.parametrize(("seconds", "words"), [(40, "40 s"), (720, "12 min"), (12_600, "3.5 h")])
def test_times_are_told_as_people_read_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words

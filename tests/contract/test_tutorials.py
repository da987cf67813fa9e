"""The walks in docs/tutorials that need no live node: each command prints what the page shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from documented import ROOT, commands
from omen.cli.main import main

TIMES = re.compile(r"\d+\.\d+ s$", re.MULTILINE)


def walk(page: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Runs the commands of a page here, one after the other; how many there were."""
    steps = commands(page)
    for command in steps:
        assert main(command.arguments) == 0, command
        printed = capsys.readouterr().out
        assert TIMES.sub("T", printed.strip()) == TIMES.sub("T", command.printed.strip()), command
    return len(steps)


def test_a_fleets_table_becomes_bridges_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    assert walk("docs/tutorials/fleet.md", capsys) == 5
    brokers = {row.split(",")[0] for row in Path("examples/fleet/nodes.csv").read_text().splitlines()[1:]}
    assert {path.stem for path in Path("bridges").glob("*.conf")} == brokers
    assert Path("overlay.svg").read_text() == (ROOT / "docs/tutorials/fleet.svg").read_text()
    steps = [line for line in Path("plan.txt").read_text().splitlines() if re.match(r"  \d+\. (make|drop) ", line)]
    assert len(steps) == 3 + 15
    again = commands("docs/tutorials/fleet.md")[3]
    assert main(again.arguments) == 0
    assert not re.search(r"changed: .*-", capsys.readouterr().out), "the second export names no broker"

"""The walks in docs/tutorials that need no live node: each command prints what the page shows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from documented import ROOT, commands
from omen.cli.main import main

TIMES = re.compile(r"\d+\.\d+ s$|^seconds .*$", re.MULTILINE)
DATA = Path(os.environ.get("OMEN_DATA", ROOT.parent / "shared" / "data"))
FRIENDS = "facebook_combined.txt.gz"


def walk(page: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Runs the commands of a page here, one after the other; how many there were."""
    steps = commands(page)
    for command in steps:
        assert main(command.arguments) == 0, command
        printed = capsys.readouterr().out
        if command.printed.strip():
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


@pytest.mark.skipif(not (DATA / FRIENDS).is_file(), reason=f"{FRIENDS} is not there: OMEN_DATA names its folder")
def test_a_sweep_on_a_real_graph_ends_in_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    shutil.copy(DATA / FRIENDS, FRIENDS)
    assert walk("docs/tutorials/sweep.md", capsys) == 4
    told = (ROOT / "docs/tutorials/sweep.md").read_text()
    most = {row.split(",")[1].strip('"'): row.split(",")[3] for row in rows_of("most-links") if ",200," in row}
    hops = {row.split(",")[1].strip('"'): row.split(",")[3] for row in rows_of("hops") if ",200," in row}
    assert f"a user with {most['gm']} links, and a ring for each topic one with {most['cycle-pt']}" in told
    assert f"of `low-oda` has {most['low-oda']}" in told
    assert f"up to {hops['low-oda']} hops apart, instead of {hops['gm']} and {hops['cycle-pt']}" in told


def rows_of(figure: str) -> list[str]:
    return Path(f"s/figures/{figure}.csv").read_text().splitlines()[1:]

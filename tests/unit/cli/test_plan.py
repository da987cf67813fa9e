"""omen plan as an operator calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run, run_json


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w").mkdir()
    Path("w/interests.csv").write_text("node,topic\na,x\nb,x\nc,x\nd,x\n")
    Path("a.csv").write_text("u,v\na,b\nb,c\nc,d\n")
    Path("b.csv").write_text("u,v\na,b\na,c\na,d\n")
    return tmp_path


COMMAND = "plan --workload w --from a.csv --to b.csv"


def test_text_for_people(fleet, capsys):
    assert run(COMMAND) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("batch 1: make 2 links, in any order\n  1. make a - c\n  2. make a - d\nbatch 2: drop 2")
    assert "topic-connected on the way  yes" in printed
    assert run(COMMAND, "--out", "p.txt") == 0
    assert (fleet / "p.txt").read_text().splitlines() == printed.splitlines()[:6]


def test_a_table(fleet, capsys):
    assert run(COMMAND, "--out", "p.csv") == 0
    assert (fleet / "p.csv").read_text().splitlines()[:3] == [
        '"step","batch","action","u","v"',
        '1,1,"make","a","c"',
        '2,1,"make","a","d"',
    ]


def test_json(fleet, capsys):
    told = run_json(capsys, COMMAND, "--out", "p.json")
    assert (told["make"], told["drop"], told["batches"], told["most_excess"]) == (2, 2, 2, 0)
    assert told["steps"][0] == {"step": 1, "batch": 1, "action": "make", "u": "a", "v": "c"}
    assert json.loads((fleet / "p.json").read_text())["steps"] == told["steps"]


def test_a_cap_exceeded_by_more_than_one_is_exit_code_1(fleet, capsys):
    Path("w/nodes.csv").write_text("node,max_links\na,1\n" + "b,\nc,\nd,\n")
    assert run(COMMAND, "--out", "p.csv") == 1
    streams = capsys.readouterr()
    assert "step 2: node a may have 1 links and has 3" in streams.out
    assert "nothing was written" in streams.err
    assert not (fleet / "p.csv").exists()
    assert run(COMMAND, "--out", "p.csv", "--best-effort") == 1
    assert (fleet / "p.csv").exists()


def test_the_same_overlay_is_an_empty_plan(fleet, capsys):
    assert run("plan --workload w --from a.csv --to a.csv --out p.csv") == 0
    assert (fleet / "p.csv").read_text() == '"step","batch","action","u","v"\n'


def test_a_target_that_is_split_is_refused(fleet, capsys):
    Path("b.csv").write_text("u,v\na,b\n")
    assert run(COMMAND) == 2
    assert "leaves topic 'x' split" in capsys.readouterr().err

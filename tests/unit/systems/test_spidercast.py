"""What SpiderCast and its rivals may not be told, and how the help describes what simulated systems may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import run
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.systems import SYSTEMS, design_overlay, find_system, resolve_settings

PAIR = Interests.from_pairs([("ann", "tea"), ("bob", "tea")])
NONSENSE = [
    ("spidercast", {"kg": 0}, "has no task that runs"),
    ("spidercast", {"kg": 0, "kr": 0}, "has no task that runs"),
    ("spidercast", {"view": 0}, "view must be above 0"),
    ("spidercast", {"adaptive": 1, "kr": 1}, "leave kr out"),
    ("spidercast", {"adaptive": 1, "kg": 0}, "kg must be 1 or more"),
    ("similarity", {"x": 0, "y": 0}, "links no nodes"),
    ("random", {"y": 0}, "from 1 to"),
]


@pytest.mark.parametrize(("algorithm", "options", "why"), NONSENSE, ids=str)
def test_a_design_that_would_link_nobody_or_contradicts_itself_is_refused(
    algorithm: str, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        design_overlay(PAIR, algorithm, **options)


@pytest.mark.parametrize(
    "options", [{"kg": 0, "kr": 0}, {"view": 0}, {"adaptive": 1, "kr": 1}, {"adaptive": "1", "kr": "1"}], ids=str
)
def test_so_is_a_system(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        resolve_settings(find_system("spidercast"), options)


@pytest.mark.parametrize("words", ["--kg 0 --kr 0", "--view 0", "--adaptive 1 --kr 2"])
def test_both_say_so_in_one_line(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("workload synth --nodes 20 --topics 5 --sizes uniform:1:3 --out", tmp_path / "w") == 0
    assert run("churn random --rounds 2 --workload", tmp_path / "w", "--out", tmp_path / "c.parquet") == 0
    capsys.readouterr()
    replay = f"replay --system spidercast {words} --churn {tmp_path / 'c.parquet'} --out {tmp_path / 'r'}"
    for command in (f"design --algorithm spidercast {words}", replay):
        assert run(f"{command} --workload", tmp_path / "w") == 2
        told = capsys.readouterr()
        assert told.err.startswith("omen: ") and told.err.count("\n") == 1
        assert not told.out


@pytest.mark.parametrize("system", ["omen", "omen-g", "spidercast"])
def test_the_help_of_simulated_systems_is_theirs(system: str) -> None:
    options = {option.name: option for option in SYSTEMS[system].options}
    assert "everything random" in options["seed"].help
    assert ("gossip" in options["gap_rounds"].help) is system.startswith("omen")
    if "components" in options:
        assert "whole overlay" not in options["components"].help
        assert "near" not in options["components"].help

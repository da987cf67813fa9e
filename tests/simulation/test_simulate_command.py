"""omen simulate as a person types it: whose nodes, what belongs to which mode, what is said when something fails."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omen.cli.main import main
from omen.cli.simulate_search import SYSTEMS
from omen.sim.kinds import KINDS
from omen.sim.scenario import EventSpec, NodeSpec, OverlaySpec, Scenario
from omen.sim.search import Search, World
from omen.sim.shrinking import Shrunk
from omen.sim.writing import write_scenario

APART = Scenario(
    nodes={f"n{number}": NodeSpec(("t",)) for number in range(6)},
    overlay=OverlaySpec(links=()),
    events=(EventSpec(at=0.5, crash="n1"),),
)
"""No node is linked at first: OMen's nodes, which repair what is lost, stay apart; SpiderCast's find each other."""
FAILED = World(7, False, True, 1, 10, 0, 0.0, 1.0, 0.1, ("1.000 s, seed 7: not connected: t",))


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "split at first.toml"
    path.write_text("until_s = 2.0\n" + write_scenario(APART) + "\n[[expect]]\nby = 0.001\nconnected = true\n")
    return path


def test_the_help_names_all_systems(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(KINDS) == SYSTEMS
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    assert f"whose nodes: {', '.join(KINDS)} (omen)" in " ".join(capsys.readouterr().out.split())


def test_a_scenario_runs_the_nodes_that_were_asked_for(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(scenario), "--system", "spidercast", "--json"]) == 1
    told = capsys.readouterr()
    assert {"Connect", "ConnectOk", "Heartbeat"} <= json.loads(told.out)["messages"].keys()
    command = told.err.splitlines()[-1].removeprefix("replay: ")
    assert command == f"omen simulate '{scenario}' --seed 0 --system spidercast --trace"
    assert main(shlex.split(command)[1:]) == 1
    told = capsys.readouterr()
    assert "ConnectOk" in told.out
    assert told.err.splitlines()[-1].removeprefix("replay: ") == command


def test_a_system_there_is_not_is_one_line(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([str(scenario)], ["--search"]):
        assert main(["simulate", *words, "--system", "spidrcast"]) == 2
        told = capsys.readouterr()
        assert "did you mean 'spidercast'?" in told.err
        assert told.err.count("\n") == 1


@pytest.mark.parametrize("words", ["--seed 5", "--seed 0", "--trace", "--trace-all"])
def test_a_search_refuses_what_is_for_a_scenario(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--search", *words.split()]) == 2
    told = capsys.readouterr().err
    assert told == f"omen: {words.split()[0]}: only for the file of a scenario, not for --search\n"


@pytest.mark.parametrize(
    "words",
    [
        *("--seeds 0..3", "--worlds within", "--without redo_unconfirmed", "--workers 1"),
        *("--keep x", "--stop", "--failures d"),
    ],
)
def test_a_scenario_refuses_what_is_for_a_search(
    words: str, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(scenario), *words.split()]) == 2
    told = capsys.readouterr().err
    assert told == f"omen: {words.split()[0]}: only for --search, not for the file of a scenario\n"


def test_a_failing_world_is_told_at_once_and_its_shrunk_scenario_runs_the_same_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said_before_shrinking: list[str] = []

    def shrink(search: Search, world: World) -> Shrunk:
        said_before_shrinking.append(capsys.readouterr().err)
        return Shrunk(APART, 3, 1)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("omen.sim.search.run_worlds", lambda *_: iter([FAILED]))
    monkeypatch.setattr("omen.sim.search_report.shrink_world", shrink)
    words = ["simulate", "--search", "--worlds", "plain", "--system", "spidercast", "--without", "redo_unconfirmed"]
    assert main([*words, "--json"]) == 1
    again = "omen simulate --search --worlds plain --seeds 7..7 --without redo_unconfirmed --system spidercast"
    assert said_before_shrinking == [f"world 7: {FAILED.complaints[0]}\nworld 7: run it again: {again}\n"]
    told = capsys.readouterr()
    (shrunk,) = json.loads(told.out)["shrunk"]
    small = "search-failures/spidercast-plain-without-redo-unconfirmed-7.toml"
    replay = f"omen simulate {small} --seed 3 --system spidercast --trace"
    assert (shrunk["again"], shrunk["replay"]) == (again, replay)
    assert f"world 7: replay: {replay}\n" in told.err
    assert main(shlex.split(replay)[1:]) == 0
    assert "ConnectOk" in capsys.readouterr().out


def test_what_takes_long_is_shown_but_not_among_the_lines_of_a_trace(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    @contextmanager
    def working(what: str) -> Iterator[None]:
        shown.append(what)
        yield

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("omen.cli.simulate.working", working)
    monkeypatch.setattr("omen.cli.simulate_search.working", working)
    monkeypatch.setattr("omen.sim.search.run_worlds", lambda *_: iter([FAILED]))
    monkeypatch.setattr("omen.sim.search_report.shrink_world", lambda *_: Shrunk(APART, 3, 1))
    main(["simulate", str(scenario), "--trace"])
    assert not shown
    main(["simulate", str(scenario)])
    main(["simulate", "--search"])
    assert shown == [f"running {scenario}", "shrinking world 7"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_search_that_is_interrupted_says_how_it_goes_on(
    keep: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_worlds(*_: Any) -> Iterator[World]:
        yield FAILED
        yield FAILED
        raise KeyboardInterrupt

    monkeypatch.setattr("omen.sim.search.run_worlds", two_worlds)
    path = tmp_path / "kept.jsonl"
    assert main(["simulate", "--search", *(["--keep", str(path)] if keep else [])]) == 130
    said = f"stopped; what came of 2 worlds is in {path}: the same command goes on from there"
    assert (capsys.readouterr().err.splitlines()[-1] == said) is keep

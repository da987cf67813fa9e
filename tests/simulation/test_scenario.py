"""Scenario files: what they may say, how they run, what a failure prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.errors import InvalidInput
from omen.sim.reading import parse_scenario, read_scenario
from omen.sim.running import Run, run_scenario

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))
SMALL = """
[drawn]
nodes = 12
topics = 5
sizes = "uniform:1:3"
[config]
resilience = 2
coverage = 1
gossip_ms = 200.0
"""


def with_events(*events: str) -> str:
    return SMALL + "".join(f"[[events]]\n{event}\n" for event in events)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_of_the_project_goes_as_it_should(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(path), "--seed", "11", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["went_well"]
    assert result["messages"].keys() == result["bytes"].keys()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = [", "Invalid value"),
        ("nodez = 1", "unknown field `nodez`"),
        ("name = 'nobody'", "give either [nodes] or [drawn]"),
        (SMALL + "nodes = 3", "unknown field `nodes` - at `config`"),
        (SMALL.replace("coverage = 1", "coverage = -1"), "config.coverage is -1: must be 0 or more"),
        (SMALL.replace("coverage = 1", "coverage = 'many'"), "got `str` - at `config.coverage`"),
        (SMALL.replace("coverage = 1", "backups = 'best'"), "must be one of pd-weight, pd-cover"),
        (SMALL + "[network]\nloss = 1.5", "network.loss is 1.5"),
        (with_events("at = 1.0"), "event 1: give exactly one of crash, leave"),
        (with_events("at = 1.0\ncrash = 'n1'\nleave = 'n2'"), "not crash and leave"),
        (with_events("crash = 'n1'"), "give either `at`, in seconds, or `on`"),
        (with_events("at = 1.0\ncrash = 'n99'"), "event 1: there is no node 'n99'"),
        (with_events("on = 'sleeping'\nof = 'n1'\ncrash = 'n2'"), "`on` must be one of waiting, gathering"),
        (with_events("at = 1.0\njoin = 'x'"), "`join` needs `topics`"),
        (with_events("at = -1.0\ncrash = 'n1'"), "`at` is -1.0"),
        (with_events("at = 1.0\nscramble = 2.0"), "must be a share"),
        (SMALL + "[[expect]]\nby = 1.0\nlinks = [['n1', 'y']]", "there is no node 'y'"),
        ("until_s = 3.0\n" + with_events("burst = 1\nat = 1.0\ncrash = 'n1'"), "leave `until_s` out"),
    ],
)
def test_what_makes_no_sense_is_refused_with_where_and_what(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_scenario(text, "some.toml")
    assert str(refused.value).startswith("some.toml: ")
    assert complaint in str(refused.value)


def test_two_nodes_cannot_stand_on_one_place() -> None:
    scenario = parse_scenario("[nodes]\na = { place = 1, topics = ['t'] }\nb = { place = 1, topics = ['t'] }")
    with pytest.raises(InvalidInput, match="'b' stands on the ring where 'a' does"):
        Run(scenario)


def test_an_unknown_algorithm_is_refused() -> None:
    scenario = parse_scenario(SMALL + "[overlay]\nalgorithm = 'best'")
    with pytest.raises(InvalidInput, match="there is no algorithm 'best'"):
        run_scenario(scenario)


def test_a_missing_file_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["simulate", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_failure_prints_what_when_and_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "scrambled.toml"
    path.write_text("until_s = 6.0\n" + with_events("at = 1.0\nscramble = 0.9") + "[bounds]\nconnected_s = 2.0\n")
    assert main(["simulate", str(path), "--seed", "4"]) == 1
    printed = capsys.readouterr().err
    assert "seed 4: not connected" in printed
    assert f"replay: omen simulate {path} --seed 4 --trace" in printed


def test_expectations_that_are_not_met_are_told(tmp_path: Path) -> None:
    text = with_events("at = 1.0\ncrash = 'n1'") + "[[expect]]\nby = 0.9\nconnected = false\n"
    text += "[[expect]]\nby = 8.0\nrepair = { of = 'n1', shadow = ['n2'], links = [['n2', 'n3']] }\n"
    failures = run_scenario(parse_scenario(text), 1).failures
    assert failures[0] == "0.900 s: all topics connected, expected a split"
    assert any("the shadow set was" in failure for failure in failures)


def test_a_name_rejoins_in_a_later_incarnation() -> None:
    text = with_events("at = 1.0\ncrash = 'n4'", "burst = 1\nat = 0.5\njoin = 'n4'\ntopics = ['t1', 't2']")
    run = Run(parse_scenario(text), 2)
    assert run.go().complaints() == []
    assert run.population.cores[run.population.place("n4")].ref.incarnation == 2


def test_a_pause_shorter_than_patience_changes_nothing() -> None:
    outcome = run_scenario(parse_scenario(with_events("at = 1.0\npause = 'n3'", "at = 1.1\nresume = 'n3'")), 2)
    assert outcome.complaints() == []
    assert not outcome.repairs


def test_a_coordinator_that_is_paused_while_it_mends_catches_up() -> None:
    step = "on = 'asking'\nof = 'n3'\n"
    events = (
        "at = 1.0\ncrash = 'n3'",
        step + "pause = 'coordinator'",
        step + "after_ms = 4000.0\nresume = 'coordinator'",
    )
    outcome = run_scenario(parse_scenario(with_events(*events)), 2)
    assert outcome.complaints() == []
    assert {repair.node for repair in outcome.repairs} == {"n3"}


def test_a_short_cut_that_no_node_notices_heals_by_itself() -> None:
    text = with_events("at = 1.0\npartition = [['n1', 'n2'], ['n3']]", "at = 1.01\nheal = true")
    assert run_scenario(parse_scenario(text), 3).complaints() == []


def test_two_runs_of_one_seed_have_one_fingerprint_and_two_seeds_have_two() -> None:
    scenario = parse_scenario(with_events("at = 1.0\ncrash = 'n1'"))
    prints = [Run(scenario, seed, fingerprint=True).go().fingerprint for seed in (1, 1, 2)]
    assert prints[0] == prints[1] != prints[2]


def test_the_example_in_the_manual_can_be_read_and_goes_well() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    text = manual.split("```toml\n")[1].split("```")[0]
    assert run_scenario(parse_scenario(text)).complaints() == []


def test_scenarios_are_read_from_any_path_like(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SMALL)
    assert read_scenario(str(tmp_path / "s.toml")) == read_scenario(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[config]\nmend_rho = 4.0\n", "[config]\nrepair_rho = 4.0\n"),
        ("[bounds]\nwhole_s = 2.0\n", "[bounds]\nconnected_s = 2.0\n"),
        ("[[expect]]\nby = 0.9\nwhole = true\n", "[[expect]]\nby = 0.9\nconnected = true\n"),
        ("[[expect]]\nby = 0.9\nbroken = ['t0']\n", "[[expect]]\nby = 0.9\nsplit = ['t0']\n"),
    ],
)
def test_keys_of_version_0_1_0_are_still_read(old: str, new: str) -> None:
    nodes = "[drawn]\nnodes = 4\ntopics = 2\n"
    with pytest.warns(DeprecationWarning, match="is now"):
        scenario = parse_scenario(nodes + old)
    assert scenario == parse_scenario(nodes + new)
    scenario.protocol_config()

"""Worlds under load: nothing is passed over in silence, and it is the end of holes that sees to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.cli.main import main
from omen.sim.load import LoadedRun
from omen.sim.reading import read_scenario
from omen.sim.search import Search, run_world
from omen.sim.shrinking import shrink
from omen.sim.writing import write_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
WORLDS = (0, 4, 13, 24, 27, 829, 81777)
"""With crashes, joins, slow links and windows that cover less than a repair. Two of them need that holes end; in the
last a newcomer told a gap while it fetched what was before its time, kept some of it twice, and ended by that."""
CRAMPED_WORLDS = (50, 61, 312)
"""In two, a newcomer heard of a stream from a node whose windows were too full to find out when it began, and passed
over what was published before that. In the last, a publisher had begun a new run before a node that was cut off heard
of the first."""
WITH_A_SLOW_LINK = 1003


@pytest.mark.parametrize("seed", WORLDS)
def test_in_a_busy_world_everything_is_delivered_or_told(seed: int) -> None:
    world = run_world(Search("busy"), seed)
    assert world.went_well, "\n".join(
        [*world.complaints, f"replay: omen simulate --search --worlds busy --seeds {seed}..{seed}"]
    )


@pytest.mark.parametrize("seed", CRAMPED_WORLDS)
def test_where_windows_are_shorter_than_a_repair_everything_missing_is_told(seed: int) -> None:
    world = run_world(Search("cramped"), seed)
    assert world.went_well, "\n".join(
        [*world.complaints, f"replay: omen simulate --search --worlds cramped --seeds {seed}..{seed}"]
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_gap_is_told_after_a_silence_longer_than_publishers_are_remembered(seed: int) -> None:
    run = LoadedRun(read_scenario(SCENARIOS / "gap-after-a-long-silence.toml"), seed)
    assert run.go().complaints() == []
    assert run.gaps_missing > 0


def test_the_search_finds_a_silent_hole_where_holes_do_not_end() -> None:
    """World 0 was one when this was written."""
    for seed in range(40):
        world = run_world(Search("busy", ("holes_end",)), seed)
        if not world.went_well:
            assert any(what.startswith(("lost: ", "promise broken: ")) for what in world.complaints)
            return
    raise AssertionError("no world of 40 needs that holes end")


def test_a_busy_world_fails_again_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "busy.toml"
    path.write_text(write_scenario(Search("busy", ("holes_end",)).scenario(0)))
    assert main(["simulate", str(path)]) == 1
    assert "lost: n1/1 on t0" in capsys.readouterr().err


def test_a_busy_world_is_shrunk_with_its_load() -> None:
    """Nodes, the slow links between them and half of the time can go."""
    scenario = Search("busy").scenario(WITH_A_SLOW_LINK)
    assert scenario.load is not None and scenario.load.links
    small = shrink(scenario, 0, lambda candidate, seed: True, runs_at_most=100).scenario
    assert small.load is not None
    assert len(small.nodes) == 2 and small.load.seconds < 0.1
    named = {*small.load.publishers, *(name for link in small.load.links for name in link.between)}
    assert named <= small.nodes.keys()

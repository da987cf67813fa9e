"""Search guided by coverage: rare combinations are noticed, worlds are changed within bounds, faults are found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from commands import run, run_json
from omen.protocol.events import Received, RepairFinished, RepairStage, RepairStageEntered
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.messages.overlay import LinkSeen
from omen.sim.drawing import draw_within
from omen.sim.guided import Coverage, GuidedSearch, all_combinations
from omen.sim.guided_changes import CHANGES, change_scenario
from omen.sim.reading import parse_scenario
from omen.sim.running import Run
from omen.sim.scenario import STAGES
from omen.sim.search import Search
from omen.sim.writing import write_scenario

EVENT = EventId(7, 1, EventKind.LEAVE)


def test_a_message_counts_while_its_sender_or_receiver_repairs() -> None:
    coverage, seen = Coverage(), Received(5, LinkSeen())
    coverage.note_input(0, 4, seen)
    assert not coverage.reached
    coverage.hear(5, RepairStageEntered(EVENT, RepairStage.LINKING, ()), 1)
    coverage.note_input(1, 4, seen)
    assert coverage.reached == {("linking", "LinkSeen", "leave")}
    coverage.hear(5, RepairFinished(EVENT, (), 0, (EVENT,)), 2)
    coverage.hear(4, RepairStageEntered(EVENT, RepairStage.ASKING, ()), 3)
    coverage.note_input(3, 4, seen)
    assert ("asking", "LinkSeen", "leave") in coverage.reached
    assert coverage.reached <= set(all_combinations())


def test_a_changed_world_makes_sense_and_has_no_more_in_it() -> None:
    random = Random(1)
    stages = set()
    for seed in range(60):
        before = draw_within(seed)
        changed = before
        for _ in range(3):
            changed = change_scenario(changed, draw_within(seed + 1), random)
        assert parse_scenario(write_scenario(changed)) == changed
        bursts = Counter(event.burst for event in before.events)
        assert Counter(event.burst for event in changed.events) == bursts
        assert changed.config.resilience == before.config.resilience
        stages |= {event.on for event in changed.events if event.on is not None}
    assert stages == set(STAGES), "checking among them, which is not drawn"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_changes_something(change: object) -> None:
    random = Random(3)
    assert callable(change)
    worlds = [draw_within(seed) for seed in range(20)]
    assert any(change(world, worlds[0], random) != world for world in worlds)


def test_the_same_seeds_give_the_same_worlds_and_others_are_changed_ones() -> None:
    def told() -> list[tuple[int, bool, int]]:
        search = GuidedSearch(Search("within"), range(600, 606))
        return [(world.seed, world.fresh, world.steps) for world in search.worlds()]

    first = told()
    assert first == told()
    assert [fresh for _, fresh, _ in first] == [True, False, False, True, False, False]


def test_a_missing_remedy_is_found_and_replays(tmp_path: Path) -> None:
    search = GuidedSearch(Search("within", ("redo_unconfirmed",)), range(7000000, 7000010))
    world = next(world for world in search.worlds() if world.split)
    again = parse_scenario(write_scenario(world.scenario))
    assert Run(again, world.seed).go().split


def test_what_was_never_reached_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = run_json(capsys, "simulate --search --guided --seeds 600..602")
    assert told["worlds"] == 3 and told["changed"] == 2 and told["failures"] == 0
    never = sum(len(messages) for messages in told["never_reached"].values())
    assert told["reached"] + never == len(all_combinations())
    assert "ShadowReply" not in told["never_reached"].get("asking, leave", ())


def test_guided_worlds_are_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate --search --guided --workers 2") == 2
    assert "--guided" in capsys.readouterr().err

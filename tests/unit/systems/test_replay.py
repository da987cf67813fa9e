"""Replaying a trace: what systems are given, what is told of it, and that a killed replay ends as one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omen.churn import Crash, Event, Join, Leave, Resubscribe, Trace
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay
from omen.systems import SYSTEMS, design_overlay
from omen.systems.checkpoint import Checkpoint
from omen.systems.replay import NO_COUNT, Replayed, Supervision, find_impossible, replay
from omen.systems.summary import summarise
from omen.workloads import generate_interests, lifetimes, random_rounds

WORKLOAD = generate_interests(60, 15, "zipf:1", "uniform:1:6", seed=4)
TRACE = random_rounds(WORKLOAD, 80, 0.5, 4)
TIMES = ("repair_s", "handled_s")


def same_but_for_times(one: Replayed, other: Replayed) -> bool:
    return (
        one.events == other.events
        and one.interests == other.interests
        and one.overlay == other.overlay
        and (one.judged, one.splits, one.skipped) == (other.judged, other.splits, other.skipped)
        and all(np.array_equal(one.columns[name], other.columns[name]) for name in one.columns if name not in TIMES)
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_stays_topic_connected_through_a_trace(system: str) -> None:
    done = replay(WORKLOAD, TRACE, system, verify="every")
    assert (done.judged, done.splits, done.topic_connected) == (80, (), True)
    assert check_overlay(done.interests, done.overlay).holds
    assert done.columns["max_degree"][-1] == done.overlay.degrees.max()
    assert done.columns["avg_degree"][-1] == pytest.approx(done.overlay.degrees.mean())
    changed = int((done.columns["edges_added"] - done.columns["edges_removed"]).sum())
    assert changed == done.overlay.link_count - design_overlay(WORKLOAD, "low-oda").link_count


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_same_replay_again_is_the_same_but_for_times(system: str) -> None:
    trace = lifetimes(WORKLOAD, 50, 20, 60, 3)
    assert same_but_for_times(replay(WORKLOAD, trace, system), replay(WORKLOAD, trace, system))


def test_events_of_one_instant_are_handled_together_and_told_with_the_last() -> None:
    trace = Trace((Crash(1.0, 3), Crash(1.0, 4), Join(1.0, 99, (0, 1)), Leave(2.0, 99)))
    done = replay(WORKLOAD, trace, "shadow", verify="every")
    assert done.judged == 2
    assert done.columns["edges_added"][:2].tolist() == [NO_COUNT, NO_COUNT]
    assert np.isnan(done.columns["repair_s"][:2]).all()
    assert done.columns["max_degree"].min() > 0
    assert summarise(done)["repairs"]["leave"]["repairs"] == 1


def test_a_node_whose_first_event_is_a_join_starts_absent() -> None:
    done = replay(WORKLOAD, Trace((Join(1.0, 5), Leave(2.0, 5))), "naive")
    assert done.columns["edges_removed"].tolist() == [0, done.columns["edges_added"][0]]
    assert 5 not in done.interests.nodes
    assert done.interests.node_count == 59


def test_a_newcomer_without_a_list_has_that_of_the_workload_again() -> None:
    trace = Trace((Resubscribe(1.0, 5, (0,)), Leave(2.0, 5), Join(3.0, 5)))
    assert replay(WORKLOAD, trace, "shadow").interests == WORKLOAD


def test_a_replay_starts_from_the_overlay_given() -> None:
    ring = design_overlay(WORKLOAD, "ring-pt")
    done = replay(WORKLOAD, Trace(()), "shadow", ring, verify="every")
    assert done.overlay == ring
    assert done.topic_connected


def test_an_overlay_that_is_not_topic_connected_is_refused() -> None:
    nothing = Overlay(WORKLOAD.nodes, np.empty(0, np.int32), np.empty(0, np.int32))
    with pytest.raises(InvalidInput, match="does not connect topic 0: a replay starts"):
        replay(WORKLOAD, TRACE, "shadow", nothing)
    line = Interests.from_pairs([("a", "t"), ("b", "t"), ("c", "t")])
    path = Overlay.from_codes(line.nodes, np.array([0, 1]), np.array([1, 2]))
    with pytest.raises(InvalidInput, match="without the 1 nodes that start absent"):
        replay(line, Trace((Join(1.0, "b"),)), "shadow", path)


IMPOSSIBLE: dict[str, tuple[tuple[Event, ...], int, str]] = {
    "an unknown node leaves": ((Leave(1.0, 3), Leave(2.0, 1234)), 1, "node 1234 leaves but is unknown"),
    "a node that is gone crashes": ((Leave(1.0, 3), Crash(2.0, 3)), 1, "node 3 crashes but is not present"),
    "a present node joins": ((Resubscribe(1.0, 3, ()), Join(2.0, 3)), 1, "node 3 joins but is present already"),
    "a gone node resubscribes": ((Leave(1.0, 3), Resubscribe(2.0, 3, (1,))), 1, "resubscribes but is not present"),
    "a new node joins without topics": ((Join(1.0, 77),), 0, "node 77 joins without topics"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_event_is_told_before_anything_is_done(case: str) -> None:
    events, position, words = IMPOSSIBLE[case]
    with pytest.raises(InvalidInput, match=words) as told:
        replay(
            WORKLOAD, Trace(events), "shadow", supervision=Supervision(where=lambda place: f"c.csv, row {place + 1}")
        )
    assert str(told.value).startswith(f"c.csv, row {position + 1}: ")


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_events_are_skipped_and_counted_on_request(case: str) -> None:
    events, position, _ = IMPOSSIBLE[case]
    done = replay(WORKLOAD, Trace(events), "shadow", verify="every", supervision=Supervision(skip_impossible=True))
    assert sum(done.skipped.values()) == 1
    assert done.positions == tuple(place for place in range(len(events)) if place != position)
    assert done.topic_connected


def test_what_an_impossible_event_would_have_done_is_not_counted_on() -> None:
    trace = Trace((Join(1.0, 77), Leave(2.0, 77), Join(3.0, 77, (1,)), Leave(4.0, 77)))
    assert [one.position for one in find_impossible(WORKLOAD, trace)] == [0, 1]


def test_an_unknown_system_or_option_is_told() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'shadow'"):
        replay(WORKLOAD, TRACE, "shadows")
    with pytest.raises(InvalidInput, match="naive has no option 'lambda'"):
        replay(WORKLOAD, TRACE, "naive", lambda_=3)
    with pytest.raises(InvalidInput, match="verify must be one of every, end, off"):
        replay(WORKLOAD, TRACE, verify="never")  # type: ignore[arg-type]


class Killed(Exception):
    pass


class AlwaysDue(Checkpoint):
    due = True  # type: ignore[assignment]


def resuming(notes: Checkpoint) -> Supervision:
    """Goes on from what was noted, and notes nothing itself."""
    return Supervision(checkpoint=Checkpoint(notes.path, 1e9))


def die_at(number: int) -> Callable[[int], None]:
    def die(done: int) -> None:
        if done == number:
            raise Killed

    return die


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_killed_replay_goes_on_and_ends_as_if_it_had_not_been(system: str, labels: str, tmp_path: Path) -> None:
    workload = WORKLOAD
    if labels == "text":
        workload = Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in WORKLOAD.pairs()])
    trace = random_rounds(workload, 60, 0.5, 9)
    whole = replay(workload, trace, system, verify="every")
    notes = AlwaysDue(tmp_path / "r.checkpoint", 0.0)
    for number in (20, 45):
        with pytest.raises(Killed):
            replay(
                workload,
                trace,
                system,
                verify="every",
                supervision=Supervision(checkpoint=notes, progress=die_at(number)),
            )
    resumed = replay(workload, trace, system, verify="every", supervision=Supervision(checkpoint=notes))
    assert resumed.resumed_at == 44
    assert same_but_for_times(resumed, whole)


def test_a_checkpoint_of_another_user_is_not_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = AlwaysDue(tmp_path / "r.checkpoint", 0.0)
    with pytest.raises(Killed):
        replay(WORKLOAD, TRACE, "shadow", supervision=Supervision(checkpoint=notes, progress=die_at(30)))
    monkeypatch.setattr("os.getuid", lambda: -5)
    assert replay(WORKLOAD, TRACE, "shadow", supervision=resuming(notes)).resumed_at == 0


def test_a_simulated_system_ends_with_the_topics_by_their_own_names() -> None:
    workload = Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in WORKLOAD.pairs()])
    done = replay(workload, Trace(random_rounds(workload, 3, 0.5, 9).events), "omen", gap_rounds=0)
    assert set(done.interests.topics.tolist()) <= set(workload.topics.tolist())


def test_a_killed_replay_that_rebalances_keeps_its_budget(tmp_path: Path) -> None:
    whole = replay(WORKLOAD, TRACE, "shadow", rebalance=3)
    notes = AlwaysDue(tmp_path / "r.checkpoint", 0.0)
    with pytest.raises(Killed):
        replay(WORKLOAD, TRACE, "shadow", supervision=Supervision(checkpoint=notes, progress=die_at(40)), rebalance=3)
    assert same_but_for_times(
        replay(WORKLOAD, TRACE, "shadow", supervision=Supervision(checkpoint=notes), rebalance=3), whole
    )


def test_a_checkpoint_of_another_replay_or_a_damaged_one_is_not_gone_on_from(tmp_path: Path) -> None:
    notes = AlwaysDue(tmp_path / "r.checkpoint", 0.0)
    with pytest.raises(Killed):
        replay(WORKLOAD, TRACE, "shadow", supervision=Supervision(checkpoint=notes, progress=die_at(30)))
    others = (
        {"system": "naive"},
        {"system": "shadow", "lambda_": 2},
        {"system": "shadow", "verify": "off"},
        {"system": "shadow", "overlay": design_overlay(WORKLOAD, "gm")},
    )
    kept = notes.path.read_bytes()
    for other in others:
        assert replay(WORKLOAD, TRACE, supervision=resuming(notes), **other).resumed_at == 0  # type: ignore[arg-type]
    assert replay(WORKLOAD, TRACE, "shadow", supervision=resuming(notes)).resumed_at == 29
    notes.path.write_bytes(kept[: len(kept) // 2])
    assert replay(WORKLOAD, TRACE, "shadow", supervision=resuming(notes)).resumed_at == 0


def test_the_judge_is_asked_as_often_as_told() -> None:
    assert [replay(WORKLOAD, TRACE, verify=verify).judged for verify in ("every", "end", "off")] == [80, 1, 0]
    assert replay(WORKLOAD, TRACE, verify="off").topic_connected is None


def test_a_topic_left_split_is_found_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from omen.systems import system as systems

    def lose_links(self: systems.MaintainedSystem) -> tuple[Interests, Overlay]:
        interests = self.maintainer.interests()
        return interests, Overlay(interests.nodes, np.empty(0, np.int32), np.empty(0, np.int32))

    monkeypatch.setattr(systems.MaintainedSystem, "snapshot", lose_links)
    done = replay(WORKLOAD, Trace((Leave(1.0, 3), Leave(2.0, 4))), verify="every")
    assert done.topic_connected is False
    assert [position for position, _ in done.splits] == [0, 1]


def test_what_supervision_holds_still_works_as_keywords_and_warns() -> None:
    events = (Leave(1.0, 3), Leave(2.0, 3))
    seen: list[int] = []
    with pytest.deprecated_call(match="skip_impossible, progress in supervision"):
        done = replay(WORKLOAD, Trace(events), "shadow", skip_impossible=True, progress=seen.append, rho=2.0)
    assert (seen, sum(done.skipped.values()), done.options["rho"]) == ([1], 1, 2.0)
    with pytest.deprecated_call(match="splits"):
        assert done.broken == ()

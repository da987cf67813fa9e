"""Churn made up: what it is made of, and that it depends on the seed alone."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from omen.churn import Crash, Join, Leave
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.systems.replay import find_impossible
from omen.workloads import Distribution, Popularity, Sizes, generate_interests, lifetimes, random_rounds

INFO = {"made": "synth", "topics": 30, "popularity": "zipf:1", "sizes": "uniform:2:6"}
SYNTHETIC = generate_interests(80, 30, "zipf:1", "uniform:2:6", seed=1)
DISTRIBUTION = Distribution(30, Popularity.parse("zipf:1"), Sizes.parse("uniform:2:6"))
FRIENDS = Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("new-1", "jazz")])


def test_every_round_is_possible_and_has_one_join_or_leave() -> None:
    trace = random_rounds(SYNTHETIC, 400, 0.5, 3, DISTRIBUTION)
    assert [event.time_s for event in trace] == [float(round_) for round_ in range(1, 401)]
    assert {type(event) for event in trace} == {Join, Leave}
    assert not find_impossible(SYNTHETIC, trace)


def test_the_share_of_joins_is_the_probability() -> None:
    for probability, rounds in ((0.0, 80), (0.2, 80), (0.5, 4000), (0.8, 4000), (1.0, 100)):
        joins = sum(isinstance(event, Join) for event in random_rounds(SYNTHETIC, rounds, probability, 5))
        assert abs(joins - probability * rounds) <= 4 * math.sqrt(rounds * probability * (1 - probability))


def test_where_nobody_is_left_a_round_is_a_join() -> None:
    trace = random_rounds(FRIENDS, 200, 0.1, 5)
    assert not find_impossible(FRIENDS, trace)
    assert sum(isinstance(event, Join) for event in trace) > 80


def test_newcomers_draw_from_the_recorded_distribution() -> None:
    joins = [e for e in random_rounds(SYNTHETIC, 4000, 1.0, 3, DISTRIBUTION) if isinstance(e, Join)]
    sizes = np.array([len(event.topics or ()) for event in joins])
    assert (sizes.min(), sizes.max()) == (2, 6)
    assert abs(sizes.mean() - 4) < 0.1
    counts = np.bincount([topic for event in joins for topic in event.topics or ()], minlength=30)
    larger = generate_interests(4000, 30, "zipf:1", "uniform:2:6", seed=9)
    expected = np.bincount(larger.node_topics, minlength=30)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())


def test_newcomers_copy_a_node_where_no_distribution_is_recorded() -> None:
    lists = {tuple(SYNTHETIC.topics[SYNTHETIC.topics_of(code)].tolist()) for code in range(SYNTHETIC.node_count)}
    joins = [event for event in random_rounds(SYNTHETIC, 100, 1.0, 3) if isinstance(event, Join)]
    assert {event.topics for event in joins} <= lists
    assert len({event.topics for event in joins}) > 20


def test_new_labels_clash_with_none() -> None:
    numbers = [event.node for event in random_rounds(SYNTHETIC, 5, 1.0)]
    assert numbers == [80, 81, 82, 83, 84]
    names = [event.node for event in random_rounds(FRIENDS, 3, 1.0)]
    assert names == ["new-2", "new-3", "new-4"]
    with pytest.raises(InvalidInput, match="64 bits"):
        random_rounds(Interests.from_pairs([(2**63 - 1, 1)]), 1, 1.0)


@pytest.mark.parametrize("distribution", [None, DISTRIBUTION])
def test_a_longer_trace_begins_with_the_shorter_one(distribution: Distribution | None) -> None:
    long, short = (random_rounds(SYNTHETIC, rounds, 0.5, 3, distribution) for rounds in (200, 50))
    assert long.events[:50] == short.events
    long, short = (lifetimes(SYNTHETIC, 60, 15, duration, 3, distribution) for duration in (300, 100))
    assert long.events[: len(short)] == short.events


def test_seeds_give_different_traces() -> None:
    assert random_rounds(SYNTHETIC, 50, 0.5, 1) != random_rounds(SYNTHETIC, 50, 0.5, 2)
    assert lifetimes(SYNTHETIC, 60, 15, 100, 1) != lifetimes(SYNTHETIC, 60, 15, 100, 2)


def test_the_trace_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from omen.workloads import *; i = generate_interests(40, 20, 'uniform', '4', 1);"
        "import hashlib; t = (random_rounds(i, 60, 0.5, 3), lifetimes(i, 60, 15, 100, 3));"
        "print(hashlib.sha256(repr(t).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(digests) == 1


def test_lives_are_exponential_and_possible() -> None:
    workload = generate_interests(200, 20, "uniform", "3", seed=2)
    trace = lifetimes(workload, 50.0, 10.0, 4000.0, 4)
    assert not find_impossible(workload, trace)
    assert not trace.absent_at_start()
    since = dict.fromkeys(workload.nodes.tolist(), 0.0)
    up, down = [], []
    for event in trace:
        (down if isinstance(event, Join) else up).append(event.time_s - since[event.node])
        since[event.node] = event.time_s
    assert abs(np.mean(up) - 50) < 2
    assert abs(np.mean(down) - 10) < 0.4
    assert abs(np.std(up) / np.mean(up) - 1) < 0.05


def test_a_node_crashes_or_leaves_and_returns_with_new_interests() -> None:
    trace = lifetimes(SYNTHETIC, 20, 5, 200, 4, DISTRIBUTION)
    assert {type(event) for event in trace} == {Crash, Join}
    assert {type(e) for e in lifetimes(SYNTHETIC, 20, 5, 200, 4, DISTRIBUTION, graceful=True)} == {Leave, Join}
    lists = [event.topics for event in trace if isinstance(event, Join) and event.node == 7]
    assert len(lists) > 2
    assert len(set(lists)) > 1


def test_a_replay_remembers_what_its_workload_was_drawn_from() -> None:
    assert Distribution.recorded(INFO) == DISTRIBUTION
    assert Distribution.recorded({"made": "replay", "workload": {"made": "mend", "workload": INFO}}) == DISTRIBUTION
    for info in ({}, {"made": "import"}, {"made": "replay", "workload": {}}, {"made": "synth"}):
        assert Distribution.recorded(info) is None


@pytest.mark.parametrize(
    ("word", "make"),
    [
        ("rounds", lambda: random_rounds(SYNTHETIC, -1)),
        ("probability", lambda: random_rounds(SYNTHETIC, 5, 1.5)),
        ("80 nodes", lambda: random_rounds(SYNTHETIC, 81, 0.0)),
        ("seed", lambda: random_rounds(SYNTHETIC, 5, 0.5, -1)),
        ("mean up time", lambda: lifetimes(SYNTHETIC, 0, 1, 1)),
        ("mean down time", lambda: lifetimes(SYNTHETIC, 1, math.inf, 1)),
        ("duration", lambda: lifetimes(SYNTHETIC, 1, 1, math.nan)),
        ("too many", lambda: lifetimes(SYNTHETIC, 1e-6, 1e-6, 1)),
    ],
)
def test_bad_parameters_are_told(word: str, make: object) -> None:
    with pytest.raises(InvalidInput, match=word):
        make()  # type: ignore[operator]

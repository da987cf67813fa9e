"""Churn made up: rounds of one join or leave each, and nodes that live and sleep for exponential times.

Every random word is keyed by (seed, what it is for, its number), so the same seed gives the same trace anywhere, and a
longer trace begins with the shorter one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.churn import Crash, Event, Join, Leave, Trace
from omen.errors import InvalidInput
from omen.interests import Interests, Label, label_keys
from omen.kernels.counter_random import mix, mix_array, uniform
from omen.workloads.specs import Popularity, Sizes
from omen.workloads.synthetic import generate_rows

_JOINS, _CHOICES, _INTERESTS, _LIVES = (np.uint64(stream) for stream in range(4))
_TO_UNIT = 2.0**-53
_LARGEST_LABEL = 2**63 - 1
_MOST_EVENTS = 50_000_000


def origin(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the workload was made that replays and repairs started from, by the workload.json of what came of them."""
    while info.get("made") != "synth" and isinstance(info.get("workload"), Mapping):
        info = info["workload"]
    return info


@dataclass(frozen=True)
class Distribution:
    """What the interests of a synthetic workload were drawn from."""

    topics: int
    popularity: Popularity
    sizes: Sizes

    @classmethod
    def recorded(cls, info: Mapping[str, Any]) -> Distribution | None:
        """As a workload.json tells it, that of a replay by what it started from; None where nothing fits is told."""
        info = origin(info)
        topics, popularity, sizes = (info.get(name) for name in ("topics", "popularity", "sizes"))
        if info.get("made") != "synth" or not isinstance(topics, int) or popularity is None or sizes is None:
            return None
        return cls(topics, Popularity.parse(str(popularity)), Sizes.parse(str(sizes)))


def random_rounds(
    interests: Interests,
    rounds: int,
    join_probability: float = 0.5,
    seed: int = 0,
    distribution: Distribution | None = None,
) -> Trace:
    """A join or a leave a round, a second apart (Chen, Jacobsen, Vitenberg, VI).

    A join brings a new node, with interests drawn from the distribution or, where there is none, those of a random
    node of the workload. A leave takes a random node of those present; where no node is left, the round is a join.
    """
    if rounds < 0:
        raise InvalidInput(f"the number of rounds must be at least 0, not {rounds}")
    if not 0.0 <= join_probability <= 1.0:
        raise InvalidInput(f"the join probability must lie in 0..1, not {join_probability}")
    if join_probability == 0.0 and rounds > interests.node_count:
        raise InvalidInput(
            f"{rounds} rounds without a join are more than the {interests.node_count} nodes that can leave"
        )
    seed_word = _seed_word(seed)
    joins = _units(seed_word, _JOINS, rounds) < join_probability
    choices = _units(seed_word, _CHOICES, rounds)
    present = interests.nodes.tolist()
    labels = _fresh_labels(interests)
    steps: list[tuple[bool, Label]] = []
    for is_join, choice in zip(joins.tolist(), choices.tolist(), strict=True):
        if is_join or not present:
            node = next(labels)
            present.append(node)
            steps.append((True, node))
        else:
            place = int(choice * len(present))
            present[place], present[-1] = present[-1], present[place]
            steps.append((False, present.pop()))
    wanted = iter(_draw_interests(interests, distribution, sum(is_join for is_join, _ in steps), seed_word))
    return Trace(
        tuple(
            Join(float(round_), node, next(wanted)) if is_join else Leave(float(round_), node)
            for round_, (is_join, node) in enumerate(steps, start=1)
        )
    )


def lifetimes(
    interests: Interests,
    mean_up: float,
    mean_down: float,
    duration: float,
    seed: int = 0,
    distribution: Distribution | None = None,
    graceful: bool = False,
) -> Trace:
    """Nodes up and down for exponential times of these means, in seconds (SpiderCast, 3.8).

    All are up at the start. A node crashes, or leaves if `graceful`, and joins again with new
    interests. Times are whole microseconds.
    """
    for value, what in ((mean_up, "mean up time"), (mean_down, "mean down time"), (duration, "duration")):
        if not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"the {what} must be a number of seconds above 0, not {value}")
    expected = interests.node_count * (2 * duration / (mean_up + mean_down) + 1)
    if expected > _MOST_EVENTS:
        raise InvalidInput(f"about {expected:.0f} events are too many: at most {_MOST_EVENTS} are made at once")
    seed_word = _seed_word(seed)
    lives = np.uint64(mix(seed_word, _LIVES, np.uint64(0)))
    moments: list[tuple[int, int, bool]] = []
    for code, key in enumerate(label_keys(interests.nodes).tolist()):
        moments.extend((moment, code, up) for moment, up in _life(lives, key, mean_up, mean_down, duration))
    moments.sort()
    wanted = iter(_draw_interests(interests, distribution, sum(up for _, _, up in moments), seed_word))
    nodes = interests.nodes.tolist()
    gone = Leave if graceful else Crash
    events: list[Event] = [
        Join(moment / 1e6, nodes[code], next(wanted)) if up else gone(moment / 1e6, nodes[code])
        for moment, code, up in moments
    ]
    return Trace(tuple(events))


def _life(seed: np.uint64, key: int, mean_up: float, mean_down: float, duration: float) -> Iterator[tuple[int, bool]]:
    """The microseconds at which a node goes (False) and comes back (True), up to the end."""
    moment, up, number = 0, True, 0
    while True:
        unit = uniform(seed, np.uint64(key), np.uint64(number))
        moment += max(1, round(-math.log1p(-unit) * (mean_up if up else mean_down) * 1e6))
        if moment > duration * 1e6:
            return
        up = not up
        number += 1
        yield moment, up


def _draw_interests(
    interests: Interests, distribution: Distribution | None, count: int, seed: np.uint64
) -> Sequence[tuple[Label, ...]]:
    """The topics of the first `count` nodes that come."""
    if count == 0:
        return []
    if distribution is None:
        return _copied_interests(interests, count, seed)
    drawn_from = int(mix(seed, _INTERESTS, np.uint64(0)))
    rows, topics = generate_rows(0, count, distribution.topics, distribution.popularity, distribution.sizes, drawn_from)
    ends = np.cumsum(np.bincount(rows, minlength=count)).tolist()
    listed = topics.tolist()
    return [tuple(listed[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def _copied_interests(interests: Interests, count: int, seed: np.uint64) -> list[tuple[Label, ...]]:
    if interests.node_count == 0:
        raise InvalidInput("the workload has no nodes whose interests a newcomer could copy")
    codes = (_units(seed, _INTERESTS, count) * interests.node_count).astype(np.int64).tolist()
    return [tuple(interests.topics[interests.topics_of(code)].tolist()) for code in codes]


def _fresh_labels(interests: Interests) -> Iterator[Label]:
    """Labels that no node of the workload has: the next numbers, or new-1, new-2 and so on."""
    if interests.nodes.dtype == object:
        known = set(interests.nodes.tolist())
        number = 0
        while True:
            number += 1
            if f"new-{number}" not in known:
                yield f"new-{number}"
    label = int(interests.nodes[-1]) if interests.node_count else -1
    while True:
        label += 1
        if label > _LARGEST_LABEL:
            raise InvalidInput(f"no whole number of 64 bits is left for a node after {label - 1}: use text labels")
        yield label


def _seed_word(seed: int) -> np.uint64:
    if not 0 <= seed < 2**64:
        raise InvalidInput(f"the seed must lie in 0..2^64-1, not {seed}")
    return np.uint64(seed)


def _units(seed: np.uint64, stream: np.uint64, count: int) -> npt.NDArray[np.float64]:
    """The first numbers in [0, 1) of a stream."""
    words = mix_array(seed, np.full(count, stream, np.uint64), np.arange(count, dtype=np.uint64))
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * _TO_UNIT)

"""An overlay designed against the clock, judged and described."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omen.design import Algorithm
from omen.design.rounds import Rounds, RoundsDone, design_in_rounds
from omen.design.schedule import RoundFacts
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay, degree_summary


@dataclass(frozen=True)
class Designed:
    """What an algorithm built; `seconds` are those in the algorithm alone."""

    algorithm: Algorithm
    options: Mapping[str, Any]
    interests: Interests
    overlay: Overlay
    seconds: float
    rounds: RoundsDone | None = None  # None: the exact algorithm of the paper ran

    def record(self) -> dict[str, Any]:
        """What the file of the overlay says of how it was made; `k` is the connectivity to keep."""
        options = {name: str(value) for name, value in self.options.items()}
        made = {"algorithm": self.algorithm.name, "options": options, "k": self.algorithm.promise(self.options)}
        return made if self.rounds is None else made | {"rounds": schedule_text(self.rounds.rounds)}

    def summary(self) -> dict[str, Any]:
        """What `design --json` prints of it. Asks the judge."""
        degrees = degree_summary(self.overlay)
        return {
            "algorithm": self.algorithm.name,
            "options": dict(self.options),
            "nodes": self.interests.node_count,
            "topics": self.interests.topic_count,
            "edges": self.overlay.link_count,
            "avg_degree": degrees.average,
            "max_degree": degrees.maximum,
            "topic_connected": check_overlay(self.interests, self.overlay).topic_connected,
            "k_promised": self.algorithm.promise(self.options),
            "design_s": self.seconds,
            "rounds": None if self.rounds is None else describe_rounds(self.rounds.rounds, self.rounds.last),
        }


def schedule_text(rounds: Sequence[RoundFacts]) -> str:
    """The steps that were taken, as `--rounds` reads them; auto where none was needed."""
    return ",".join(str(facts.step) for facts in rounds) or "auto"


def describe_rounds(rounds: Sequence[RoundFacts], last: Sequence[RoundFacts]) -> dict[str, Any]:
    """What `design --json` prints of rounds. `schedule` can be given back as `--rounds`."""
    return {
        "schedule": schedule_text(rounds),
        "links": [facts.new_links for facts in rounds],
        "removed": [facts.removed for facts in rounds],
        "last_stage_links": sum(facts.new_links for facts in last),
        "sub_rounds": len(last),
        "last_cap": last[-1].step.cap if last else None,
    }


def design_rounds_timed(
    algorithm: Algorithm,
    interests: Interests,
    options: Mapping[str, Any],
    settings: Rounds,
    schedule: str,
    tell: Callable[[RoundFacts], None] = lambda facts: None,
) -> Designed:
    """Build an overlay in rounds. The kernels are loaded before the clock starts."""
    design_in_rounds(Interests.from_pairs([(0, 0), (1, 0)]), settings)
    started = time.perf_counter()
    done = design_in_rounds(interests, settings, schedule, tell)
    return Designed(algorithm, options, interests, done.overlay, time.perf_counter() - started, done)


def design_timed(algorithm: Algorithm, interests: Interests, options: Mapping[str, Any]) -> Designed:
    """Build an overlay. The kernels are loaded before the clock starts, by a workload of two nodes."""
    algorithm.build(Interests.from_pairs([(0, 0), (1, 0)]), **options)
    started = time.perf_counter()
    overlay = algorithm.build(interests, **options)
    return Designed(algorithm, options, interests, overlay, time.perf_counter() - started)

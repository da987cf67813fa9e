"""An overlay designed against the clock, judged and described."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omen.design import Algorithm
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

    def record(self) -> dict[str, Any]:
        """What the file of the overlay says of how it was made; `k` is the connectivity to keep."""
        options = {name: str(value) for name, value in self.options.items()}
        return {"algorithm": self.algorithm.name, "options": options, "k": self.algorithm.promise(self.options)}

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
        }


def design_timed(algorithm: Algorithm, interests: Interests, options: Mapping[str, Any]) -> Designed:
    """Build an overlay. The kernels are loaded before the clock starts, by a workload of two nodes."""
    algorithm.build(Interests.from_pairs([(0, 0), (1, 0)]), **options)
    started = time.perf_counter()
    overlay = algorithm.build(interests, **options)
    return Designed(algorithm, options, interests, overlay, time.perf_counter() - started)

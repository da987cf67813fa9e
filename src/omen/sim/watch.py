"""What monitors of all kinds of nodes have in common: bounds, breaches, and how both are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from omen.interests import Label
from omen.protocol.events import SECOND, NodeId, Time
from omen.quality import check_overlay
from omen.sim.world import World

CONNECTED, HANDLED, BOUNDED, COVERED, AGREED = "connected", "handled", "bounded", "covered", "agreed"
DISPENSABLE = "dispensable"
JOINED = "joined"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long things may take after the last event of a burst, and how much a node may have to do.

    `handled` 0: whether each event is handled does not matter.
    """

    connected: Time = 30 * SECOND
    handled: Time = 40 * SECOND
    one_sided: Time = 3 * SECOND
    dispensable: Time = 30 * SECOND
    idle: Time = 60 * SECOND
    open_events: int = 64
    news_in_a_round: int = 512


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must hold did not."""

    time: Time
    seed: int
    monitor: str
    what: str

    def __str__(self) -> str:
        return f"{self.time / SECOND:.3f} s, seed {self.seed}: not {self.monitor}: {self.what}"


class Watch:
    """What the monitors of all kinds of nodes have in common. `connected_since`: when the present burst was repaired;
    `restored`: how long it took each time, 0 where nothing was seen to be split.
    """

    def __init__(self, population: Any, bounds: Bounds | None = None) -> None:
        self.population = population
        self.world: World = population.world
        self.bounds = bounds or Bounds()
        self.violations: list[Violation] = []
        self.connected_since: Time | None = None
        self.last_event: Time = 0
        self.last_cause: Time = 0
        self.restored: list[Time] = []
        self._was_split = False
        self.rejoins = 0
        self._one_sided: dict[tuple[NodeId, NodeId], Time] = {}
        self._reported: set[tuple[str, str]] = set()

    def split_topics(self) -> list[Label]:
        """The topics that are split at present."""
        verdict = check_overlay(*self.population.snapshot())
        return sorted((topic.topic for topic in verdict.failing), key=str)

    def refused(self) -> dict[str, int]:
        """The messages that validation dropped, by reason."""
        total: Counter[str] = Counter()
        for core in self.population.cores.values():
            total.update(core.status().refused)
        return dict(sorted(total.items()))

    def _name(self, node: NodeId) -> str:
        return str(self.population.labels.get(node, node))

    def _record(self, monitor: str, what: str) -> None:
        """Each breach once, however long it lasts."""
        if (monitor, what.partition(" s after")[2] or what) not in self._reported:
            self._reported.add((monitor, what.partition(" s after")[2] or what))
            self.violations.append(Violation(self.world.now, self.world.seed, monitor, what))


def listed(things: Iterable[Label], shown: int = 5) -> str:
    words = [str(thing) for thing in things]
    rest = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + rest
